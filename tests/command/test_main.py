"""The installed command, run as a person would run it."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.command import demo
from jointpmf.command.main import app, main
from jointpmf.data.datasets import anes96
from jointpmf.fit import memory
from jointpmf.model_file import read_about, write_model
from support.traits import planted, pmf_of

COMMAND = str(Path(sys.executable).with_name("jointpmf"))
ENVIRONMENT = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
NAMES = [
    "fit",
    "query",
    "explore",
    "report",
    "impute",
    "check",
    "sample",
    "population",
    "score",
    "classes",
    "info",
    "identify",
    "demo",
    "version",
]


def run(*arguments, **options):
    options = {"capture_output": True, "text": True, "env": ENVIRONMENT, "timeout": 120} | options
    return subprocess.run([COMMAND, *map(str, arguments)], **options)


def survey():
    """Return 300 people, some of whose answers are not known."""
    generator = np.random.default_rng(0)
    kind = generator.random(300) < 0.5
    table = pl.DataFrame(
        {
            "party": np.where(generator.random(300) < 0.9, kind, ~kind),
            "age": generator.integers(18, 90, 300) + 0.5,
            "member": np.where(kind, "yes", "no"),
            "rating": np.where(kind, generator.integers(3, 6, 300), generator.integers(1, 4, 300)),
        }
    ).with_columns(pl.when("party").then(pl.lit("left")).otherwise(pl.lit("right")).alias("party"))
    hidden = pl.Series(generator.random(300) < 0.2)
    return table.with_columns(pl.when(~hidden).then("rating").alias("rating"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("command")
    survey().write_csv(path / "survey.csv")
    options = ["--rank", "2", "--bins", "age=4"]
    with pytest.raises(SystemExit) as ended:
        main(["fit", f"{path}/survey.csv", "-o", f"{path}/model.safetensors", *options])
    assert ended.value.code == 0
    return path


def test_the_demo_beats_the_most_common_answer_and_shows_queries(inside):
    code, out, err = inside("demo")
    assert code == 0, err
    total = next(line for line in out.splitlines() if "│ all" in line)
    gain = float(total.split("│")[-2])
    assert gain > 5
    assert out.count(">>> pmf.") == len(demo.QUERIES) == 3
    assert "Dole" in out


def test_the_demo_for_machines(inside):
    code, out, _ = inside("demo", "--json")
    assert code == 0
    assert {"name", "n_hidden", "most_common", "predicted"} == set(json.loads(out)["questions"][0])


def test_the_version_and_the_help(inside):
    assert run("version").stdout.strip() == jp.__version__
    assert json.loads(inside("version", "--json")[1]) == {"version": jp.__version__}
    code, out, _ = inside("--help")
    assert code == 0
    for word in (*NAMES, "jointpmf demo"):
        assert word in out
    code, out, err = inside()
    assert (code, err) == (2, "")
    assert "Usage" in out


def test_the_help_loads_nothing_heavy():
    code = (
        "import sys, jointpmf.command.main; print([m for m in "
        "('numpy', 'numba', 'polars', 'pandas', 'scipy', 'sklearn') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_each_command_has_an_example_and_json(inside, name):
    code, out, _ = inside(name, "--help")
    assert code == 0
    assert "Example:" in out
    assert f"jointpmf {name}" in out
    assert "--json" in out
    assert [command.callback.__name__ for command in app.registered_commands] == NAMES


def test_completion_names_the_commands():
    environment = ENVIRONMENT | {
        "_JOINTPMF_COMPLETE": "complete_bash",
        "COMP_WORDS": "jointpmf i",
        "COMP_CWORD": "1",
    }
    assert run(env=environment).stdout.split() == ["impute", "info", "identify"]


def test_an_unknown_command_is_a_usage_error():
    result = run("dance")
    assert result.returncode == 2
    assert result.stderr == "jointpmf: no such command 'dance'; see jointpmf --help\n"


def test_a_fit_from_csv_says_how_it_went_and_can_be_asked(folder, inside):
    model = folder / "again.safetensors"
    arguments = ("fit", folder / "survey.csv", "-o", model, "--rank", 2, "--bins", "age=4")
    code, out, err = inside(*arguments)
    assert code == 0, err
    assert out.startswith("The objective stopped improving.\n300 rows, 4 variables")
    assert model.read_bytes() == (folder / "model.safetensors").read_bytes()
    bins = {"age": 4}
    expected = jp.fit_rows(survey(), 2, bins=bins, random_state=0).pmf
    found = jp.load(model)
    assert found.domain == expected.domain
    np.testing.assert_array_equal(found.weights, expected.weights)
    given = ("--given", "member=yes", "--given", "age=20")
    _, asked, _ = inside("query", model, "--of", "rating", *given)
    assert asked.startswith(f"rating, given member = yes, age = {found.domain['age'].levels[0]}")
    assert asked.count("█") > 10
    assert "mean" in asked


def test_the_rank_is_found_by_itself(folder, tmp_path, inside):
    model = tmp_path / "m.safetensors"
    code, out, err = inside("fit", folder / "survey.csv", "-o", model, "--drop", "age", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert said["converged"]
    assert said["rank"] == jp.load(model).rank
    assert said["about"] == read_about(model)
    about = said["about"]
    assert {"method", "rows", "rank", "status", "objective", "seed", "library"} <= set(about)
    assert int(about["averaged"]) > 1


def test_a_model_says_how_many_starts_agreed(folder):
    about = read_about(folder / "model.safetensors")
    assert 1 <= int(about["agreed"]) <= int(about["starts"])
    assert about["start"] in ("merged rows", "rows", "random")
    assert "averaged" not in about


@pytest.mark.parametrize(
    "name", ["t.tsv", "t.csv.gz", "t.csv.zst", "t.parquet", "t.ndjson", "t.ndjson.gz", "t.data"]
)
def test_every_kind_of_table_gives_the_same_model(folder, tmp_path, inside, name):
    path = tmp_path / name
    table = survey()
    squeeze = {"gz": "gzip", "zst": "zstd"}.get(name.split(".")[-1], "uncompressed")
    if "ndjson" in name:
        table.write_ndjson(path, compression=squeeze)
    elif "parquet" in name:
        table.write_parquet(path)
    else:
        separator = {"t.tsv": "\t", "t.data": ";"}.get(name, ",")
        table.write_csv(path, separator=separator, compression=squeeze, check_extension=False)
    model = tmp_path / "m.safetensors"
    code, _, err = inside("fit", path, "-o", model, "--rank", 2, "--bins", "age=4")
    assert code == 0, err
    assert model.read_bytes() == (folder / "model.safetensors").read_bytes()


def test_stdin_and_stdout_do_as_files(folder, inside):
    content = (folder / "survey.csv").read_bytes()
    options = ("--rank", 2, "--bins", "age=4")
    fitted = run("fit", "-", "-o", "-", *options, input=content, text=False)
    assert fitted.stdout == (folder / "model.safetensors").read_bytes()
    assert b"Written to stdout" in fitted.stderr
    _, shown, _ = inside("info", "-", "--json", stdin=fitted.stdout)
    assert json.loads(shown)["rank"] == 2
    _, scored, _ = inside("score", folder / "model.safetensors", "-", stdin=content)
    assert scored.count("\n") == 301


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A table of more text than is read at a time."""
    path = tmp_path_factory.mktemp("large") / "rows.csv"
    pl.concat([survey()] * 600).write_csv(path)
    assert path.stat().st_size > 2**21
    return path


