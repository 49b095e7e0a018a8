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
from support.small_fits import assert_same_bits, fit_rows

TRUTH = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2, 3, 3]), rank=2, random_state=3)
WHOLE = TRUTH.sample(600, random_state=0)
SEEN = np.random.default_rng(0).random(WHOLE.shape) > 0.1
TABLE = WHOLE.with_columns(
    pl.when(pl.Series(SEEN[:, n])).then(name).alias(name) for n, name in enumerate(WHOLE.columns)
)


JUDGES = jp.encode(WHOLE[:50], jp.encode(TABLE).domain)


def misfit(pmf):
    return -float(pmf.log_probability(JUDGES).mean())


FEW = Effort(most_starts=2, patience=2)
"""One start of each kind, where many would only take their time."""


def fit(source, rank=2, **options):
    how = {"random_state": 0, "max_iter": 30, "effort": FEW}
    return fit_rows(source, rank, **how | options)


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
        kinds = Kinds(ranks=(1, 2), row_ranks=(2,), cell_points=(8,), step_points=8)
        for validation in (None, 0.2, jp.HiddenCells(0.1)):
            options = {"rank": "auto", "validation": validation, "kinds": kinds, "n_average": 2}
            assert_same_bits(fit(path, **options).pmf, fit(TABLE, **options).pmf)

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
        with pytest.raises(
            jp.JointPMFError, match=r"sample_weight does not apply to a file: name a column of it"
        ):
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
        kinds = Kinds(ranks=(1, 2), row_ranks=(2,), cell_points=(8,), step_points=8)
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


WEIGHTS = np.random.default_rng(1).gamma(2.0, size=len(TABLE))
COUNTS = np.random.default_rng(2).integers(0, 4, len(TABLE))
REPEATED = TABLE[np.repeat(np.arange(len(TABLE)), COUNTS)]
FINE = {"max_iter": 2000, "tol": 1e-13}


@pytest.fixture
def weighted(tmp_path):
    """Write the table with a column of weights, and give it as a source of rows."""

    def write(weights, **options):
        path = tmp_path / "weighted.csv"
        TABLE.clone().insert_column(2, pl.Series("w", weights)).write_csv(path)
        return jp.Files(path, weights="w", **options)

    return write


