"""`jointpmf impute --draws`: several completed tables in one file, from replicates if there are."""

import json

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.judge.uncertainty import Uncertainty

DOMAIN = jp.Domain([jp.Variable("party", ("left", "right")), jp.Variable("rating", (1, 2, 3))])
PMF = jp.random_pmf(DOMAIN, 2, random_state=0)
N_ROWS = 200


def holes():
    """Return a table with a column that the model does not know, and holes in the others."""
    rows = PMF.sample(N_ROWS, random_state=0)
    note = pl.Series("note", [f"row {k}" for k in range(N_ROWS)])
    is_hole = pl.int_range(pl.len()) % 3 == 0
    return rows.with_columns(note, pl.when(~is_hole).then("rating").alias("rating"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table, a model with replicates beside it, and one without."""
    here = tmp_path_factory.mktemp("impute")
    holes().write_csv(here / "holes.csv")
    holes().rename({"note": "draw"}).write_csv(here / "drawn.csv")
    rows = holes().drop("note")
    solution = jp.fit_rows(rows, 2, domain=DOMAIN, random_state=0)
    solution.save(here / "model.safetensors")
    solution.save(here / "alone.safetensors")
    solution.uncertainty(6, random_state=0).save(here / "model.replicates.safetensors")
    return here


def drawn(inside, folder, model, *options):
    code, out, err = inside(
        "impute", folder / f"{model}.safetensors", folder / "holes.csv", "--draws", 3, *options
    )
    assert code == 0, err
    return out, err


@pytest.mark.parametrize("model", ["model", "alone"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "ndjson"])
def test_tables_are_below_each_other_with_their_number(folder, tmp_path, inside, model, kind):
    path = tmp_path / f"tables.{kind}"
    said = json.loads(drawn(inside, folder, model, "-o", path, "--json")[0])
    counts = {"rows": N_ROWS, "filled": holes()["rating"].null_count(), "draws": 3}
    assert said.items() >= counts.items()
    read = {"csv": pl.read_csv, "parquet": pl.read_parquet, "ndjson": pl.read_ndjson}[kind]
    tables = read(path)
    assert tables.columns == ["draw", *holes().columns]
    assert tables["draw"].to_list() == [1] * N_ROWS + [2] * N_ROWS + [3] * N_ROWS
    assert tables.null_count().sum_horizontal().item() == 0
    known = holes()["rating"].is_not_null()
    parts = [part.drop("draw") for part in tables.partition_by("draw", maintain_order=True)]
    for part in parts:
        assert part.drop("rating").equals(holes().drop("rating"))
        assert part["rating"].filter(known).equals(holes()["rating"].filter(known))
    assert len({tuple(part["rating"]) for part in parts}) == 3


def test_the_tables_are_those_of_the_library(folder, inside):
    out, err = drawn(inside, folder, "model", "--seed", 4)
    assert "one model" not in err
    sure = Uncertainty.load(folder / "model.replicates.safetensors")
    expected = jp.impute(sure, holes(), n_draws=3, random_state=4)
    ratings = pl.read_csv(out.encode())["rating"].to_list()
    assert ratings == [cell for table in expected for cell in table["rating"]]


def test_from_one_model_it_warns_of_errors_that_are_too_small(folder, inside):
    out, err = drawn(inside, folder, "alone", "--seed", 4)
    assert "the one model" in err
    assert "too small" in err
    pmf = jp.load(folder / "alone.safetensors")
    expected = jp.impute(pmf, holes(), n_draws=3, random_state=4)
    ratings = pl.read_csv(out.encode())["rating"].to_list()
    assert ratings == [cell for table in expected for cell in table["rating"]]


def test_a_table_from_stdin_is_read_as_often_as_needed(folder, inside):
    rows = (folder / "holes.csv").read_bytes()
    model = folder / "model.safetensors"
    code, out, err = inside("impute", model, "-", "--draws", 3, "--strategy", "sample", stdin=rows)
    assert code == 0, err
    assert out == drawn(inside, folder, "model")[0]


def test_it_says_how_often_cells_were_drawn(folder, tmp_path, inside):
    path = tmp_path / "tables.csv"
    n_holes = holes()["rating"].null_count()
    said = f"{n_holes} cells of {N_ROWS} rows drawn 3 times; written to {path}."
    assert drawn(inside, folder, "model", "-o", path)[0].split() == said.split()


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ("holes", ["--draws", 0], "greater than or equal to 1"),
        ("holes", ["--draws", 7], "6 replicates for 7 draws"),
        ("holes", ["--draws", 2, "--strategy", "mode"], "must be 'sample', not 'mode'"),
        ("drawn", ["--draws", 2], "column 'draw' already"),
    ],
)
def test_what_cannot_be_drawn_is_refused_and_nothing_written(
    folder, tmp_path, inside, table, options, message
):
    path = tmp_path / "tables.csv"
    model = folder / "model.safetensors"
    code, _, err = inside("impute", model, folder / f"{table}.csv", "-o", path, *options)
    assert code == 2
    assert message in err
    assert not path.exists()


def test_a_long_table_is_drawn_batch_by_batch(folder, tmp_path, inside):
    many = pl.concat([holes()] * 600)
    many.write_csv(tmp_path / "many.csv")
    path = tmp_path / "tables.parquet"
    code, _, err = inside(
        "impute", folder / "model.safetensors", tmp_path / "many.csv", "-o", path, "--draws", 2
    )
    assert code == 0, err
    tables = pl.read_parquet(path)
    assert tables["draw"].to_list() == list(np.repeat([1, 2], len(many)))
    assert tables["note"].to_list() == 2 * many["note"].to_list()


AS_IT_CAME = (
    'id,party,"a ""note""",rating,more\n'
    'NA,left,nan,2,""\n'
    'null,NA," NA ",3,\n'
    '007,right,"x, ""y""",,1.50\n'
)


@pytest.mark.parametrize("place", [["-o", "out.csv"], ["--in-place"]], ids=" ".join)
def test_cells_that_the_model_does_not_know_stay_as_they_came(
    inside, folder, tmp_path, monkeypatch, place
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(AS_IT_CAME)
    code, _, err = inside("impute", folder / "alone.safetensors", "rows.csv", *place)
    assert code == 0, err
    out = (tmp_path / ("rows.csv" if place == ["--in-place"] else "out.csv")).read_text()
    known = pl.read_csv(out.encode())["party", "rating"]
    assert known.null_count().row(0) == (0, 0)
    assert out.splitlines()[0] == AS_IT_CAME.splitlines()[0]
    party, rating = known.row(1)[0], known.row(2)[1]
    assert out.splitlines()[1:] == [
        'NA,left,nan,2,""',
        f"null,{party}, NA ,3,",
        f'007,right,"x, ""y""",{rating},1.50',
    ]


def test_kept_columns_and_the_worst_rows_stay_as_they_came(inside, folder, tmp_path):
    (tmp_path / "rows.csv").write_text(AS_IT_CAME)
    model, rows = folder / "alone.safetensors", tmp_path / "rows.csv"
    out = inside("classes", model, rows, "--keep", "id", "-o", "-")[1]
    assert pl.read_csv(out.encode(), infer_schema=False)["id"].to_list() == ["NA", "null", "007"]
    out = inside("score", model, rows, "--worst", "3", "-o", tmp_path / "worst.csv")[1]
    worst = pl.read_csv(tmp_path / "worst.csv", infer_schema=False).sort("row")
    assert worst["id"].to_list() == ["NA", "null", "007"]