def test_a_table_larger_than_a_batch_is_fitted_whole(large, tmp_path, inside):
    options = ("--rank", 2, "--bins", "age=4")
    code, _, err = inside("fit", large, "-o", tmp_path / "m", *options)
    assert code == 0, err
    expected = jp.fit_rows(pl.read_csv(large), 2, bins={"age": 4}, random_state=0)
    assert read_about(tmp_path / "m")["objective"] == f"{expected.objective:.10g}"
    for one, other in zip(jp.load(tmp_path / "m").factors, expected.pmf.factors, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_table_larger_than_a_batch_is_filled_and_scored_whole(large, folder, tmp_path, inside):
    model, table = folder / "model.safetensors", pl.read_csv(large)
    assert inside("impute", model, large, "-o", tmp_path / "whole.csv")[0] == 0
    filled = pl.read_csv(tmp_path / "whole.csv")
    small = pl.read_csv(folder / "survey.csv")
    strategy = dict.fromkeys(small.columns, "auto")
    assert filled.equals(pl.concat([jp.impute(jp.load(model), small, strategy)] * 600))
    assert inside("score", model, large, "-o", tmp_path / "logs.csv")[0] == 0
    logs = pl.read_csv(tmp_path / "logs.csv")
    np.testing.assert_allclose(logs["log_probability"], jp.load(model).log_probability(table))
    assert logs["row"].to_list() == list(range(len(table)))


def test_a_bad_row_is_named_in_any_batch(large, folder, tmp_path, inside):
    bad = tmp_path / "bad.csv"
    bad.write_text(large.read_text() + "left,20,maybe,3\n")
    code, _, err = inside("score", folder / "model.safetensors", bad)
    assert code == 2
    assert "'member' holds 'maybe' in row 180000" in err


class TestMemory:
    """With codes on disk a fit is the same, and what cannot be done is said."""

    OPTIONS = ("--bins", "age=4", "--memory", "3GB")

    def fit(self, inside, data, path, *options):
        code, _, err = inside("fit", data, "-o", path, "--tol", 1e-12, *options)
        assert code == 0, err
        return jp.load(path), read_about(path), err

    @pytest.fixture
    def crowded(self, monkeypatch):
        """Let this process take so much that there are 10 kB left of 3 GB: for 100 rows."""
        monkeypatch.setattr(memory, "used_bytes", lambda: 0)
        taken = memory.Room(3 * 10**9).free - 10_000
        monkeypatch.setattr(memory, "used_bytes", lambda: taken)

    def test_rows_on_disk_give_the_same_model(self, folder, tmp_path, inside, crowded, caplog):
        caplog.set_level("INFO", "jointpmf")
        data, options = folder / "survey.csv", ("--rank", 2, "--smoothing", 0.5)
        pmf, about, _ = self.fit(inside, data, tmp_path / "disk", *options, *self.OPTIONS)
        assert "the codes of 300 rows are on disk" in caplog.text
        bins = self.OPTIONS[:2]
        other, beside, _ = self.fit(inside, data, tmp_path / "memory", *options, *bins)
        assert about["rows"] == beside["rows"] == "300"
        assert float(about["objective"]) == pytest.approx(float(beside["objective"]), abs=1e-8)
        assert pmf.domain == other.domain

    def test_the_rank_is_found_on_a_sample_which_is_said(self, large, tmp_path, inside, crowded):
        path = tmp_path / "model"
        code, _, err = inside("fit", large, "-o", path, "--bins", "age=12", "--memory", "3GB")
        assert code == 0, err
        said = re.search(r"a sample of (\d+) of the 180000 rows was fitted", err)
        assert 50 < int(said[1]) <= 110
        assert "with a given rank all are fitted" in err
        about = read_about(path)
        assert about["source"] == f"a sample of {said[1]} of 180000 rows"
        assert about["rows"] == "180000"

    def test_a_folder_of_parquet_files_is_one_table(self, folder, tmp_path, inside):
        table = pl.read_csv(folder / "survey.csv")
        parts = tmp_path / "parts"
        parts.mkdir()
        table[:100].write_parquet(parts / "a.parquet")
        table[100:].write_parquet(parts / "b.parquet")
        table.write_parquet(tmp_path / "whole.parquet")
        options = ("--rank", 2, "--bins", "age=4")
        pmf, about, _ = self.fit(inside, parts, tmp_path / "one", *options)
        whole, beside, _ = self.fit(inside, tmp_path / "whole.parquet", tmp_path / "two", *options)
        assert about == beside
        assert all(np.array_equal(a, b) for a, b in zip(pmf.factors, whole.factors, strict=True))

    def test_it_is_measured_before_the_table_is_read(self, folder, tmp_path, inside):
        code, _, err = inside("fit", folder / "none.csv", "-o", tmp_path / "m", "--memory", "9MB")
        assert code == 2
        assert "memory 9MB is too little: this process itself needs about" in err

    @pytest.mark.parametrize("text", ["much", "", "-1GB", "2XB", "1.2.3GB", "GB", "nan"])
    def test_nonsense_is_refused(self, folder, tmp_path, inside, text):
        data = folder / "survey.csv"
        code, _, err = inside("fit", data, "-o", tmp_path / "m", f"--memory={text}")
        assert code == 2
        assert "write memory as 500MB, 2GB or 1.5GiB, not" in err

    def test_a_model_that_does_not_fit_is_refused(self, folder, tmp_path, inside):
        options = ("-o", tmp_path / "m", "--rank", 10**7, *self.OPTIONS)
        code, _, err = inside("fit", folder / "survey.csv", *options)
        assert code == 2
        assert "a model of rank 10000000 over 13 levels is too large for memory 3GB" in err

    @pytest.mark.parametrize("option", ["--max-iter", "--smoothing", "--tol"])
    def test_bad_limits_are_refused_also_from_disk(self, folder, tmp_path, inside, crowded, option):
        options = ("-o", tmp_path / "m", "--rank", 2, f"{option}=-1", *self.OPTIONS)
        code, _, err = inside("fit", folder / "survey.csv", *options)
        assert code == 2
        assert "at least 0, not -1" in err

    def test_no_iteration_is_the_start(self, folder, tmp_path, inside, crowded):
        options = ("--rank", 2, "--max-iter", 0, *self.OPTIONS)
        code, _, _ = inside("fit", folder / "survey.csv", "-o", tmp_path / "m", *options)
        assert code == 3
        assert read_about(tmp_path / "m")["iterations"] == "0"

    def test_what_cannot_be_read_within_it_is_refused(self, folder, tmp_path, inside):
        pl.read_csv(folder / "survey.csv").write_csv(tmp_path / "t.csv.zst", compression="zstd")
        options = ("-o", tmp_path / "m", "--rank", 2, "--bins", "age=4")
        assert inside("fit", tmp_path / "t.csv.zst", *options)[0] == 0
        code, _, err = inside("fit", tmp_path / "t.csv.zst", *options, "--memory", "3GB")
        assert code == 2
        assert "packed by zstandard" in err

    def test_it_belongs_to_rows(self, tmp_path, inside):
        code, _, err = inside(
            "fit", "--marginals", "a.csv", "-o", tmp_path / "m", "--memory", "3GB"
        )
        assert code == 2
        assert "--memory belong to rows" in err


def test_published_tables(tmp_path, inside):
    truth = jp.random_pmf(jp.Domain.of_sizes([2, 3, 2, 3]), rank=2, random_state=0)
    for marginal in truth.marginals(order=3):
        rows = [
            dict(zip(marginal.names, place, strict=True)) | {"probability": share}
            for place, share in np.ndenumerate(marginal.table)
        ]
        pl.DataFrame(rows).write_csv(tmp_path / f"{'-'.join(marginal.names)}.csv")
    tables = sorted(tmp_path.glob("*.csv"))
    model = tmp_path / "m.safetensors"
    code, out, err = inside("fit", "--marginals", *tables, "-o", model, "--rank", 2)
    assert code == 0, err
    assert "4 tables" in out
    assert jp.factor_error(truth, jp.load(model)) < 1e-10


@pytest.fixture
def three_pairs(tmp_path):
    """Write three of the six pairs of four variables; return their paths."""
    truth = jp.random_pmf(jp.Domain.of_sizes([3, 3, 3, 3]), rank=2, random_state=0)
    for pair in (("x0", "x1"), ("x1", "x2"), ("x2", "x3")):
        table = truth.marginal(pair).table()
        rows = [
            dict(zip(pair, place, strict=True)) | {"probability": share}
            for place, share in np.ndenumerate(table)
        ]
        pl.DataFrame(rows).write_csv(tmp_path / f"{'-'.join(pair)}.csv")
    return sorted(tmp_path.glob("*.csv"))


def test_a_model_remembers_from_which_tables_it_was_learned(three_pairs, tmp_path, inside):
    model = tmp_path / "m.safetensors"
    code, _, err = inside("fit", "--marginals", *three_pairs, "-o", model, "--rank", 2)
    assert code == 0, err
    about = read_about(model)
    assert json.loads(about["subsets"]) == [["x0", "x1"], ["x1", "x2"], ["x2", "x3"]]
    assert (about["loss"], about["library"]) == ("likelihood", f"jointpmf {jp.__version__}")
    _, out, _ = inside("identify", model)
    assert out.startswith("From 3 pairs of 4 variables, rank 2 is not identifiable")
    _, out, _ = inside("identify", model, "--order", 3)
    assert out.startswith("From all triples of 4 variables, rank 2 is locally identifiable")


def test_identify_says_what_an_old_file_does_not(tmp_path, inside):
    jp.random_pmf(jp.Domain.of_sizes([2, 2, 2]), 1, 0).save(tmp_path / "old.safetensors")
    code, out, _ = inside("identify", tmp_path / "old.safetensors")
    assert code == 0
    assert " ".join(out.split()).endswith(
        "The file does not say from which tables the model was learned, so this is about all "
        "triples."
    )


def test_identify_speaks_of_each_of_the_fits_that_were_averaged(tmp_path, inside):
    pmfs = [jp.random_pmf(jp.Domain.of_sizes([3, 3, 3]), 2, seed) for seed in range(3)]
    mean = jp.average(pmfs)
    about = {"averaged": "3", "subsets": '[["x0", "x1", "x2"]]', "partial": "1"}
    write_model(tmp_path / "m", mean.domain, mean.weights, mean.factors, about)
    said = json.loads(inside("identify", tmp_path / "m", "--json")[1])
    assert said["rank"] == 2
    assert ["average of 3" in said["notes"][-1], "whole tables" in said["notes"][0]] == [True, True]


def test_tables_are_checked_before_a_fit(three_pairs, tmp_path, inside):
    listed = "".join(f"[[tables]]\npath = '{path.name}'\n" for path in three_pairs)
    (tmp_path / "tables.toml").write_text(f"version = 1\n{listed}")
    code, out, err = inside("check", tmp_path / "tables.toml")
    assert (code, err) == (0, "")
    assert out.startswith("3 tables of 4 variables:")
    assert "pairs that no table shows together" in out
    assert inside("check", *three_pairs)[1] == out
    said = json.loads(inside("check", tmp_path / "tables.toml", "--json")[1])
    assert said["unseen_pairs"] == [["x0", "x2"], ["x0", "x3"], ["x1", "x3"]]
    assert said["text"].split() == out.split()
    model = tmp_path / "m.safetensors"
    assert inside("fit", tmp_path / "tables.toml", "-o", model, "--rank", 2)[0] == 0
    assert json.loads(read_about(model)["subsets"])[0] == ["x0", "x1"]


def test_counts_of_text_keep_their_order(tmp_path, inside):
    (tmp_path / "t.csv").write_text("age,sick,count\nyoung,no,8.5\nold,no,1\nold,yes,3\n")
    model = tmp_path / "m.safetensors"
    code, _, err = inside("fit", "--marginals", tmp_path / "t.csv", "-o", model, "--rank", 1)
    assert code == 0, err
    assert jp.load(model).domain["age"].levels == ("young", "old")


def test_a_fit_that_is_cut_short_is_written_and_ends_with_three(folder, tmp_path, inside):
    model = tmp_path / "m.safetensors"
    arguments = ("fit", folder / "survey.csv", "-o", model, "--rank", 3, "--bins", "age=4")
    code, out, _ = inside(*arguments, "--max-iter", 1, "--tol", 0)
    assert code == 3
    assert out.startswith(jp.Status.MAX_ITER.value)
    assert f"Written to {model}" in out.replace("\n", "")
    assert jp.load(model).rank == 3
    code, out, _ = inside(*arguments, "--max-iter", 1, "--tol", 0, "--json")
    assert (code, json.loads(out)["converged"]) == (3, False)


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """A table whose fit, with no tolerance, goes on for minutes."""
    path = tmp_path_factory.mktemp("endless") / "rows.csv"
    truth = jp.random_pmf(jp.Domain.of_sizes([4] * 6), 8, 0)
    truth.sample(1_000, random_state=0).write_csv(path)
    return path


def test_ctrl_c_writes_the_best_model_so_far(endless, tmp_path):
    """The progress on a terminal tells when to press it."""
    model = tmp_path / "m.safetensors"
    options = ["--rank", "12", "--tol", "0", "--max-iter", "1000000"]
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, "fit", str(endless), "-o", str(model), *options],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=ENVIRONMENT | {"TERM": "xterm"},
        text=True,
    )
    os.close(theirs)
    seen = b""
    while not re.search(rb"iteration \d+, objective", seen):
        seen += os.read(mine, 10_000)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    os.close(mine)
    assert process.returncode == 3
    assert out.startswith(jp.Status.STOPPED.value)
    assert jp.load(model).rank == 12
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_a_terminal_shows_which_rank_is_tried_and_how_many_fits_are_averaged(folder, tmp_path):
    mine, theirs = pty.openpty()
    arguments = ["fit", str(folder / "survey.csv"), "-o", str(tmp_path / "m"), "--drop", "age"]
    process = subprocess.Popen(
        [COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=ENVIRONMENT | {"TERM": "xterm"},
        text=True,
    )
    os.close(theirs)
    seen = b""
    while not re.search(rb"rank \d+, iteration \d+, objective \d", seen):
        seen += os.read(mine, 10_000)
    out, _ = process.communicate(timeout=60)
    os.close(mine)
    assert process.returncode == 0
    averaged = read_about(tmp_path / "m")["averaged"]
    assert int(averaged) > 1
    assert f"the average of {averaged} fits" in out


def test_the_limits_apply_to_the_search_for_a_rank_too(folder, tmp_path, inside):
    arguments = ("fit", folder / "survey.csv", "-o", tmp_path / "m", "--drop", "age")
    assert inside(*arguments, "--max-iter", 2, "--tol", 0)[0] == 0
    assert int(read_about(tmp_path / "m")["iterations"]) <= 2


def test_an_interrupt_between_the_iterations_writes_the_best_too(
    folder, tmp_path, inside, monkeypatch
):
    fit_rows = jp.fit_rows

    def interrupted(reading, rank, callback, **_):
        solution = fit_rows(reading, rank, callback=callback, random_state=0)
        assert solution.n_iter > 0
        raise KeyboardInterrupt

    monkeypatch.setattr("jointpmf.fit_rows", interrupted)
    model = tmp_path / "m.safetensors"
    arguments = ("fit", folder / "survey.csv", "-o", model, "--rank", 2, "--bins", "age=4")
    code, out, _ = inside(*arguments)
    assert (code, jp.load(model).rank) == (3, 2)
    assert out.startswith(jp.Status.STOPPED.value)


def test_an_interrupt_before_there_is_a_model_writes_nothing(folder, tmp_path, inside, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("jointpmf.fit_rows", interrupted)
    arguments = ("fit", folder / "survey.csv", "-o", tmp_path / "m", "--rank", 2, "--drop", "age")
    code, out, err = inside(*arguments)
    assert (code, out) == (130, "")
    assert err == "jointpmf: interrupted before there was anything to write\n"
    assert list(tmp_path.iterdir()) == []


def test_answers_are_those_of_the_library(folder, inside):
    model = folder / "model.safetensors"
    pmf = jp.load(model)
    code, out, _ = inside("query", model, "--of", "rating", "--given", "party=left|right", "--json")
    assert code == 0
    said = json.loads(out)
    shares = [row["probability"] for row in said["distribution"]]
    np.testing.assert_allclose(shares, pmf.marginal(["rating"]).table(), atol=1e-12)
    assert said["mean"] == pytest.approx(pmf.expectation([[None] * 4], "rating")[0])
    code, out, _ = inside("query", model, "--of", "party", "--of", "member", "--json")
    table = pmf.marginal(["party", "member"]).table()
    said = {
        tuple(row["levels"].values()): row["probability"] for row in json.loads(out)["distribution"]
    }
    assert said["right", "no"] == pytest.approx(table[1, 0])
    code, out, _ = inside("query", model, "--of", "party", "--of", "member")
    assert f"{100 * table[1, 0]:.1f} %" in out
    code, out, _ = inside(
        "query", model, "--of", "party", "--of", "member", "--of", "rating", "--top", 3
    )
    assert "and 17 less likely ones" in out


def test_the_component_is_given_and_asked_for(tmp_path, inside):
    pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), 3, 0)
    named = pmf.reordered([0, 1, 2], names=["a", "b", "c"])
    for model, text in [(pmf, "component=0|2"), (named, "component=a|c")]:
        model.save(tmp_path / "m")
        code, out, err = inside("query", tmp_path / "m", "--of", "x1", "--given", text, "--json")
        assert code == 0, err
        shares = [row["probability"] for row in json.loads(out)["distribution"]]
        expected = pmf.condition({"component": {0, 2}}).marginal(["x1"]).table()
        np.testing.assert_allclose(shares, expected, atol=1e-12)
    given = ["--of", "component", "--given", "x0=1"]
    code, out, _ = inside("query", tmp_path / "m", *given, "--json")
    said = [
        (row["levels"]["component"], row["probability"]) for row in json.loads(out)["distribution"]
    ]
    assert [name for name, _ in said] == ["a", "b", "c"]
    expected = pmf.responsibilities([[1, None]])[0]
    np.testing.assert_allclose([share for _, share in said], expected, atol=1e-12)
    pmf.save(tmp_path / "m")
    code, out, _ = inside("query", tmp_path / "m", *given)
    assert code == 0
    assert "mean" not in out
    code, _, err = inside("query", tmp_path / "m", "--of", "x1", "--given", "component=3")
    assert code == 2
    assert "'component' has no level '3'" in err
    assert "latent class" not in err
    code, out, _ = inside("sample", tmp_path / "m", "--given", "component=1", "-n", 2)
    assert out.splitlines()[0] == "x0,x1"
    own = jp.Domain([jp.Variable("component", ("cpu", "disk")), jp.Variable("ok", ("no", "yes"))])
    jp.random_pmf(own, 3, 0).save(tmp_path / "m")
    code, _, err = inside("query", tmp_path / "m", "--of", "ok", "--given", "component=2")
    assert code == 2
    assert "has a variable 'component'" in " ".join(err.split())


