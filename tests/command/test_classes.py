"""`jointpmf classes`: to which components rows belong; and columns that do not match a model."""

import json
import os

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.command.classes import ClassedRows
from jointpmf.data.table_files import open_table
from jointpmf.show.text import count_text

DOMAIN = jp.Domain.of_sizes([3, 3, 2, 3], names=list("abcd"))
PMF = jp.random_pmf(DOMAIN, 3, random_state=1)
WHOLE = PMF.sample(200, random_state=0)
SEEN = np.random.default_rng(0).random(WHOLE.shape) > 0.2
ROWS = WHOLE.with_columns(
    pl.when(pl.Series(SEEN[:, n])).then(name).alias(name) for n, name in enumerate(WHOLE.columns)
)
WEIGHTS = np.random.default_rng(1).gamma(2.0, size=len(ROWS))
TABLE = ROWS.with_columns(
    person=pl.Series([f"no. {k}" for k in range(len(ROWS))]), w=pl.Series(WEIGHTS)
)
LABELS = ["component 0", "component 1", "component 2"]
POSTERIOR = PMF.responsibilities(ROWS)
LIKELY = [int(p.argmax()) if s.any() else None for p, s in zip(POSTERIOR, SEEN, strict=True)]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PMF.save("m.safetensors")
    TABLE.write_csv("t.csv")
    return tmp_path


class TestRows:
    @pytest.mark.parametrize("name", ["o.csv", "o.parquet", "o.ndjson", "o.tsv"])
    def test_each_has_its_posterior_and_the_most_likely(self, files, inside, name):
        code, out, err = inside("classes", "m.safetensors", "t.csv", "-o", name, "--keep", "person")
        assert code == 0, err
        assert out == f"200 rows written to {name}.\n"
        readers = {"o.parquet": pl.read_parquet, "o.ndjson": pl.read_ndjson}
        options = {"separator": "\t"} if name == "o.tsv" else {}
        found = readers.get(name, pl.read_csv)(name, **options)
        assert found.columns == ["row", *LABELS, "most likely", "person"]
        assert found["row"].to_list() == list(range(200))
        np.testing.assert_allclose(found.select(LABELS).to_numpy(), POSTERIOR, atol=1e-12)
        assert found["most likely"].to_list() == LIKELY
        assert found["person"].to_list() == TABLE["person"].to_list()

    def test_on_stdout(self, files, inside):
        code, out, _ = inside("classes", "m.safetensors", "t.csv", "-o", "-")
        assert code == 0
        assert out.startswith("row,component 0,component 1,component 2,most likely\n0,")
        assert out.count("\n") == 201
        _, out, _ = inside("classes", "m.safetensors", "t.csv", "-o", "-", "--json")
        assert json.loads(out.splitlines()[7])["row"] == 7

    def test_in_pieces_they_are_the_same(self, files):
        with open_table("t.csv", batch_bytes=300) as table:
            rows = ClassedRows(PMF, table, ["person"], "w", max_numbers=3 * 4)
            batches = list(rows.batches("error"))
            whole = ClassedRows(PMF, table, ["person"], "w")
            together = pl.concat(whole.batches("error"))
        assert len(batches) > 50
        assert pl.concat(batches).equals(together)
        for parts, one in zip(rows.components.sizes(), whole.components.sizes(), strict=True):
            assert parts == pytest.approx(one, rel=1e-12)

    def test_kept_columns_are_as_they_were(self, files, inside):
        ROWS.with_columns(a=pl.Series(["strange", *["1"] * 199])).write_csv("strange.csv")
        options = ("--unknown", "missing", "--keep", "a", "--keep", "a", "-o", "o.csv")
        assert inside("classes", "m.safetensors", "strange.csv", *options)[0] == 0
        assert pl.read_csv("o.csv")["a"].to_list() == ["strange", *["1"] * 199]

    def test_impossible_rows_are_counted(self, files, inside):
        sure = jp.JointPMF(
            jp.Domain.of_sizes([2, 2], names=["a", "b"]), [0.4, 0.6], [np.eye(2)] * 2
        )
        sure.save("sure.safetensors")
        pl.DataFrame({"a": [0, 0, 1], "b": [0, 1, 0]}).write_csv("odd.csv")
        code, out, err = inside("classes", "sure.safetensors", "odd.csv", "-o", "-")
        assert code == 0
        assert "2 rows have probability zero, row 1 first" in err
        assert out.splitlines()[2] == "1,0.4,0.6,1"

    @pytest.mark.parametrize("names", [None, ["young", "old", "in between"]])
    def test_they_are_those_of_the_summary(self, files, inside, names):
        pmf = PMF.reordered(range(3), names)
        pmf.save("named.safetensors")
        hidden = ROWS.with_columns(
            pl.when(pl.int_range(len(ROWS)) != 5).then(name).alias(name) for name in ROWS.columns
        )
        hidden.write_csv("hidden.csv")
        code, _, err = inside("classes", "named.safetensors", "hidden.csv", "-o", "o.csv")
        assert code == 0
        n_empty = sum(map(all, (~SEEN).tolist())) + SEEN[5].any()
        assert f"{count_text(n_empty, 'row')} without any observed cell: no most likely" in err
        told = jp.summary(pmf, hidden)
        expected = told.posteriors()
        found = pl.read_csv("o.csv")
        assert found.columns == ["row", *expected.columns]
        assert found["most likely"].to_list() == expected["most likely"].to_list()
        assert found["most likely"][5] is None
        _, out, _ = inside("classes", "named.safetensors", "hidden.csv", "--json")
        for f, size in enumerate(json.loads(out)["components"]):
            assert size["component"] == (f if names is None else names[f])
            assert size["by_posterior"] == pytest.approx(told.sizes.by_posterior[0, f])
            assert size["by_component"] == pytest.approx(told.sizes.by_component[0, f])
        _, out, _ = inside("classes", "named.safetensors", "hidden.csv")
        assert out.splitlines()[1].split(" ")[0] == ("0" if names is None else "young")

    def test_where_nothing_is_observed_there_are_no_sizes(self, files, inside):
        (files / "empty.csv").write_text("a,b\n,\n,\n")
        code, out, err = inside("classes", "m.safetensors", "empty.csv")
        assert code == 0
        assert "2 rows without any observed cell" in err
        assert out.splitlines()[1].split()[-2:] == ["–", "–"]


