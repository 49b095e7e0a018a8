"""The joint distribution from tables alone, against what else does that: held-out rows and seconds.

Tables are counted over the training rows of a real set: all pairs, all triples, or a fixed list of
eight pairs and seven triples that hang together. A method sees the tables and nothing else, but for
"from rows", which is `fit_rows` on the training rows themselves. Each has its defaults and its own
process; "least squares" is `fit_marginals` with `loss="squares"`.

What is scored is the mean log-likelihood of the test rows that have no missing cell. Every model is
mixed with 0.1 % of the product of the one-way marginals, so that zeros stay finite; their share is
counted before. Seconds are those of the fit: without imports, and without what numba keeps compiled
on disk. What JAX compiles for each set of tables is a part of mbi's.

Needs the folders `density`, `survey`, `latent-class` and `classification` in `JOINTPMF_DATA`; peers
run by the interpreter that `JOINTPMF_PEERS` names. Results are written beside this file.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.progress import track

import jointpmf as jp
from benchmarks.measure import print_lines

HERE = Path(__file__).parent
RESULTS = HERE / "results"

LIMIT = 180
"""Seconds that a fit may take."""

EXPECTED = (f"over {LIMIT} s", "too large", "not installed")
"""Reasons for which there may be no fit; any other is that a method does not take such tables."""

TEST_PART, INDEPENDENT_PART = 0.2, 0.001

MIXED = {
    16: ["3 15", "1 8", "12 15", "8 13", "6 12", "1 4", "2 14", "6 14", "1 7 12", "7 10 14",
         "4 5 14", "0 5 8", "0 2 9", "2 11 13", "3 6 11"],
    8: ["3 7", "0 3", "1 6", "0 1", "0 2", "5 7", "2 5", "2 6", "0 1 5", "1 2 4", "2 3 6", "2 5 7",
        "2 4 7", "5 6 7", "1 3 6"],
}  # fmt: skip
"""Positions of the variables of fifteen tables that hang together, drawn once."""

OURS, SQUARES, MIXTURE = "jointpmf", "least squares", "mbi mixture"
PEERS = ("ipfn", "humanleague ipf", "humanleague qisi", MIXTURE, "mbi field")
METHODS = (OURS, SQUARES, "from rows", "IPF in numpy", *PEERS)
COLUMNS = ["set", "tables", "method", "log-likelihood", "zeros", "seconds", "note"]

Split = tuple[jp.Codes, jp.Codes]
Row = dict[str, Any]


def nltcs(folder: Path) -> Split:
    """Return the official splits."""
    domain = jp.Domain.of_sizes([2] * 16)
    with np.load(folder / "density" / "nltcs.npz") as file:
        return jp.Codes(domain, file["train"]), jp.Codes(domain, file["test"])


def split(path: Path, choose: pl.Expr, bins: Mapping[str, int] | None = None) -> Split:
    """Return some columns of a table, the rows split once and for all at random."""
    frame = pl.read_csv(path, null_values=["NA", ""]).select(choose)
    codes = jp.encode(frame, bins=bins)
    order = np.random.default_rng(0).permutation(codes.n_rows)
    n_test = int(TEST_PART * codes.n_rows)
    parts = codes.array[order[n_test:]], codes.array[order[:n_test]]
    return jp.Codes(codes.domain, parts[0]), jp.Codes(codes.domain, parts[1])


BFI_ITEMS = [f"{trait}{k}" for trait in "ACENO" for k in range(1, 6)]

SETS: dict[str, tuple[Callable[[Path], Split], tuple[str, ...]]] = {
    "nltcs": (nltcs, ("pairs", "triples", "mixed")),
    "gss_cat": (
        lambda folder: split(
            folder / "survey" / "gss_cat.csv.gz", pl.exclude("denom"), {"age": 6, "tvhours": 5}
        ),
        ("pairs", "triples", "mixed"),
    ),
    "bfi, 8 items": (
        lambda folder: split(folder / "survey" / "bfi.csv.gz", pl.col(BFI_ITEMS[::3][:8])),
        ("pairs", "triples", "mixed"),
    ),
    "bfi, 25 items": (
        lambda folder: split(folder / "survey" / "bfi.csv.gz", pl.col(BFI_ITEMS)),
        ("pairs",),
    ),
    "election": (
        lambda folder: split(folder / "latent-class" / "election.csv.gz", pl.all(), {"AGE": 6}),
        ("pairs",),
    ),
    "mushroom": (
        lambda folder: split(
            folder / "classification" / "mushroom.csv.gz", pl.exclude("class", "veil-type")
        ),
        ("pairs",),
    ),
}
"""How each set is read, and which of its tables are fitted."""


def subsets(which: str, n_variables: int) -> list[tuple[int, ...]]:
    """Return the variables of each table."""
    if which == "mixed":
        return [tuple(map(int, text.split())) for text in MIXED[n_variables]]
    return list(combinations(range(n_variables), 2 if which == "pairs" else 3))


def main() -> None:
    """Measure what was asked for, and write it beside what was measured before."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    arguments = parser.parse_args()
    folder = os.environ.get("JOINTPMF_DATA")
    if not folder:
        print("tables: set JOINTPMF_DATA to a folder with density/nltcs.npz and the other sets")
        return
    subprocess.run([sys.executable, str(HERE / "tables_job.py"), "warm up"], check=True)
    todo = [(name, which) for name in arguments.sets for which in SETS[name][1]]
    for name, which in track(todo, "tables"):
        train, test = SETS[name][0](Path(folder))
        keep(measured(name, which, train, test, arguments.methods))
    table = pl.read_csv(RESULTS / "tables.csv")
    (RESULTS / "tables.md").write_text(text(table))
    print_lines("Mean held-out log-likelihood, nats per row", [line(table, *key) for key in todo])


