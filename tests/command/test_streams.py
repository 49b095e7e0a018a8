"""Streams that are closed, narrow or not read on; names that would move a cursor or run."""

import json
import logging
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import jointpmf as jp
from jointpmf.command.watch import FitWatch, _finds_shown
from jointpmf.command.writing import escaped
from jointpmf.errors import on_line, sentence
from jointpmf.solvers.loop import Step

COMMAND = shlex.quote(str(Path(sys.executable).with_name("jointpmf")))
HOSTILE = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e"
LEVELS = ("=1+1", "-2", "@x", f"z{HOSTILE}", "grün")
DOMAIN = jp.Domain(
    [
        jp.Variable(f"red{HOSTILE}", LEVELS),
        jp.Variable("+sum", LEVELS),
        jp.Variable("n" * 3000, tuple(f"{k}{'m' * 300}" for k in range(9))),
    ]
)
PMF = jp.random_pmf(DOMAIN, rank=2, random_state=0)
NAMED = PMF.reordered(names=[f"first{HOSTILE}", "second"])
MOVES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What may not reach a terminal."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("streams")
    NAMED.save(path / "m.safetensors")
    PMF.sample(30, random_state=0).with_columns(pl.lit("x").alias(f"id{HOSTILE}")).write_csv(
        path / "rows.csv"
    )
    return path


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


PRINTED = [
    ["info", "m.safetensors"],
    ["query", "m.safetensors", "--of", DOMAIN.names[0]],
    ["query", "m.safetensors", "--of", DOMAIN.names[0], "--of", "+sum"],
    ["query", "m.safetensors", "--of", "+sum", "--given", f"{DOMAIN.names[0]}={LEVELS[3]}"],
    ["query", "m.safetensors", "--of", "component"],
    ["query", "m.safetensors", "--of", f"no{HOSTILE}"],
    ["score", "m.safetensors", "rows.csv", "--worst", "5"],
    ["classes", "m.safetensors", "rows.csv"],
    ["identify", "m.safetensors", "--order", "2"],
    ["info", f"no{HOSTILE}"],
    ["fit", f"no{HOSTILE}.csv", "-o", "new"],
    ["fit", "rows.csv", "-o", f"no{HOSTILE}/new"],
    ["fit", "rows.csv", "-o", "new", "--drop", f"no{HOSTILE}"],
    [f"no{HOSTILE}"],
]


def _both_ways(arguments):
    """Return a command for people and for machines; rows in a pipe are data, and stay so."""
    return [arguments] if arguments[0] == "score" else [arguments, [*arguments, "--json"]]


CASES = [case for arguments in PRINTED for case in _both_ways(arguments)]


@pytest.mark.parametrize("arguments", CASES, ids=[" ".join(one)[:40] for one in CASES])
def test_nothing_that_is_printed_moves_the_cursor(here, inside, arguments):
    _, out, err = inside(*arguments)
    assert out + err
    assert not MOVES.search(out + err)
    assert all(len(line) < 420 for line in err.splitlines())
    if "--json" in arguments and out:
        json.loads(out)


def test_columns_are_as_wide_as_what_is_shown(here, inside):
    _, out, _ = inside("query", "m.safetensors", "--of", "+sum")
    places = {line.index("%") for line in out.splitlines() if "%" in line}
    assert len(places) == 1