def test_levels_are_matched_by_their_text(tmp_path, inside):
    import datetime

    domain = jp.Domain(
        [
            jp.Variable("sure", (False, True)),
            jp.Variable("size", (0.5, 2.0)),
            jp.Variable("day", (datetime.date(2020, 1, 31), datetime.date(2020, 2, 1))),
            jp.Variable("a=b", ("x|y", "x", "y")),
        ]
    )
    pmf = jp.random_pmf(domain, 2, 0)
    model = tmp_path / "m.safetensors"
    pmf.save(model)
    cases = {
        "sure=True": {"sure": True},
        "sure=false": {"sure": False},
        "size=2": {"size": 2.0},
        "size=.5|2.0": {"size": {0.5, 2.0}},
        "day=2020-02-01": {"day": datetime.date(2020, 2, 1)},
        "a=b=x|y": {"a=b": "x|y"},
        "a=b=y|x": {"a=b": {"x", "y"}},
    }
    for text, evidence in cases.items():
        asked = next(name for name in domain.names if name not in evidence)
        code, out, err = inside("query", model, "--of", asked, "--given", text, "--json")
        assert code == 0, err
        shares = [row["probability"] for row in json.loads(out)["distribution"]]
        expected = pmf.condition(evidence).marginal([asked]).table()
        np.testing.assert_allclose(shares, expected, atol=1e-12)
    rows = "sure,size,day,a=b\ntrue,2,2020-02-01,x|y\n,0.50,,y\n"
    code, out, err = inside("score", model, "-", stdin=rows.encode())
    assert code == 0, err
    one = {"sure": [True], "size": [2.0], "day": [datetime.date(2020, 2, 1)], "a=b": ["x|y"]}
    first = float(out.splitlines()[1].split(",")[1])
    assert first == pytest.approx(pmf.log_probability(pl.DataFrame(one))[0])