def measured(
    name: str, which: str, train: jp.Codes, test: jp.Codes, methods: list[str]
) -> pl.DataFrame:
    """Return what each method makes of some tables."""
    names = train.domain.names
    chosen = [[names[n] for n in subset] for subset in subsets(which, len(names))]
    known = jp.MarginalSet.from_table(train, subsets=chosen)
    rows = test.array[(test.array >= 0).all(axis=1)]
    alone = independent(train, rows)
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "tables.npz")
        write(path, known, train, rows)
        for method in methods:
            found, seconds, note = fitted(method, path)
            mixed = (1 - INDEPENDENT_PART) * found + INDEPENDENT_PART * alone
            zeros = np.nan if note else float((found <= 0).mean())
            score = float(np.log(mixed).mean()), zeros
            lines.append((name, which, method, *score, seconds, note))
    schema = dict(zip(COLUMNS, [pl.String] * 3 + [pl.Float64] * 3 + [pl.String], strict=True))
    return pl.DataFrame(lines, schema, orient="row")


def independent(train: jp.Codes, rows: np.ndarray) -> np.ndarray:
    """Return the probability of rows if variables were independent."""
    found = np.ones(len(rows))
    for codes, column, size in zip(train.array.T, rows.T, train.domain.sizes, strict=True):
        counts = np.bincount(codes[codes >= 0], minlength=size)
        found *= (counts / counts.sum())[column]
    return found


def write(path: Path, known: jp.MarginalSet, train: jp.Codes, rows: np.ndarray) -> None:
    """Write the tables and the rows that a job is to score."""
    arrays: dict[str, Any] = {
        "sizes": known.domain.sizes,
        "train": train.array,
        "rows": rows,
        "count": len(known),
    }
    for k, (axes, marginal) in enumerate(zip(known.subsets, known, strict=True)):
        arrays[f"axes_{k}"] = list(axes)
        arrays[f"counts_{k}"] = np.rint(np.asarray(marginal.table) * marginal.n_rows)
    np.savez(path, **arrays)


