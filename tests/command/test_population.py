"""`jointpmf population`: files in, rows and what is left of each table out."""

import json

import polars as pl
import pytest

import jointpmf as jp
from jointpmf.command.main import main


@pytest.fixture
def files(tmp_path):
    """Return a model and two tables on disk."""
    domain = jp.Domain([jp.Variable("sex", ("f", "m")), jp.Variable("vote", ("no", "yes"))])
    pmf = jp.JointPMF(domain, [0.4, 0.6], [[[0.5, 0.6], [0.5, 0.4]], [[0.9, 0.2], [0.1, 0.8]]])
    pmf.save(tmp_path / "model.safetensors")
    # the order of levels is not that of the model
    pl.DataFrame({"vote": ["yes", "no"], "count": [700, 300]}).write_csv(tmp_path / "vote.csv")
    both = {"sex": ["m", "m", "f"], "vote": ["yes", "no", "yes"], "count": [40, 30, 30]}
    pl.DataFrame(both).write_csv(tmp_path / "both.csv")
    pl.DataFrame({"colour": ["red"], "count": [3]}).write_csv(tmp_path / "colour.csv")
    return tmp_path


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code, *capsys.readouterr()


def test_rows_are_written_and_what_is_left_is_said(files, capsys):
    tables = ["--match", files / "vote.csv", "--match", files / "both.csv"]
    place = files / "people.csv"
    code, out, _ = run(
        capsys, "population", files / "model.safetensors", "-n", 50, *tables, "-o", place
    )
    rows = pl.read_csv(place)
    assert code == 0
    assert rows["vote"].value_counts().sort("vote")["count"].to_list() == [15, 35]
    assert len(rows.filter(sex="m", vote="yes")) == 20
    lines = [line.split() for line in out.splitlines()]
    assert ["vote", "0.000%", "0.00"] in lines
    assert ["sex,", "vote", "0.000%", "0.00"] in lines
    assert "50 rows, written to" in out


def test_machines_get_json(files, capsys):
    code, out, err = run(
        capsys,
        *("population", files / "model.safetensors", "-n", 10, "--json"),
        *("--match", files / "vote.csv"),
    )
    left = json.loads(err)
    assert code == 0
    assert [json.loads(line)["vote"] for line in out.splitlines()].count("yes") == 7
    assert left["tables"][0]["table"] == "vote"
    assert left["rows"] == 10
    assert not left["stopped"]


def test_without_tables_rows_are_drawn(files, capsys):
    code, out, err = run(capsys, "population", files / "model.safetensors", "-n", 10)
    assert code == 0
    assert len(out.splitlines()) == 11
    assert "10 rows, written to stdout." in err


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("-n", "0"), "the number of rows must be a whole number of at least 1, not 0"),
        (
            ("-n", "5", "--match", "colour.csv"),
            "colour.csv is about 'colour', but the model's variables are 'sex', 'vote'",
        ),
        (("-n", "5", "-o", "people.docx"), "people.docx must end in .csv"),
    ],
)
def test_bad_input_is_a_sentence(files, capsys, monkeypatch, more, sentence):
    monkeypatch.chdir(files)
    code, _, err = run(capsys, "population", "model.safetensors", *more)
    assert code == 2
    assert sentence in err
    assert not (files / "people.docx").exists()


def test_tables_are_read_in_the_levels_of_the_model(files, capsys):
    text = 'version = 1\n[[tables]]\npath = "wide.csv"\nnames = ["vote", "sex"]\n'
    (files / "tables.toml").write_text(text)
    (files / "wide.csv").write_text("vote,m,f,Total\nyes,40,30,70\nno,30,0,30\nTotal,70,30,100\n")
    place = files / "people.csv"
    options = ["-n", 10, "--match", files / "tables.toml", "-o", place]
    assert run(capsys, "population", files / "model.safetensors", *options)[0] == 0
    counts = pl.read_csv(place).group_by("sex", "vote").len().sort("sex", "vote").rows()
    assert counts == [("f", "yes", 3), ("m", "no", 3), ("m", "yes", 4)]