class TestSizes:
    @pytest.mark.parametrize("weights", [None, "w"])
    def test_those_of_the_model_and_of_the_rows(self, files, inside, weights):
        more = () if weights is None else ("--weights", weights)
        code, out, _ = inside("classes", "m.safetensors", "t.csv", "--json", *more)
        assert code == 0
        said, counted = json.loads(out), np.ones(200) if weights is None else WEIGHTS
        share = np.bincount(POSTERIOR.argmax(axis=1), counted, minlength=3) / counted.sum()
        mean = counted @ POSTERIOR / counted.sum()
        assert said["rows"] == 200
        for f, size in enumerate(said["components"]):
            assert size["component"] == f
            assert size["weight"] == PMF.weights[f]
            assert size["by_component"] == pytest.approx(share[f], rel=1e-12)
            assert size["by_posterior"] == pytest.approx(mean[f], rel=1e-12)
        _, out, _ = inside("classes", "m.safetensors", "t.csv", *more)
        lines = out.splitlines()
        assert lines[0].split("  ")[0] == "component"
        assert lines[1].startswith("0 ")
        assert f"{100 * share[0]:.1f} %" in lines[1]
        assert lines[-1] == ("200 rows." if weights is None else "200 rows, by weight.")


BAD = [
    (["--keep", "colour"], "there is no column 'colour'"),
    (["--weights", "colour"], "there is no column 'colour' of weights"),
    (["--weights", "a"], "'a' is a variable of the model, and cannot be its weights"),
    (["--weights", "person"], "column 'person' holds 'no. 0' in row 0, but a weight must be"),
    (["--unknown", "x"], "not 'x'"),
    (["-o", "o.docx"], "must end in"),
    (["-o", "none/o.csv"], "No such file or directory"),
    (["-o", "t.csv"], "the output would replace the data t.csv"),
    (["-o", "link.csv"], "the output would replace the data t.csv"),
    (["-o", "hard.csv"], "the output would replace the data t.csv"),
]


