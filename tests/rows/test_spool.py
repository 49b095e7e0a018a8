"""Rows in a temporary file: what went in comes out, sums are those of all rows, nothing is left."""

import tempfile

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.point import Point
from jointpmf.rows.expectation import Stacks
from jointpmf.rows.parts import CountLevels, Expect, Part
from jointpmf.rows.spool import Spool
from jointpmf.rows.table import Rows

TRUTH = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2, 3, 3]), rank=2, random_state=3)
ROWS = np.array(TRUTH.sample(4000, random_state=0, backend="codes"), int)
ROWS[np.random.default_rng(0).random(ROWS.shape) < 0.15] = jp.MISSING

BLOCK_BYTES = (5 + 16) * 300
"""Memory of a block of 300 rows."""


WEIGHTS = np.random.default_rng(1).integers(0, 5, len(ROWS)) / 4


def filled(rows=ROWS, domain=TRUTH.domain, weights=None):
    """Return a finished spool of rows that came in seven batches."""
    made = Spool(domain, BLOCK_BYTES)
    parts = [None] * 7 if weights is None else np.array_split(weights, 7)
    for batch, own in zip(np.array_split(rows, 7), parts, strict=True):
        made.add(jp.Codes(domain, batch), own)
    made.finish()
    return made


@pytest.mark.parametrize("own", [None, WEIGHTS], ids=["ones", "weights"])
def test_it_gives_back_what_went_in(own):
    with filled(weights=own) as made:
        read = [part.rows for part in made.parts()]
        assert [part.index for part in made.parts()] == list(range(made.n_parts))
        assert [part.index for part in made.parts([2, 0])] == [2, 0]
    assert made.n_rows == len(ROWS)
    assert max(map(len, read)) <= 300
    together = np.concatenate([rows.columns for rows in read], axis=1)
    weights = np.concatenate([rows.weights for rows in read])
    found = Rows.of_codes(jp.Codes(TRUTH.domain, together.T), weights)
    wanted = Rows.of_codes(jp.Codes(TRUTH.domain, ROWS), own)
    assert np.array_equal(found.cells, wanted.cells)
    assert np.allclose(found.weights, wanted.weights)
    assert sum(rows.n_empty for rows in read) == wanted.n_empty


@pytest.mark.parametrize("size", [3, 200, 40_000])
def test_codes_of_any_size_fit(size):
    domain = jp.Domain.of_sizes([size, 2])
    rows = np.array([[size - 1, 0], [-1, 1], [0, -1]])
    with filled(rows, domain) as made:
        (part,) = made.parts()
    assert np.array_equal(part.rows.columns.T, rows)


@pytest.mark.parametrize("own", [None, WEIGHTS], ids=["ones", "weights"])
def test_sums_over_blocks_are_those_over_all_rows(own):
    codes = jp.Codes(TRUTH.domain, ROWS)
    whole = Part.of_codes(0, codes, own)
    stack = Stacks(TRUTH.domain, 2).stack(Point.of_pmf(TRUTH))
    with filled(weights=own) as made:
        levels, wanted = made.total(CountLevels()), CountLevels()(whole)
        assert np.array_equal(levels.counts, wanted.counts)
        assert levels.weight == wanted.weight
        expected, other = made.total(Expect(stack, 2)), Expect(stack, 2)(whole)
        assert np.allclose(expected.counts, other.counts, rtol=1e-12)
        assert expected.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-12)


def test_nothing_is_left_when_it_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with filled() as made:
        assert not made._file.closed
    assert made._file.closed
    assert list(tmp_path.iterdir()) == []