def test_levels_come_in_the_order_that_is_given(folder, tmp_path, inside):
    model = tmp_path / "m.safetensors"
    scales = ("--levels", "no<perhaps<yes", "--levels", "rating=5<4<3<2<1<0")
    code, _, err = inside(
        "fit", folder / "survey.csv", "-o", model, "--rank", 1, "--bins", "age=2", *scales
    )
    assert (code, err.count("warning")) == (0, 0), err
    domain = jp.load(model).domain
    assert domain["member"].levels == ("no", "perhaps", "yes")
    assert domain["rating"].levels == (5, 4, 3, 2, 1, 0)
    assert domain["party"].levels == ("left", "right")


def test_dates_are_cut_at_dates(tmp_path, inside):
    path, model = tmp_path / "t.csv", tmp_path / "m.safetensors"
    path.write_text("when\n2020-01-05\n2020-03-01\n2020-02-29\n")
    bins = "when=2020-01-01,2020-03-01,2020-12-31"
    assert inside("fit", path, "-o", model, "--rank", 1, "--bins", bins)[0] == 0
    code, out, err = inside("query", model, "--of", "when")
    assert code == 0, err
    assert "2020-01-01..2020-03-01" in out
    assert "mean" not in out
    assert json.loads(inside("info", model, "--json")[1])["variables"][0]["time"] == "date"
    path.write_text("when\n\n2020-02-02\n")
    assert inside("impute", model, path, "-o", tmp_path / "whole.csv")[0] == 0
    assert (tmp_path / "whole.csv").read_text() == "when\n2020-02-02\n2020-02-02\n"