def fitted(method: str, path: Path) -> tuple[np.ndarray, float, str]:
    """Return the probabilities of the rows, the seconds of a fit, and why there is none."""
    python = os.environ.get("JOINTPMF_PEERS") if method in PEERS else sys.executable
    if not python:
        return np.array([np.nan]), np.nan, "not installed"
    out = path.with_name("found.npz")
    command = [python, str(HERE / "tables_job.py"), method, str(path), str(out)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT + 30)
    except subprocess.TimeoutExpired:
        return np.array([np.nan]), np.nan, f"over {LIMIT} s"
    except subprocess.CalledProcessError as error:
        return np.array([np.nan]), np.nan, error.stderr.splitlines()[-1][:80]
    with np.load(out) as found:
        return found["probabilities"], float(found["seconds"]), ""


def keep(lines: pl.DataFrame) -> None:
    """Put lines into the file of results, in place of older ones of the same name."""
    path, key = RESULTS / "tables.csv", COLUMNS[:3]
    if path.exists():
        older = pl.read_csv(path, schema=lines.schema)
        lines = pl.concat([older.join(lines, on=key, how="anti"), lines])
    order = {name: k for k, name in enumerate([*SETS, *METHODS, "pairs", "triples", "mixed"])}
    by = [pl.col(name).replace_strict(order) for name in key]
    lines.sort(by).write_csv(path)


def line(table: pl.DataFrame, name: str, which: str) -> tuple[str, str, str, str]:
    """Return the printed line of some tables."""
    found = by_method(table, name, which)
    beside = [
        f"{method}: {score(found[method])}, {duration(found[method])}"
        for method in METHODS[1:]
        if method in found
    ]
    ours = found.get(OURS)
    return (
        f"{name}: {which}",
        f"{score(ours)}, {duration(ours)}",
        "\n".join(beside),
        f"{asked(name, which)}; at most a minute",
    )


def asked(name: str, which: str) -> str:
    """Return what the default is asked to have."""
    fixed = {"pairs": -6.03, "triples": -6.01, "mixed": -6.80}
    if name == "nltcs":
        return f"at least {fixed[which]}"
    if "mixed" in SETS[name][1]:
        return "at least IPF"
    return f"at least {MIXTURE} + 0.2"


def text(table: pl.DataFrame) -> str:
    """Return scores and seconds as tables, with the reasons where there are none."""
    keys = table.select("set", "tables").unique(maintain_order=True).rows()
    head = ["| | " + " | ".join(METHODS) + " |", "|---|" + "---:|" * len(METHODS)]
    scores, times = list(head), list(head)
    for name, which in keys:
        found = by_method(table, name, which)
        for lines, shown in ((scores, score), (times, duration)):
            cells = [shown(found.get(method)) for method in METHODS]
            lines.append(f"| {name}: {which} | " + " | ".join(cells) + " |")
    return "\n".join(
        [
            "# From tables alone: log-likelihood of held-out rows, and seconds",
            "",
            f"Every method with its defaults, at most {LIMIT} s for a fit "
            "(`python -m benchmarks.tables`).",
            "",
            "Mean log-likelihood, nats per row; in brackets the share of test rows that the model "
            "holds for impossible. —: there is no fit, or it was not measured.",
            "",
            *scores,
            "",
            "Seconds of a fit. Too large: its array of all variables, or of a clique, has more "
            "than 20 million cells. Refused: it takes no tables that disagree by a person, as "
            "those of rows with missing cells do. A run with `--sets` or `--methods` replaces "
            "only its own cells, so compare seconds only within a run.",
            "",
            *times,
            "",
        ]
    )


def by_method(table: pl.DataFrame, name: str, which: str) -> dict[str, Row]:
    """Return the lines of some tables."""
    rows = table.filter(pl.col("set") == name, pl.col("tables") == which).to_dicts()
    return {row["method"]: row for row in rows}


def score(row: Row | None) -> str:
    """Return a log-likelihood as text, with the share of impossible rows if there are any."""
    if row is None or row["note"]:
        return "—"
    zeros = f" ({row['zeros']:.1%} zero)" if row["zeros"] else ""
    return f"{row['log-likelihood']:.3f}{zeros}".replace("-", "−")


def duration(row: Row | None) -> str:
    """Return seconds as text, or why there are none."""
    if row is None:
        return "—"
    if not row["note"]:
        return f"{row['seconds']:.3g} s"
    return row["note"] if row["note"] in EXPECTED else "refused"


if __name__ == "__main__":
    main()