@pytest.mark.parametrize(("options", "says"), BAD, ids=[says for _, says in BAD])
def test_bad_input_is_one_sentence(files, inside, options, says):
    os.symlink("t.csv", "link.csv")
    os.link("t.csv", "hard.csv")
    before = (files / "t.csv").read_bytes()
    code, _, err = inside("classes", "m.safetensors", "t.csv", *options)
    assert code == 2, err
    assert err.count("\n") == 1
    assert says in err
    assert (files / "t.csv").read_bytes() == before


def test_a_column_of_a_name_that_is_written_cannot_be_kept(files, inside):
    TABLE.rename({"person": "most likely"}).write_csv("clash.csv")
    code, _, err = inside("classes", "m.safetensors", "clash.csv", "--keep", "most likely")
    assert code == 2
    assert "column 'most likely' of the table cannot be kept" in err
    assert inside("classes", "m.safetensors", "clash.csv", "-o", "o.csv")[0] == 0


@pytest.mark.parametrize("name", ["row", "most likely"])
def test_a_component_of_the_name_of_a_column_that_is_written(files, inside, name):
    PMF.reordered(names=["x", name, "y"]).save("clash.safetensors")
    code, _, err = inside("classes", "clash.safetensors", "t.csv")
    assert code == 2
    assert f"a component is called {name!r}, and so is a column beside" in err


@pytest.mark.parametrize("header", ["a,b,c,d\n", "colour\nred\n"])
def test_a_table_of_nothing(files, inside, header):
    (files / "nothing.csv").write_text(header)
    code, _, err = inside("classes", "m.safetensors", "nothing.csv", "-o", "o.csv")
    assert code == 2
    assert "nothing.csv has no rows" in err or "none of the variables" in err
    assert not (files / "o.csv").exists()


class TestColumnsThatDoNotMatch:
    """`score`, `classes` and `impute` say which columns they did not use, or had to do without."""

    def test_on_stderr(self, files, inside):
        some = TABLE.drop("b", "d").filter(pl.any_horizontal(pl.col("a", "c").is_not_null()))
        some.write_csv("some.csv")
        lacking = "taken as missing: 'b', 'd' of the model, not in the table\n"
        both = "2 columns of the table that are not in the model, 'person', 'w'\n"
        for command, fate in (
            ("score", "left out"),
            ("classes", "left out"),
            ("impute", "unchanged"),
        ):
            for more in ([], ["-o", "o.csv"], ["-o", "-", "--json"]):
                code, _, err = inside(command, "m.safetensors", "some.csv", *more)
                assert code == 0
                assert err == f"jointpmf: {fate}: {both}jointpmf: {lacking}"

    def test_what_is_used_is_not_left_out(self, files, inside):
        _, _, err = inside("classes", "m.safetensors", "t.csv", "--weights", "w")
        left = "left out: 1 column of the table that is not in the model, 'person'"
        assert err == f"jointpmf: {left}\n"
        assert (
            inside("classes", "m.safetensors", "t.csv", "--weights", "w", "--keep", "person")[2]
            == ""
        )
        ROWS.write_csv("all.csv")
        for command in ("score", "classes", "impute"):
            assert inside(command, "m.safetensors", "all.csv")[2] == ""

    def test_beside_the_least_likely_rows(self, files, inside):
        assert "'person', 'w'" in inside("score", "m.safetensors", "t.csv", "--worst", 3)[2]

    @pytest.mark.parametrize("command", ["score", "classes", "impute"])
    def test_for_machines(self, files, inside, command):
        TABLE.drop("b").write_csv("some.csv")
        _, out, err = inside(command, "m.safetensors", "some.csv", "-o", "o.csv", "--json")
        assert err == ""
        said = json.loads(out)
        assert (said["left_out"], said["lacking"]) == (["person", "w"], ["b"])