@pytest.mark.parametrize("command", ["score", "impute"])
def test_a_column_of_which_no_cell_is_known_is_a_warning(folder, tmp_path, inside, command):
    path = tmp_path / "t.csv"
    path.write_text("party,rating\nleft,one\nright,two\n")
    code, _, err = inside(
        command,
        folder / "model.safetensors",
        path,
        "-o",
        tmp_path / "o.csv",
        "--unknown",
        "missing",
    )
    assert code == 0
    assert "no cell of column 'rating' is a level that is known" in " ".join(err.split())
    assert "'party'" not in err


def test_draws_can_be_scored_again(folder, tmp_path, inside):
    model, rows = folder / "model.safetensors", tmp_path / "rows.csv.gz"
    code, out, _ = inside("sample", model, "-n", 50, "--given", "member=yes", "-o", rows)
    assert (code, out) == (0, f"50 rows written to {rows}.\n")
    assert pl.read_csv(rows)["member"].to_list() == ["yes"] * 50
    code, out, _ = inside("score", model, rows, "-o", tmp_path / "s.ndjson", "--json")
    assert code == 0
    assert json.loads(out)["rows"] == 50
    logs = pl.read_ndjson(tmp_path / "s.ndjson")["log_probability"]
    expected = jp.load(model).log_probability(pl.read_csv(rows))
    np.testing.assert_allclose(logs, expected)
    assert json.loads(inside("sample", model, "-n", 1, "--json")[1])["member"] in ("yes", "no")