class TestWeights:
    """A column of a file says what each row counts for."""

    @pytest.mark.parametrize("options", [{}, {"rank": "auto"}], ids=["given", "auto"])
    def test_they_are_the_sample_weight_of_the_table(self, weighted, options):
        if options.get("rank") == "auto":
            options |= {"kinds": Kinds(ranks=(1, 2)), "n_average": 2}
        found, expected = (
            fit(weighted(WEIGHTS), **options),
            fit(TABLE, sample_weight=WEIGHTS, **options),
        )
        assert found.pmf.domain.names == tuple(TABLE.columns)
        assert_same_bits(found.pmf, expected.pmf)
        assert found.objective == expected.objective
        assert found.source == expected.source

    def test_in_many_batches_too(self, tmp_path, weighted):
        source = weighted(WEIGHTS)
        table = pl.read_csv(source.paths)
        paths = [tmp_path / f"{k}.parquet" for k in range(3)]
        for k, one in enumerate(paths):
            table[200 * k : 200 * (k + 1)].write_parquet(one)
        several = replace(source, paths=paths)
        assert_same_bits(fit(several).pmf, fit(TABLE, sample_weight=WEIGHTS).pmf)

    def test_whole_ones_are_rows_that_repeat(self, weighted, tmp_path):
        REPEATED.write_csv(tmp_path / "repeated.csv")
        found = fit(weighted(COUNTS), **FINE)
        expected = fit(tmp_path / "repeated.csv", **FINE)
        assert found.objective == pytest.approx(expected.objective, rel=1e-12)
        np.testing.assert_allclose(found.pmf.weights, expected.pmf.weights, atol=1e-12)

    @pytest.mark.usefixtures("small_room")
    def test_rows_on_disk_are_fitted_as_well(self, weighted):
        found = fit(weighted(WEIGHTS), effort=SMALL, **FINE)
        best = fit(TABLE, sample_weight=WEIGHTS, **FINE)
        assert found.start.in_steps
        assert found.objective == pytest.approx(best.objective, abs=1e-8)
        assert found.source == best.source

    @pytest.mark.usefixtures("small_room")
    def test_a_sample_for_the_rank_is_drawn_by_weight(self, weighted):
        first = TABLE.columns[0]
        heavy = (TABLE[first] == TABLE[first][0]).fill_null(False).cast(float).to_numpy()
        kinds = Kinds(ranks=(1, 2))
        found = fit(weighted(heavy), "auto", effort=SMALL, kinds=kinds, n_average=2)
        assert found.source.n_rows == 600
        assert found.source.n_sampled < 200
        assert found.pmf.marginal([first]).table().max() > 0.95 > heavy.mean() + 0.3

    @pytest.mark.usefixtures("small_room")
    def test_blocks_without_weight(self, weighted):
        heavy = np.where(np.arange(len(TABLE)) < 200, 1.0, 0.0)
        found = fit(weighted(heavy), effort=SMALL, **FINE)
        assert found.objective == pytest.approx(fit(TABLE[:200], **FINE).objective, abs=1e-8)

    @pytest.mark.parametrize("is_small", [False, True])
    def test_other_weights_are_another_fit(self, weighted, tmp_path, is_small, request):
        if is_small:
            request.getfixturevalue("small_room")
        options = {"effort": SMALL, "checkpoint": tmp_path / "c"}
        first = fit(weighted(WEIGHTS), **options)
        assert_same_bits(fit(weighted(WEIGHTS), **options).pmf, first.pmf)
        swapped = WEIGHTS.copy()
        same = next(m for m in range(1, 600) if TABLE.row(m) != TABLE.row(0))
        swapped[[0, same]] = swapped[[same, 0]]
        with pytest.raises(jp.JointPMFError, match="is of another fit"):
            fit(weighted(swapped), **options)

    @pytest.mark.usefixtures("small_room")
    def test_a_fit_that_was_ended_goes_on_to_the_same_bits(self, weighted, tmp_path):
        options = {"effort": SMALL}
        whole, seen = fit(weighted(WEIGHTS), **options), []

        def interrupt(step, pmf):
            seen.append(step)
            if len(seen) == 5:
                raise KeyboardInterrupt

        options |= {"checkpoint": jp.Checkpoint(tmp_path / "c", every=2, seconds=0.0)}
        stopped = fit(weighted(WEIGHTS), callback=interrupt, **options)
        assert stopped.status is jp.Status.STOPPED
        assert_same_bits(fit(weighted(WEIGHTS), **options).pmf, whole.pmf)

    @pytest.mark.parametrize(
        ("bad", "sentence"),
        [
            (None, "column 'w' holds no number in row 7, but every row needs a weight"),
            ("heavy", "column 'w' holds 'heavy' in row 7, but a weight must be a number"),
            ("-1", "column 'w' holds '-1' in row 7, but a weight must be from 0 to 1e+50"),
            ("inf", "column 'w' holds 'inf' in row 7, but a weight must be from 0 to 1e+50"),
            ("2e50", "column 'w' holds '2e50' in row 7, but a weight must be from 0 to 1e+50"),
        ],
    )
    @pytest.mark.parametrize("is_small", [False, True])
    def test_a_row_whose_weight_is_none_is_named(self, weighted, bad, sentence, is_small, request):
        if is_small:
            request.getfixturevalue("small_room")
        weights = ["1"] * len(TABLE)
        weights[7] = bad
        with pytest.raises(jp.JointPMFError) as raised:
            fit(weighted(weights))
        assert str(raised.value) == sentence

    @pytest.mark.parametrize("bad", [float("nan"), -0.5, float("inf"), None])
    def test_in_typed_files_too(self, tmp_path, bad):
        path = tmp_path / "t.parquet"
        TABLE.with_columns(w=pl.Series([1.0] * 599 + [bad])).write_parquet(path)
        with pytest.raises(jp.JointPMFError, match=r"column 'w' holds .* in row 599, but"):
            fit(jp.Files(path, weights="w"))
        TABLE.with_columns(w=pl.Series([True] * 600)).write_parquet(path)
        with pytest.raises(jp.JointPMFError, match="'w' holds True in row 0, but a weight must be"):
            fit(jp.Files(path, weights="w"))

    @pytest.mark.parametrize("rank", [2, "auto"])
    def test_all_zero(self, weighted, rank):
        with pytest.raises(jp.JointPMFError, match="the weights in column 'w' are all zero"):
            jp.fit_rows(weighted(np.zeros(600)), rank)

    def test_a_column_that_cannot_be_the_weights(self, weighted):
        source = weighted(WEIGHTS)
        first = TABLE.columns[0]
        for options, sentence in (
            ({"weights": "v"}, "there is no column 'v'"),
            ({"weights": WEIGHTS}, "the weights of a file are the name of a column, not array"),
            ({"only": ["w", first]}, "column 'w' cannot be a variable and the weights"),
            ({"only": ["w"]}, "column 'w' cannot be a variable and the weights"),
        ):
            with pytest.raises(jp.JointPMFError, match=sentence):
                fit(replace(source, **options))
        domain = jp.encode(TABLE).domain
        with pytest.raises(jp.JointPMFError, match=f"'{first}' is a variable of the model, and"):
            fit(replace(source, weights=first), domain=domain)
        assert fit(replace(source, drop=["w"])).pmf.domain.names == domain.names
