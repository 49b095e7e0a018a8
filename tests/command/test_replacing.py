"""No command writes onto what it reads, by whatever name that is called."""

import os
import shutil
import sys

import polars as pl
import pytest

import jointpmf as jp
from jointpmf.command.main import main
from jointpmf.command.models import check_place

PMF = jp.random_pmf(jp.Domain.of_sizes([2, 3], names=["a", "b"]), rank=2, random_state=0)
TABLE = "a,b,count\n0,0,1\n0,1,2\n0,2,1\n1,0,3\n1,1,1\n1,2,4\n"
LIST = 'version = 1\n[[tables]]\npath = "table.csv"\n'


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PMF.sample(20, random_state=0).write_csv("rows.csv")
    (tmp_path / "parts").mkdir()
    pl.read_csv("rows.csv").write_parquet("parts/one.parquet")
    PMF.save("m.safetensors")
    shutil.copy("m.safetensors", "model.csv")
    shutil.copy("m.safetensors", "m.replicates.safetensors")
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "tables.toml").write_text(LIST)
    for name in ("rows", "model", "table"):
        os.symlink(f"{name}.csv", f"soft-{name}.csv")
        os.link(f"{name}.csv", f"hard-{name}.csv")
    return tmp_path


COMMANDS = [
    ("fit rows.csv -o rows.csv", "the model would replace the data rows.csv"),
    ("fit rows.csv -o soft-rows.csv", "the model would replace the data rows.csv"),
    ("fit rows.csv -o hard-rows.csv", "the model would replace the data rows.csv"),
    ("fit rows.csv -o parts/../rows.csv", "the model would replace the data rows.csv"),
    ("fit soft-rows.csv -o rows.csv", "the model would replace the data soft-rows.csv"),
    ("fit parts -o parts/one.parquet", "the model would replace the data parts"),
    ("fit --marginals table.csv -o table.csv", "the model would replace the data table.csv"),
    ("fit tables.toml -o tables.toml", "the model would replace the data tables.toml"),
    ("fit tables.toml -o table.csv", "the model would replace the data tables.toml"),
    (
        "fit m.replicates.safetensors -o m.safetensors --replicates 9",
        "the replicates would replace the data m.replicates.safetensors",
    ),
    ("score m.safetensors rows.csv -o rows.csv", "the output would replace the data rows.csv"),
    ("score m.safetensors rows.csv -o soft-rows.csv", "the output would replace the data rows.csv"),
    ("score m.safetensors rows.csv -o hard-rows.csv", "the output would replace the data rows.csv"),
    ("score model.csv rows.csv -o model.csv", "the output would replace the model model.csv"),
    ("score m.safetensors parts -o parts/one.parquet", "the output would replace the data parts"),
    ("sample model.csv -o model.csv", "the output would replace the model model.csv"),
    ("sample model.csv -o soft-model.csv", "the output would replace the model model.csv"),
    ("classes model.csv rows.csv -o model.csv", "the output would replace the model model.csv"),
    ("impute m.safetensors rows.csv -o rows.csv", "or say --in-place"),
    ("impute m.safetensors rows.csv -o soft-rows.csv", "or say --in-place"),
    ("impute m.safetensors rows.csv -o hard-rows.csv", "or say --in-place"),
    ("impute model.csv rows.csv -o model.csv", "would replace the model model.csv"),
    ("impute model.csv model.csv --in-place", "the output would replace the model model.csv"),
    ("impute m.safetensors rows.csv -o new.csv --in-place", "writes to rows.csv, not to new.csv"),
    ("impute m.safetensors - --in-place", "stdin cannot be replaced"),
    ("population model.csv -n 9 -o model.csv", "the output would replace the model model.csv"),
    (
        "population m.safetensors -n 9 --match table.csv -o hard-table.csv",
        "the output would replace the table table.csv",
    ),
    (
        "population m.safetensors -n 9 --match tables.toml -o table.csv",
        "the output would replace the table tables.toml",
    ),
    ("explore m.safetensors -o m.safetensors", "the page would replace the model m.safetensors"),
    ("explore m.safetensors -o m.replicates.safetensors", "would replace the replicates"),
    ("report m.safetensors rows.csv -o hard-rows.csv", "the page would replace the data rows.csv"),
]


def content_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(("line", "says"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_a_command_refuses_to_replace_what_it_reads(here, inside, line, says):
    before = content_of(here)
    code, out, err = inside(*line.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert content_of(here) == before


@pytest.mark.parametrize("name", ["rows.csv", "soft-rows.csv", "hard-rows.csv"])
def test_stdin_is_the_file_that_it_comes_from(here, capsys, monkeypatch, name):
    with open("rows.csv") as rows:
        monkeypatch.setattr(sys, "stdin", rows)
        with pytest.raises(SystemExit) as ended:
            main(["fit", "-", "-o", name])
    assert ended.value.code == 2
    assert "the model would replace the data that comes from stdin" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["rows.csv", "hard-rows.csv"])
def test_stdout_is_the_file_that_it_goes_to(here, capsys, monkeypatch, name):
    before = (here / "rows.csv").read_bytes()
    with open(name, "a") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        with pytest.raises(SystemExit) as ended:
            main(["score", "m.safetensors", "rows.csv"])
    assert ended.value.code == 2
    assert "the output would replace the data rows.csv" in capsys.readouterr().err
    assert (here / "rows.csv").read_bytes() == before


def test_a_table_is_filled_in_place_if_that_is_said(here, inside):
    (here / "holes.csv").write_text("a,b,id\n0,,x\n,1,y\n1,2,z\n")
    os.symlink("holes.csv", "link.csv")
    code, out, _ = inside("impute", "m.safetensors", "link.csv", "--in-place")
    assert (code, out) == (0, "2 cells of 3 rows filled; written to link.csv.\n")
    filled = pl.read_csv(here / "holes.csv")
    assert filled["id"].to_list() == ["x", "y", "z"]
    assert filled.null_count().row(0) == (0, 0, 0)
    assert os.path.islink("link.csv")
    assert inside("impute", "m.safetensors", "holes.csv", "-o", "link.csv", "--in-place")[0] == 0


def test_what_is_new_or_else_may_be_written(here, inside):
    assert inside("score", "m.safetensors", "rows.csv", "-o", "table.csv")[0] == 0
    assert inside("fit", "rows.csv", "-o", "/dev/null", "--rank", "1")[0] == 0
    assert inside("fit", "rows.csv", "-o", "m.safetensors", "--rank", "1")[0] == 0


def test_where_nothing_may_be_written_no_fit_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _: path != str(tmp_path))
    with pytest.raises(jp.JointPMFError, match="permission denied"):
        check_place(str(tmp_path / "m"))
    check_place(os.devnull)
    check_place("-")