def test_the_least_likely_rows_come_first(folder, inside):
    model, data = folder / "model.safetensors", folder / "survey.csv"
    logs = jp.load(model).log_probability(survey())
    code, out, _ = inside("score", model, data, "--worst", 3, "--json")
    said = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert said[0]["row"] == logs.argmin()
    assert [row["log_probability"] for row in said] == pytest.approx(sorted(logs)[:3])
    code, out, _ = inside("score", model, data, "--worst", 3)
    assert out.splitlines()[1].split()[:2] == [str(logs.argmin()), f"{logs.min():.2f}"]


@pytest.mark.parametrize("strategy", ["mode", "median", "expectation", "sample"])
def test_holes_are_filled_and_nothing_else(folder, tmp_path, inside, strategy):
    data = survey().with_columns(pl.Series("note", [f"007,{k}" for k in range(300)]))
    data.write_csv(tmp_path / "holes.csv")
    model, out_file = folder / "model.safetensors", tmp_path / "full.parquet"
    code, out, err = inside(
        "impute", model, tmp_path / "holes.csv", "-o", out_file, "--strategy", strategy, "--json"
    )
    assert code == 0, err
    said = json.loads(out)
    assert (said["rows"], said["filled"]) == (300, data["rating"].null_count())
    filled = pl.read_parquet(out_file)
    assert filled.columns == data.columns
    assert filled.null_count().sum_horizontal().item() == 0
    assert filled.drop("rating").equals(data.drop("rating"))
    known = data["rating"].is_not_null()
    assert (filled["rating"].filter(known) == data["rating"].filter(known)).all()


