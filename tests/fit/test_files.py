"""Fits to tables on disk: by path, by several, within a limit of memory, with a checkpoint."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.fit.memory import Room
from jointpmf.fit.settings import Effort, Kinds
from support.small_fits import assert_same_bits, settings

TRUTH = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2, 3, 3]), rank=2, random_state=3)
WHOLE = TRUTH.sample(600, random_state=0)
SEEN = np.random.default_rng(0).random(WHOLE.shape) > 0.1
TABLE = WHOLE.with_columns(
    pl.when(pl.Series(SEEN[:, n])).then(name).alias(name) for n, name in enumerate(WHOLE.columns)
)


JUDGES = jp.encode(WHOLE[:50], jp.encode(TABLE).domain)


def misfit(pmf):
    return -float(pmf.log_probability(JUDGES).mean())


FEW = Effort(most_starts=4)
"""One start of each kind, where many would only take their time."""


def fit(source, rank=2, **options):
    if "objective" not in options:
        options = {"effort": FEW} | options
    return jp.fit_rows(source, rank, **settings(**{"random_state": 0, "max_iter": 30} | options))


@cache
def fit_in_memory():
    return fit(TABLE)


@pytest.fixture
def path(tmp_path):
    TABLE.write_csv(tmp_path / "rows.csv")
    return tmp_path / "rows.csv"


@pytest.fixture
def small_room(monkeypatch):
    """Let a fit hold 100 rows in memory."""
    monkeypatch.setattr(Room, "n_rows", lambda self, *asked, **more: 100)


SMALL = replace(FEW, sample_rows=200, step_rows=100, block_bytes=(5 + 16) * 100)


class TestPaths:
    def test_a_path_is_its_table(self, path):
        expected = fit_in_memory()
        for source in (str(path), path, [path], jp.Files(path), jp.Files(path, memory="8GB")):
            found = fit(source)
            assert_same_bits(found.pmf, expected.pmf)
            assert found.pmf.domain == expected.pmf.domain
            assert found.source == expected.source

    def test_several_are_one_table(self, tmp_path):
        paths = [tmp_path / f"{k}.csv" for k in range(3)]
        for k, one in enumerate(paths):
            TABLE[200 * k : 200 * (k + 1)].write_csv(one)
        for given in (paths, tuple(map(str, paths))):
            assert_same_bits(fit(given).pmf, fit_in_memory().pmf)

    def test_columns_that_are_left_out(self, path):
        names = TABLE.columns
        expected = fit(TABLE.drop(names[1]))
        assert_same_bits(fit(jp.Files(path, drop=[names[1]])).pmf, expected.pmf)
        with pytest.raises(jp.JointPMFError, match="there is no column 'z'"):
            fit(jp.Files(path, only=["z"]))

    def test_the_rank_can_be_found_by_rows_and_by_cells(self, path):
        kinds = Kinds(
            ranks=(1, 2), row_ranks=(2,), factor_ranks=(4,), row_bandwidths=(0.0,),
            factor_bandwidths=(0.4,),
        )  # fmt: skip
        for validation in (None, 0.2, jp.HiddenCells(0.1)):
            options = {"rank": "auto", "validation": validation, "kinds": kinds, "n_average": 2}
            assert_same_bits(fit(path, **options).pmf, fit(TABLE, **options).pmf)

    @pytest.mark.parametrize("rank", [2, "auto"])
    def test_marginals_are_counted_as_rows_are_read(self, path, rank):
        options = {"objective": jp.Coupled(order=2), "rank": rank, "max_iter": 100}
        found, expected = fit(path, **options), fit(TABLE, **options)
        assert_same_bits(found.pmf, expected.pmf)
        assert found.source == expected.source

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"memory": "a lot"}, "write memory as 500MB, 2GB or 1.5GiB, not 'a lot'"),
            ({"memory": "1MB"}, "memory 1MB is too little"),
        ],
    )
    def test_a_limit_that_is_none(self, path, options, sentence):
        with pytest.raises(jp.JointPMFError, match=sentence):
            fit(jp.Files(path, **options))

    def test_weights_cannot_be_given_beside_a_file(self, path):
        with pytest.raises(jp.JointPMFError, match="sample_weight does not apply to a file"):
            fit(path, sample_weight=np.ones(len(TABLE)))


@pytest.mark.usefixtures("small_room")
class TestLittleMemory:
    def test_rows_stay_on_disk_and_are_fitted_as_well(self, path):
        found = fit(path, effort=SMALL, max_iter=2000, tol=1e-12)
        assert found.start.in_steps
        best = fit(TABLE, max_iter=2000, tol=1e-12)
        assert found.objective == pytest.approx(best.objective, abs=1e-8)
        assert found.source == best.source

    def test_the_rank_is_found_on_a_sample_and_that_is_said(self, path, caplog):
        found = fit(path, "auto", effort=SMALL, kinds=Kinds(ranks=(1, 2)), n_average=2)
        assert found.status is jp.Status.VALIDATED
        assert (found.source.n_rows, found.source.n_sampled) == (600, pytest.approx(100, rel=0.4))
        assert "a sample of" in caplog.text
        assert "a sample of" in str(found.source)

    @pytest.mark.parametrize("validation", [0.2, WHOLE[:50], jp.HiddenCells(0.1), misfit])
    def test_the_rank_is_found_by_whatever_is_asked(self, path, validation):
        kinds = Kinds(ranks=(1, 2), row_ranks=(2,), factor_ranks=(4,), factor_bandwidths=(0.4,))
        found = fit(path, "auto", validation=validation, effort=SMALL, kinds=kinds, n_average=2)
        assert found.status is jp.Status.VALIDATED
        assert found.source.n_sampled < 200

    def test_a_column_that_the_sample_does_not_see_may_happen(self, path):
        rare = [("yes", "no")[m // 400] if m in (300, 500) else None for m in range(len(TABLE))]
        TABLE.with_columns(rare=pl.Series(rare)).write_csv(path)
        for seed in range(3):
            found = fit(path, "auto", effort=SMALL, kinds=Kinds(ranks=(1,)), random_state=seed)
            assert found.pmf.marginal(["rare"]).table().min() > 0

    @pytest.mark.parametrize("validation", [0.2, jp.HiddenCells(0.1), lambda pmf: 0.0])
    def test_what_needs_all_rows_in_memory_is_refused(self, path, validation):
        with pytest.raises(
            jp.JointPMFError, match="validation does not apply to rows that are not"
        ):
            fit(path, validation=validation)

    @pytest.mark.parametrize("rank", [2, "auto"])
    def test_a_fit_that_was_ended_goes_on_to_the_same_bits(self, path, tmp_path, rank):
        options = {"effort": SMALL, "kinds": Kinds(ranks=(1, 2))}
        whole, seen = fit(path, rank, **options), []
        options["checkpoint"] = jp.Checkpoint(tmp_path / "c", every=2, seconds=0.0)

        def interrupt(step, pmf):
            seen.append(step)
            if len(seen) == 5:
                raise KeyboardInterrupt

        assert fit(path, rank, callback=interrupt, **options).status is jp.Status.STOPPED
        assert_same_bits(fit(path, rank, **options).pmf, whole.pmf)

    def test_another_file_is_another_fit(self, path, tmp_path):
        options = {"effort": SMALL, "checkpoint": tmp_path / "c"}
        fit(path, **options)
        TABLE[:-1].write_csv(path)
        with pytest.raises(jp.JointPMFError, match=r"is of another fit \(table: not the same\)"):
            fit(Path(path), **options)
