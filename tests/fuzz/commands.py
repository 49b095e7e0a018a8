"""Odd commands on odd files: exit code 0, 2 or 3, no traceback, and files stay as they were."""

import contextlib
import io
import os
import sys
import tempfile
from functools import cache
from itertools import pairwise
from pathlib import Path

from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.command.main import main

CSV = "sex,age,vote\nf,1,a\nm,2,b\nf,3,\nm,,a\nf,2,b\n,1,a\n"
COUNTS = "sex,vote,count\nf,a,10\nf,b,5\nm,a,3\nm,b,7\n"
WIDE = "sex \\ vote,a,b,total\nf,10,5,15\nm,3,7,10\ntotal,13,12,25\n"
TOML = 'version = 1\n\n[[tables]]\npath = "counts.csv"\n\n[[tables]]\npath = "wide.csv"\n'
NDJSON = '{"sex": "f", "age": 1}\n{"sex": "m", "age": null}\n'
FILES = {
    "rows.csv": CSV,
    "rows.tsv": CSV.replace(",", "\t"),
    "rows.ndjson": NDJSON,
    "counts.csv": COUNTS,
    "wide.csv": WIDE,
    "tables.toml": TOML,
}

PIECES = ["", ",", "\n", "\r", '"', "\t", "\0", "é", "\ufeff", "-1", "1e400", "NA", "*", "<5", "%"]
PIECES += ["nan", "count", "sex", "[[tables]]", "=", "{", "}", "9" * 30, "\x1b[31m", "total", "#"]
VALUES = ["", "0", "1", "2", "-1", "1e20", "nan", "auto", "sex", "vote", "sex=f", "vote=a|b", "a"]
VALUES += ["=", "sex=", "age=2", "mode", "missing", "0.9", "x" * 50, "\x1b", "rows.csv", "-", "%"]
OPTIONS = {
    "fit": [
        *("--rank", "--classes", "--marginals", "--bins", "--levels"),
        *("--only", "--drop", "--weights", "--missing", "--smoothing", "--seed", "--json"),
        *("--memory", "--traits", "--starts", "--tol", "--criterion", "--checkpoint"),
    ],
    "query": ["--of", "--given", "--top", "--level", "--json"],
    "info": ["--json"],
    "sample": ["-n", "--given", "--seed", "--escape", "--json", "-o"],
    "impute": ["-o", "--strategy", "--draws", "--in-place", "--unknown", "--missing", "--json"],
    "score": ["--worst", "-o", "--unknown", "--missing", "--json"],
    "classes": ["-o", "--keep", "--weights", "--unknown", "--json"],
    "check": ["--missing", "--json"],
    "identify": ["--sizes", "--order", "--rank", "--json"],
}
NEEDED = {
    "fit": lambda data: [_a_file(data), "-o", "new.safetensors", "--max-iter", "3"],
    "query": lambda data: [_a_model(data), "--of", "vote"],
    "info": lambda data: [_a_model(data)],
    "sample": lambda data: [_a_model(data)],
    "impute": lambda data: [_a_model(data), _a_file(data), "-o", "new.csv"],
    "score": lambda data: [_a_model(data), _a_file(data)],
    "classes": lambda data: [_a_model(data), _a_file(data), "-o", "new.csv"],
    "check": lambda data: [_a_file(data)],
    "identify": lambda data: ["--sizes", "3,3,3"],
}
CODES = (0, 2, 3)
"""How a command may end: well, with bad input, or before it has converged."""


@cache
def _model():
    """Return the bytes of a model of the rows."""
    domain = jp.Domain(
        [
            jp.Variable("sex", ("f", "m")),
            jp.Variable("age", (1, 2, 3)),
            jp.Variable("vote", ("a", "b")),
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        jp.random_pmf(domain, 2, 0).save(f"{folder}/m")
        return Path(folder, "m").read_bytes()


def _a_file(data):
    return data.draw(st.sampled_from([*FILES, *FILES, "nowhere.csv", ".", "m.safetensors", ""]))


def _a_model(data):
    return data.draw(st.sampled_from(["m.safetensors"] * 6 + ["rows.csv", "nowhere", "."]))


def _changed(data, text):
    """Return a text with some pieces put in, or in the place of others."""
    for _ in range(data.draw(st.integers(0, 3))):
        begin = data.draw(st.integers(0, len(text)))
        end = begin + data.draw(st.sampled_from([0, 0, 1, 5, 40]))
        text = text[:begin] + data.draw(st.sampled_from(PIECES)) + text[end:]
    return text


def attack(data):
    """Run a command in a folder of changed files."""
    command = data.draw(st.sampled_from(sorted(OPTIONS)))
    arguments = [command, *NEEDED[command](data)]
    for _ in range(data.draw(st.integers(0, 3))):
        option = data.draw(st.sampled_from(OPTIONS[command]))
        arguments.append(option)
        if data.draw(st.booleans()) or option not in ("--json", "--classes", "--marginals"):
            arguments.append(data.draw(st.sampled_from(VALUES)))
    contents = {name: _changed(data, text).encode() for name, text in FILES.items()}
    contents["m.safetensors"] = _model()
    with tempfile.TemporaryDirectory() as folder:
        for name, content in contents.items():
            Path(folder, name).write_bytes(content)
        code, output = run(arguments, folder)
        assert code in CODES, (arguments, code, output)
        assert "Traceback" not in output, (arguments, output)
        may_change = _may_change(arguments)
        for name, content in contents.items():
            same = Path(folder, name).read_bytes() == content
            assert same or name in may_change, (arguments, name)
        left = [name for name in os.listdir(folder) if name.endswith(".tmp")]
        assert not left, (arguments, left)


def _may_change(arguments):
    """Return the files that a command is asked to write: no input of it, unless in place."""
    inputs = arguments[1:3]
    asked = {after for option, after in pairwise(arguments) if option == "-o"}
    return asked - set(inputs) | set(inputs[1:] if "--in-place" in arguments else [])


def run(arguments, folder):
    """Return how a command ends in a folder, and all that it prints."""
    output, before, stdin = io.BytesIO(), os.getcwd(), sys.stdin
    stream = io.TextIOWrapper(output, "utf-8", write_through=True)
    os.chdir(folder)
    sys.stdin = io.TextIOWrapper(io.BytesIO(CSV.encode()))
    try:
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            main(arguments)
    except SystemExit as ended:
        return ended.code or 0, output.getvalue().decode(errors="replace")
    finally:
        os.chdir(before)
        sys.stdin = stdin
    raise AssertionError("main always ends with SystemExit")
