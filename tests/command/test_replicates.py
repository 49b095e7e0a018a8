"""`fit --replicates` and `query --level`: how sure answers are, from files to what is printed."""

import json
import shutil

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.fit import memory
from jointpmf.judge.replicate_file import read_replicates
from jointpmf.judge.uncertainty import Uncertainty

DOMAIN = jp.Domain.of_sizes([3, 2, 3], names=list("abc"))
TRUTH = jp.random_pmf(DOMAIN, 2, random_state=3)
TABLE = TRUTH.sample(300, random_state=0)
SCHOOL = np.arange(len(TABLE)) // 10
REGION = np.where(SCHOOL % 2 == 0, "north", "south")
WEIGHTS = np.random.default_rng(1).gamma(2.0, size=len(TABLE))
DROPS = ("--drop", "school", "--drop", "region", "--drop", "w")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("replicates") / "rows.csv"
    design = {"school": SCHOOL, "region": REGION, "w": WEIGHTS}
    TABLE.with_columns(pl.Series(name, cells) for name, cells in design.items()).write_csv(path)
    return path


@pytest.fixture
def fitted(data, tmp_path, inside):
    """Fit with some options; return the model and its replicates."""

    def call(*options):
        arguments = ("-o", tmp_path / "m.safetensors", "--rank", 2, "--replicates", 5)
        code, out, err = inside("fit", data, *arguments, *options)
        assert code == 0, err
        assert f"5 replicates written to {tmp_path / 'm.replicates.safetensors'}." in out
        model = jp.load(tmp_path / "m.safetensors")
        return model, read_replicates(tmp_path / "m.replicates.safetensors")

    return call


def assert_same(found, expected):
    np.testing.assert_array_equal(found.pmf.weights, expected.pmf.weights)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-6)
    np.testing.assert_allclose(found.factors, expected.factors, atol=1e-6)
    assert found.resampling == expected.resampling