def test_unknown_levels_can_be_taken_for_missing(folder, inside):
    rows = b"party,rating\ngreen,3\n"
    code, out, err = inside(
        "impute", folder / "model.safetensors", "-", "--unknown", "missing", stdin=rows
    )
    assert code == 0, err
    assert out.splitlines()[1] in ("left,3", "right,3")


def test_what_is_known_about_a_model(folder, tmp_path, inside):
    model = folder / "model.safetensors"
    code, out, _ = inside("info", model)
    assert code == 0
    for word in (
        "rating",
        "1, 2, 3, 4, 5",
        "likelihood",
        "300",
        "The objective stopped improving.",
    ):
        assert word in out
    said = json.loads(inside("info", model, "--json")[1])
    assert said["about"]["rows"] == "300"
    assert [v["name"] for v in said["variables"]] == ["party", "age", "member", "rating"]
    jp.load(model).save(tmp_path / "bare")
    code, out, _ = inside("info", tmp_path / "bare")
    assert code == 0
    assert re.search(r"rank +2", out)
    assert "components" not in out
    jp.load(model).reordered(names=["calm", "keen [b]"]).save(tmp_path / "named")
    assert re.search(r"components +calm, keen \[b\]", inside("info", tmp_path / "named")[1])
    assert json.loads(inside("info", tmp_path / "named", "--json")[1])["components"][0] == "calm"


