"""The contract of every source of rows: what it counts, draws and expects is the table's."""

import shutil
import warnings
from contextlib import contextmanager, nullcontext

import dask
import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pytest

import jointpmf as jp
from jointpmf.fit.likelihood import EMFit
from jointpmf.point import Point
from jointpmf.rows.distributed import distributed_rows
from jointpmf.rows.parts import PartedRows
from jointpmf.rows.source import Table
from jointpmf.rows.spool import Spool, SpooledRows
from jointpmf.solvers.loop import Loop
from support import oracle
from support.machine import needs
from support.sources import InMemory, planted_table

TABLE = planted_table()
CODES = jp.encode(TABLE)
START = jp.random_pmf(CODES.domain, rank=3, random_state=3)

OBSERVED = CODES.array[(CODES.array >= 0).any(axis=1)]


@contextmanager
def spooled(codes):
    with Spool(codes.domain, block_bytes=8000) as spool:  # several blocks
        spool.add(codes)
        source = SpooledRows(spool)
        assert spool.n_parts > 2
        yield source


HERE = {
    "memory": lambda codes: nullcontext(Table.of_codes(codes)),
    "parts": lambda codes: nullcontext(PartedRows(InMemory(codes, 3))),
    "file": spooled,
}

KINDS = [*HERE, "dask", pytest.param("spark", marks=needs("java", shutil.which("java")))]


@pytest.fixture(scope="module", params=KINDS)
def source(request):
    """Give the table as each kind of source."""
    with (
        dask.config.set(scheduler="sync"),
        warnings.catch_warnings(),
        opened(request.param, request) as source,
    ):
        yield source


def opened(kind, request):
    if kind in HERE:
        return HERE[kind](CODES)
    if kind == "dask":
        return distributed_rows(dd.from_pandas(TABLE, npartitions=3, sort=False))
    warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
    arrow = pa.Table.from_pandas(TABLE, preserve_index=False)
    frame = request.getfixturevalue("spark").createDataFrame(arrow)
    return distributed_rows(frame.repartition(3))


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning")
class TestContract:
    def test_domain_and_size(self, source):
        assert source.domain == CODES.domain
        assert source.total == len(OBSERVED)
        assert source.n_empty == CODES.n_rows - len(OBSERVED) >= 7
        assert len(np.unique(OBSERVED, axis=0)) <= source.n_rows <= len(OBSERVED)

    def test_counts_and_marginal(self, source):
        columns = zip(CODES.columns, CODES.domain.sizes, strict=True)
        counts = [np.bincount(column[column >= 0], minlength=size) for column, size in columns]
        np.testing.assert_array_equal(source.counts, np.concatenate(counts))
        shares = np.concatenate([count / count.sum() for count in counts])
        np.testing.assert_allclose(source.marginal, shares, rtol=1e-14)

    def test_expectation(self, source):
        expectation = source.expectation(3)
        stack = expectation.stack(Point.of_pmf(START))
        counts, log_likelihood = expectation.counts(stack)
        levels, components = oracle.expected_counts(
            START.weights, START.factors, OBSERVED, np.ones(len(OBSERVED))
        )
        expected = np.vstack([*levels, components])
        np.testing.assert_allclose(counts[: len(expected), :3], expected, atol=1e-9)
        logs = START.log_probability(jp.Codes(CODES.domain, OBSERVED))
        assert log_likelihood == pytest.approx(logs.sum(), rel=1e-12)

    def test_a_sample_as_large_as_the_table_is_the_table(self, source):
        sample, weights = source.sample(CODES.n_rows, seed=0)
        found, inverse = np.unique(sample.array, axis=0, return_inverse=True)
        counts = np.bincount(inverse.ravel(), weights)
        said = (found >= 0).any(axis=1)  # a table in memory has its empty rows, which say nothing
        expected, expected_counts = np.unique(OBSERVED, axis=0, return_counts=True)
        np.testing.assert_array_equal(found[said], expected)
        np.testing.assert_array_equal(counts[said], expected_counts)

    def test_a_small_sample_has_rows_of_the_table_and_depends_on_the_seed(self, source):
        rows = {tuple(row) for row in CODES.array.tolist()}
        (one, drawn), (again, _), (other, _) = (source.sample(100, seed) for seed in (1, 1, 2))
        assert {tuple(row) for row in one.array.tolist()} <= rows
        assert 50 < drawn.sum() < 150
        np.testing.assert_array_equal(one.array, again.array)
        assert not np.array_equal(one.array, other.array)

    def test_the_digest_stays(self, source):
        assert source.digest == source.digest
        assert source.digest.startswith("sha256:")

    def test_a_fit_takes_the_steps_of_one_in_memory(self, source):
        fit = EMFit(3, Loop(8, 0.0), smoothing=0.1, towards="marginal", start=START)
        here = fit.run(Table.of_codes(CODES), np.random.default_rng(0))
        there = fit.run(source, np.random.default_rng(0))
        paths = [[step.objective for step in found.history] for found in (here, there)]
        np.testing.assert_allclose(*paths, atol=1e-10)
        assert (there.start.kind, there.n_iter) == ("given", 8)


@pytest.mark.parametrize("kind", HERE)
def test_other_rows_have_another_digest(kind):
    array = CODES.array.copy()
    array[20, 0] = (array[20, 0] + 1) % 3
    digests = []
    for codes in (CODES, CODES, jp.Codes(CODES.domain, array)):
        with HERE[kind](codes) as source:
            digests.append(source.digest)
    assert digests[0] == digests[1] != digests[2]


class TestTable:
    def test_weights_count(self):
        weights = np.random.default_rng(0).random(CODES.n_rows)
        table = Table.of_codes(CODES, weights)
        parted = PartedRows(InMemory(CODES, 3, weights))
        for name in ("total", "counts", "marginal"):
            np.testing.assert_allclose(getattr(table, name), getattr(parted, name), rtol=1e-12)

    @pytest.mark.parametrize("which", [np.arange(1500) % 3 == 0, np.arange(0, 1500, 3)])
    def test_some_rows_can_be_taken_by_a_mask_or_by_position(self, which):
        weights = 1 + np.arange(CODES.n_rows) / 7
        part = Table.of_codes(CODES, weights).taken(which)
        np.testing.assert_array_equal(part.codes.array, CODES.array[::3])
        np.testing.assert_array_equal(part.weights, weights[::3])
        assert Table.of_codes(CODES).taken(which).weights is None