def test_rows_on_a_terminal_are_shown_and_in_a_pipe_kept(here):
    line = f"{COMMAND} sample m.safetensors -n 40"
    mine, theirs = pty.openpty()
    process = subprocess.Popen(line, shell=True, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while piece := _read(mine):
        seen += piece
    os.close(mine)
    assert process.wait() == 0
    assert "z␛[2J␛]0;title␇�31m�" in seen.decode()
    own = seen.decode().replace("\r\n", "\n").removesuffix("\x1b[0m")
    assert not MOVES.search(own)
    piped = subprocess.run(line, shell=True, capture_output=True, check=True).stdout.decode()
    assert LEVELS[3] in piped


def _read(terminal):
    try:
        return os.read(terminal, 10_000)
    except OSError:  # the other end is closed
        return b""


def shell(line, **environment):
    options = {"capture_output": True, "text": True, "timeout": 120, "executable": "/bin/bash"}
    found = subprocess.run(line, shell=True, env=os.environ | environment, **options)
    return found.returncode, found.stdout, found.stderr


CLOSED = "jointpmf: cannot write the output: stdout is closed\n"


def test_a_closed_stdout_is_one_sentence(here):
    assert shell(f"{COMMAND} info m.safetensors >&-") == (2, "", CLOSED)
    assert shell(f"{COMMAND} sample m.safetensors >&-") == (2, "", CLOSED)


def test_a_closed_stdin_is_empty_and_a_closed_stderr_is_silent(here):
    found = shell(f"{COMMAND} fit - -o new.safetensors <&-")
    assert found == (2, "", "jointpmf: the input is empty\n")
    code, out, _ = shell(f"{COMMAND} sample m.safetensors -n 3 -o few.csv 2>&-")
    assert (code, out) == (0, "3 rows written to few.csv.\n")
    assert len(pl.read_csv(here / "few.csv")) == 3


def test_a_stdout_of_ascii_gets_bars_and_json_that_can_be_read(here):
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    code, out, err = shell(f"{COMMAND} query m.safetensors --of +sum", **ascii_only)
    assert (code, err) == (0, "")
    assert "gr?n" in out
    assert "%  ###" in out
    code, out, err = shell(f"{COMMAND} info m.safetensors --json", **ascii_only)
    assert (code, err) == (0, "")
    assert json.loads(out)["variables"][1]["levels"] == list(LEVELS)


@pytest.mark.parametrize("line", ["query m.safetensors --of +sum", "--help", "version"])
def test_a_reader_that_has_had_enough_is_no_error(here, line):
    found = shell(f"{COMMAND} {line} | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}")
    assert found == (0, "0\n", "")


def test_formulas_are_escaped_on_request(here, inside):
    _, plain, _ = inside("sample", "m.safetensors", "-n", 30)
    _, safe, _ = inside("sample", "m.safetensors", "-n", 30, "--escape")
    assert "=1+1," in plain
    assert "'=1+1," not in plain
    assert "'+sum" in safe.splitlines()[0]
    cells = [cell for line in safe.split("\n") for cell in line.split(",")]
    assert {cell for cell in cells if cell[:1] in ("=", "+", "-", "@")} <= {"-2"}
    assert {"'=1+1", "'@x", "-2"} <= set(cells)
    _, lines, _ = inside("sample", "m.safetensors", "-n", 30, "--escape", "--json")
    assert "'=" not in lines


@pytest.mark.parametrize("name", ["sample", "score", "classes", "impute", "population"])
def test_the_help_says_how_to_escape(inside, name):
    _, out, _ = inside(name, "--help")
    assert "--escape" in out
    assert "formula" in out


def test_only_texts_that_are_no_numbers_are_escaped():
    table = pl.DataFrame(
        {
            "=a": ["-1", "+1e5", "-x", " =2", "\tz", None, "a=b", ""],
            "b": [-1.0, 2.0, None, 0.0, 1.0, 1.0, 1.0, 1.0],
            "c": pl.Series(["@", "k", "@", "k", "@", "k", "@", "k"], dtype=pl.Categorical),
        }
    )
    found = escaped(table)
    assert found.columns == ["'=a", "b", "c"]
    assert found["'=a"].to_list() == ["-1", "+1e5", "'-x", "' =2", "'\tz", None, "a=b", ""]
    assert found["b"].equals(table["b"])
    assert found["c"].to_list() == ["'@", "k"] * 4


def test_what_the_screen_has_no_room_for_is_said(here, inside):
    code, _, err = inside("score", "m.safetensors", "rows.csv", "--worst", 2)
    assert code == 0
    assert "not shown: 'nnn" in err
    assert "-o FILE writes all" in err
    assert "left out: 1 column" in err


def test_a_terminal_shows_what_is_found_before_the_first_iteration(here):
    mine, theirs = pty.openpty()
    line = f"{COMMAND} fit rows.csv -o new.safetensors --rank 2 --only +sum"
    process = subprocess.Popen(
        line, shell=True, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"TERM": "xterm"}
    )
    os.close(theirs)
    seen = b""
    while piece := _read(mine):
        seen += piece
    os.close(mine)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"reading, and finding a start" in seen


def test_what_is_found_is_shown_until_the_next_iteration():
    lines, logger = [], logging.getLogger("jointpmf")
    level, handlers = logger.level, list(logger.handlers)
    watch = FitWatch(lines.append)
    with _finds_shown(watch):
        logger.info("the levels of %d columns are known", 7)
        logger.warning("what is warned of is printed by itself")
        watch(Step(1, 5.0, 0.1, 0.0, 0.0), PMF)
        logger.info("another start")
        logger.handle(logging.LogRecord("", logging.INFO, "loop.py", 1, "a run ended", (), None))
    assert lines[0] == "reading, and finding a start: the levels of 7 columns are known"
    assert lines[1].startswith("iteration 1")
    assert lines[2:] == ["another start"]
    assert (logger.level, logger.handlers) == (level, handlers)


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0), 0x202E, 0xD800, 0x2028])
def test_no_character_that_moves_a_cursor_is_left(code):
    assert not MOVES.search(on_line(chr(code)).replace("\t", ""))
    assert len(on_line(chr(code))) == 1
    on_line(chr(code)).encode()


def test_a_sentence_is_short_and_on_one_line_whatever_it_names():
    for length in (1, 398, 399, 400, 10**6):
        text = sentence("a" * length)
        assert len(text) == min(length, 399)
    error = jp.JointPMFError(f"there is no variable {'x' * 999}\n; the variables are known")
    assert len(str(error)) < 400
    assert str(error).startswith("there is no variable xxx")
    assert str(error).endswith("the variables are known")