def test_info_tells_of_the_space_of_traits(inside, tmp_path):
    pmf_of(planted(n_points=16, n_waves=3)).save(tmp_path / "m")
    code, out, _ = inside("info", tmp_path / "m")
    assert code == 0
    assert re.search(r"space +2 traits, 3 waves, 16 points", out)
    said = json.loads(inside("info", tmp_path / "m", "--json")[1])
    assert said["traits"] == [{"traits": 2, "waves": 3, "points": 16}]


def test_is_it_unique(folder, inside):
    code, out, _ = inside("identify", "--sizes", "4,4,4,4,4", "--order", 2, "--rank", 3)
    assert code == 0
    assert " ".join(out.split()) == str(jp.identifiability(jp.Domain.of_sizes([4] * 5), 3, order=2))
    assert "Ask for a table of x0 by x1 by x2" in " ".join(out.split())
    pairs = ("identify", "--sizes", "4,4,4,4,4", "--order", 2, "--rank", 3, "--json")
    assert json.loads(inside(*pairs)[1])["tables_to_ask"] == [["x0", "x1", "x2"]]
    said = json.loads(inside("identify", folder / "model.safetensors", "--json")[1])
    assert said["identifiable"] is True
    assert said["rank"] == 2


def test_warnings_of_the_library_are_lines_on_stderr(tmp_path, inside):
    (tmp_path / "t.csv").write_text("a,b,count\n0,0,3\n0,1,1\n1,0,2\n1,1,4\n")
    code, _, err = inside(
        "fit", "--marginals", tmp_path / "t.csv", "-o", tmp_path / "m", "--rank", 2
    )
    assert code == 0
    assert err.startswith("jointpmf: rank 2 is not identifiable")


NO_SPACE = "jointpmf: cannot write the output: No space left on device\n"


def test_a_full_disk_behind_stdout_is_one_sentence(folder):
    """Python itself complains of a full disk too, but only at its end: this needs a process."""
    with open("/dev/full", "w") as full:
        streams = {"capture_output": False, "stdout": full, "stderr": subprocess.PIPE}
        result = run("info", folder / "model.safetensors", **streams)
    assert (result.returncode, result.stderr) == (2, NO_SPACE)


@pytest.mark.parametrize("more", [("query", "--of", "rating"), ("sample", "-n", 9), ("info",)])
def test_a_full_disk_is_noticed_by_every_command(folder, inside, monkeypatch, more):
    name, *options = more
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code, _, err = inside(name, folder / "model.safetensors", *options)
    assert (code, err) == (2, NO_SPACE)


def test_a_reader_that_has_had_enough_is_no_error(folder):
    line = f"{COMMAND} sample {folder}/model.safetensors -n 20000 | head -n 1"
    line += "; echo ${PIPESTATUS[0]}"
    result = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert result.stdout.splitlines() == ["party,age,member,rating", "0"]
    assert result.stderr == ""


def test_the_survey_without_its_extra_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    with pytest.raises(jp.JointPMFError, match=r"jointpmf\[demo\]"):
        anes96()


def test_importing_the_library_brings_neither_pandas_nor_matplotlib():
    code = (
        "import sys, jointpmf; "
        "print([m for m in ('pandas', 'matplotlib', 'statsmodels', 'pyarrow') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert result.stdout.strip() == "[]"


def test_the_rank_of_tables_is_found_by_itself(tmp_path, inside):
    truth = jp.random_pmf(jp.Domain.of_sizes([3] * 5, names=list("abcde")), 2, 0)
    for marginal in truth.marginals(order=3):
        cells = np.indices(marginal.table.shape).reshape(3, -1)
        columns = dict(zip(marginal.names, cells, strict=True))
        table = pl.DataFrame(columns | {"probability": marginal.table.ravel()})
        table.write_csv(tmp_path / f"{''.join(marginal.names)}.csv")
    model = tmp_path / "model.safetensors"
    code, _, err = inside("fit", "--marginals", *tmp_path.glob("*.csv"), "-o", model)
    assert code == 0, err
    found = jp.load(model).marginal(truth.domain.names)
    assert found.rank == 2
    np.testing.assert_allclose(found.table(), truth.table(), atol=1e-9)