class TestFit:
    def test_replicates_are_those_of_the_library(self, fitted):
        model, found = fitted(*DROPS)
        assert model.domain.names == ("a", "b", "c")
        expected = jp.fit_rows(TABLE, 2, random_state=0).uncertainty(5, random_state=0)
        assert_same(found, expected)

    def test_columns_say_which_rows_were_drawn_together(self, fitted):
        options = ("--groups", "school", "--strata", "region", "--weights", "w")
        model, found = fitted(*options)
        assert model.domain.names == ("a", "b", "c")
        solution = jp.fit_rows(TABLE, 2, random_state=0, sample_weight=WEIGHTS)
        design = {"groups": SCHOOL.astype(str), "strata": REGION}  # a text file has texts
        assert_same(found, solution.uncertainty(5, random_state=0, **design))
        alone = solution.uncertainty(5, random_state=0)
        assert not np.allclose(found.factors, alone.factors, atol=1e-3)

    def test_a_stratum_may_be_a_variable_too(self, fitted):
        model, found = fitted("--strata", "region", "--only", "a", "--only", "region")
        assert model.domain.names == found.pmf.domain.names == ("a", "region")

    def test_of_the_rank_that_a_criterion_chooses(self, fitted):
        model, found = fitted(*DROPS, "--criterion", "bic", "--rank", "1-2", "--groups", "school")
        np.testing.assert_array_equal(model.weights, found.pmf.weights)
        assert len(found.weights) == 5

    def test_from_stdin(self, data, tmp_path, inside):
        arguments = ("-o", tmp_path / "m", "--rank", 2, "--replicates", 3, *DROPS)
        code, _, err = inside("fit", "-", *arguments, stdin=data.read_bytes())
        assert code == 0, err
        assert len(read_replicates(tmp_path / "m.replicates.safetensors").weights) == 3

    def test_for_machines(self, data, tmp_path, inside):
        arguments = ("-o", tmp_path / "m", "--rank", 2, *DROPS, "--json")
        assert json.loads(inside("fit", data, *arguments)[1])["replicates"] is None
        said = json.loads(inside("fit", data, *arguments, "--replicates", 3)[1])["replicates"]
        path = str(tmp_path / "m.replicates.safetensors")
        assert said == {"file": path, "number": 3, "resampling": "bayesian"}

    def test_of_tables(self, tmp_path, inside):
        for pair in ("ab", "bc"):
            counts = TABLE.group_by(list(pair)).len("count").sort(list(pair))
            counts.write_csv(tmp_path / f"{pair}.csv")
        tables = (tmp_path / "ab.csv", tmp_path / "bc.csv", "--marginals")
        arguments = ("-o", tmp_path / "m", "--rank", 1, "--replicates", 3)
        code, _, err = inside("fit", *tables, *arguments)
        assert code == 0, err
        assert len(read_replicates(tmp_path / "m.replicates.safetensors").weights) == 3
        code, _, err = inside("fit", *tables, *arguments, "--groups", "a")
        assert (code, "--groups, --strata" in err) == (2, True)

    def test_tables_without_counts_say_so_and_the_model_is_written(self, tmp_path, inside):
        shares = TABLE.group_by("a", "b").len("count").sort("a", "b")
        shares.select("a", "b", probability=pl.col("count") / 300).write_csv(tmp_path / "t.csv")
        arguments = ("-o", tmp_path / "m", "--rank", 1, "--replicates", 3)
        code, _, err = inside("fit", tmp_path / "t.csv", "--marginals", *arguments)
        assert code == 2
        assert "counts" in err
        assert jp.load(tmp_path / "m").rank == 1
        assert not (tmp_path / "m.replicates.safetensors").exists()

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (("--groups", "school"), "--groups and --strata belong to --replicates"),
            (("--replicates", 1), "greater than or equal to 2"),
            (("--replicates", 2, "-o", "-"), "give -o a file, not -"),
            (("--replicates", 2, "--groups", "class"), "there is no column 'class'"),
            (("--replicates", 2, "--groups", "hole"), "column 'hole' holds no label in row 1"),
            (("--replicates", 2, "--groups", "one"), "there is one cluster"),
            (("--replicates", 2, "--groups", "a", "--strata", "a"), "stratum '0': there is one"),
        ],
    )
    def test_what_cannot_be_is_said_before_the_fit(self, tmp_path, inside, options, says):
        rows = pl.DataFrame({"a": [0, 1, 0, 1], "b": [0, 1, 1, 0], "one": ["x"] * 4})
        rows.with_columns(hole=pl.Series([1, None, 2, 2])).write_csv(tmp_path / "t.csv")
        code, _, err = inside("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *options)
        assert (code, says in " ".join(err.split())) == (2, True), err
        assert not (tmp_path / "m").exists()

    def test_lists_are_no_groups(self, tmp_path, inside):
        rows = pl.DataFrame({"a": [0, 1, 0], "g": [[1], [2], [2]]})
        rows.write_parquet(tmp_path / "t.parquet")
        options = ("--replicates", 2, "--groups", "g", "-o", tmp_path / "m")
        code, _, err = inside("fit", tmp_path / "t.parquet", *options)
        assert (code, "column 'g' holds lists, which cannot be groups" in err) == (2, True)

    def test_groups_of_rows_on_disk_are_refused(self, data, tmp_path, inside, monkeypatch):
        monkeypatch.setattr(memory.Room, "n_rows", lambda self, *asked: 100)
        arguments = ("-o", tmp_path / "m", "--rank", 2, "--memory", "8GB", "--replicates", 2)
        code, _, err = inside("fit", data, *arguments, "--groups", "school", *DROPS[2:])
        assert (code, "groups and strata need rows in memory" in err) == (2, True)
        assert not (tmp_path / "m").exists()  # said before the fit
        code, _, err = inside("fit", data, *arguments, *DROPS)
        assert code == 0, err
        assert len(read_replicates(tmp_path / "m.replicates.safetensors").weights) == 2

    def test_an_interrupt_before_two_are_done_keeps_the_model(
        self, data, tmp_path, inside, monkeypatch
    ):
        def interrupted(*given, **options):
            raise KeyboardInterrupt

        monkeypatch.setattr(jp.Solution, "uncertainty", interrupted)
        arguments = ("-o", tmp_path / "m", "--rank", 2, "--replicates", 2, *DROPS)
        code, _, err = inside("fit", data, *arguments)
        assert (code, "before two replicates were done" in err) == (0, True)
        assert jp.load(tmp_path / "m").rank == 2
        assert not (tmp_path / "m.replicates.safetensors").exists()

    def test_a_fit_that_was_stopped_has_none(self, data, tmp_path, inside, monkeypatch):
        fit_rows = jp.fit_rows
        monkeypatch.setattr(jp, "fit_rows", lambda *a, **o: fit_rows(*a, **o).stopped())
        arguments = ("-o", tmp_path / "m", "--rank", 2, "--replicates", 2, *DROPS)
        code, _, err = inside("fit", data, *arguments)
        assert (code, "stopped, so that no replicates were made" in err) == (3, True)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return a folder with a model and its replicates, which nothing may change."""
    folder = tmp_path_factory.mktemp("saved")
    solution = jp.fit_rows(TABLE, 2, random_state=0)
    solution.save(folder / "m.safetensors")
    solution.uncertainty(20, random_state=0).save(folder / "m.replicates.safetensors")
    return folder


class TestQuery:
    @pytest.fixture
    def model(self, saved, tmp_path):
        """Return the path of a model beside its replicates, which a test may change."""
        shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
        return tmp_path / "m.safetensors"

    def test_intervals_are_those_of_the_library(self, model, inside):
        asked = ("--of", "a", "--of", "b", "--given", "c=1", "--level", 0.8, "--json")
        code, out, err = inside("query", model, *asked)
        assert code == 0, err
        said = json.loads(out)
        sure = Uncertainty.load(model.with_name("m.replicates.safetensors"))
        expected = sure.marginal(["a", "b"], given={"c": 1}, level=0.8)
        assert said["level"] == 0.8
        assert [cell["levels"] for cell in said["distribution"]] == expected.select(
            "a", "b"
        ).to_dicts()
        for ours, theirs in (("probability", "estimate"), ("se", "se"), ("low", "low")):
            numbers = [cell[ours] for cell in said["distribution"]]
            np.testing.assert_allclose(numbers, expected[theirs], atol=1e-12)
        assert all(cell["low"] < cell["high"] for cell in said["distribution"])
        assert "mean_error" not in said

    def test_the_mean_has_an_error_too(self, model, inside):
        said = json.loads(inside("query", model, "--of", "a", "--level", 0.9, "--json")[1])
        sure = Uncertainty.load(model.with_name("m.replicates.safetensors"))
        expected = sure.interval(lambda pmf: pmf.marginal(["a"]).table() @ np.arange(3))
        for name in ("se", "low", "high"):
            assert said["mean_error"][name] == pytest.approx(expected[name][0])

    def test_without_a_level_nothing_changes(self, model, inside):
        said = json.loads(inside("query", model, "--of", "a", "--json")[1])
        assert set(said["distribution"][0]) == {"levels", "probability"}
        assert "low" not in inside("query", model, "--of", "a")[1]

    def test_bars_are_solid_up_to_the_low_end(self, model, inside):
        code, out, err = inside("query", model, "--of", "a", "--level", 0.9)
        assert code == 0, err
        title, heading, *rows, mean = out.splitlines()
        assert title == "a; from low to high: 90 %"
        assert heading.split() == ["a", "probability", "se", "low", "high"]
        sure = Uncertainty.load(model.with_name("m.replicates.safetensors")).marginal(["a"])
        for row, low, high in zip(rows, sure["low"], sure["high"], strict=True):
            assert f"{100 * low:.1f} %" in row
            assert f"{100 * high:.1f} %" in row
            most = sure["high"].max()
            assert abs(row.count("█") + row.count("░") - 30 * high / most) <= 1.5
            assert abs(row.count("█") - 30 * low / most) <= 1
        assert mean.startswith("mean ")
        assert " to " in mean

    def test_two_variables_are_a_list_of_the_most_likely(self, model, inside):
        out = inside("query", model, "--of", "a", "--of", "b", "--level", 0.9, "--top", 2)[1]
        assert "… and 4 less likely ones" in out
        shares = [float(line.split()[2]) for line in out.splitlines()[2:4]]
        assert shares[0] >= shares[1]

    def test_a_narrow_terminal_has_shorter_bars(self, model, inside, monkeypatch):
        monkeypatch.setenv("COLUMNS", "80")
        rows = inside("query", model, "--of", "a", "--level", 0.9)[1].splitlines()[2:5]
        assert max(len(row.split("%")[-1].strip()) for row in rows) == 14
        assert not any("…" in row for row in rows)

    def test_a_variable_may_be_called_as_a_column_of_the_answer(self, tmp_path, inside):
        solution = jp.fit_rows(TABLE.rename({"a": "low"}), 1, random_state=0)
        solution.save(tmp_path / "m")
        solution.uncertainty(5, random_state=0).save(tmp_path / "m.replicates.safetensors")
        code, _, err = inside("query", tmp_path / "m", "--of", "low", "--level", 0.9)
        assert code == 0, err

    def test_components_that_cannot_be_told_apart_are_a_warning(self, model, inside):
        path = model.with_name("m.replicates.safetensors")
        assert "not clear" not in inside("query", model, "--of", "a", "--level", 0.9)[2]
        sure = Uncertainty.load(path)
        sure.is_clear[1:] = False
        sure.save(path)
        for asked in (("--of", "component"), ("--of", "a", "--given", "component=1")):
            code, _, err = inside("query", model, *asked, "--level", 0.9)
            assert (code, "not clear which component is which" in " ".join(err.split())) == (0, 1)
        assert "not clear" not in inside("query", model, "--of", "a", "--level", 0.9)[2]

    @pytest.mark.parametrize("level", [0, 1, -0.5, 90, "nan"])
    def test_a_level_that_is_none_is_refused(self, model, inside, level):
        code, _, err = inside("query", model, "--of", "a", "--level", level)
        assert (code, "the level must be between 0 and 1, such as 0.9" in err) == (2, True)

    def test_without_replicates_it_says_how_to_make_them(self, model, inside):
        model.with_name("m.replicates.safetensors").unlink()
        code, _, err = inside("query", model, "--of", "a", "--level", 0.9)
        assert (code, "jointpmf fit --replicates 200" in err) == (2, True)

    def test_replicates_of_another_model_are_refused(self, model, inside):
        jp.random_pmf(DOMAIN, 2, 7).save(model)
        code, _, err = inside("query", model, "--of", "a", "--level", 0.9)
        assert (code, "are of another model" in err) == (2, True)

    def test_a_model_from_stdin_has_nothing_beside_it(self, model, inside):
        asked = ("query", "-", "--of", "a", "--level", 0.9)
        code, _, err = inside(*asked, stdin=model.read_bytes())
        assert (code, "give its path, not -" in err) == (2, True)

    def test_what_a_file_of_replicates_is(self, model, inside):
        path = model.with_name("m.replicates.safetensors")
        code, out, err = inside("info", path)
        assert code == 0, err
        assert "replicates" in out
        assert "bayesian" in out
        said = json.loads(inside("info", path, "--json")[1])
        assert [variable["name"] for variable in said["variables"]] == ["a", "b", "c"]
        clear = int(Uncertainty.load(path).is_clear.sum())
        assert said["replicates"] == {
            "number": 20,
            "resampling": "bayesian",
            "rank": 2,
            "clear": clear,
        }
        assert "replicates" not in json.loads(inside("info", model, "--json")[1])

    def test_a_damaged_file_of_replicates_is_one_sentence(self, model, inside):
        path = model.with_name("m.replicates.safetensors")
        path.write_bytes(path.read_bytes()[:-1])
        for asked in (("info", path), ("query", model, "--of", "a", "--level", 0.9)):
            code, _, err = inside(*asked)
            assert (code, "is not a whole file of replicates" in " ".join(err.split())) == (2, True)
