"""Tables to codes, and files to models: beside what the table's own library takes for as much."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import jointpmf as jp
from benchmarks.measure import print_lines
from jointpmf.fit.opening import opened_files

SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12)
"""How many levels the columns have."""

Line = tuple[str, str, str, str]


def answers(n_rows: int, missing: float = 0.2, seed: int = 0) -> pl.DataFrame:
    """Return columns of text whose cells depend on a component, of which a part is missing."""
    generator = np.random.default_rng(seed)
    component = generator.choice(5, n_rows, p=generator.dirichlet(np.full(5, 5.0)))
    columns = []
    for n, size in enumerate(SIZES):
        ends = generator.dirichlet(np.ones(size), 5).cumsum(axis=1)[:, :-1]
        codes = (generator.random(n_rows)[:, None] > ends[component]).sum(axis=1)
        codes = np.where(generator.random(n_rows) < missing, size, codes)
        levels = pl.Series(f"q{n}", [*(f"answer {chr(97 + k)}{n}" for k in range(size)), None])
        columns.append(levels.gather(pl.Series(codes, dtype=pl.UInt32)))
    return pl.DataFrame(columns)


def work() -> float:
    """Return the time of processors that this process and those it started have taken."""
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + others.ru_utime + others.ru_stime


def line(
    what: str,
    ours: Callable[[], object],
    beside: str,
    theirs: Callable[[], object],
    asked: str = "1.5 ×",
    repeats: int = 5,
) -> Line:
    """Return what is printed about two functions: the shortest times of each, taken in turns."""
    best = np.full((2, 2), np.inf)
    for _ in range(repeats):
        for k, function in enumerate((ours, theirs)):
            begin, used = perf_counter(), work()
            function()
            best[k] = np.minimum(best[k], (perf_counter() - begin, work() - used))
    (seconds, effort), (their_seconds, their_effort) = best
    ratios = f"{seconds / their_seconds:.2f} ×, of processors {effort / their_effort:.2f} ×"
    return what, f"{ratios} ({seconds:.3f} s)", f"{beside}: {their_seconds:.3f} s", asked


def of_text(text: pl.DataFrame) -> list[Line]:
    """Return the figures of tables of text, beside the cast to categories."""
    arrow, pandas = text.to_arrow(), text.to_pandas()
    objects = pandas.astype(object)
    cast = "cast to categories"

    def encoded(what: str, table: Any, theirs: Callable[[], object]) -> Line:
        return line(what, lambda: jp.encode(table), cast, theirs)

    return [
        encoded("Polars text", text, lambda: text.cast(pl.Categorical)),
        encoded("PyArrow text", arrow, lambda: [one.dictionary_encode() for one in arrow.columns]),
        encoded("pandas text, Arrow", pandas, lambda: pandas.astype("category")),
        encoded("pandas text, objects", objects, lambda: objects.astype("category")),
    ]


def of_categories(text: pl.DataFrame) -> list[Line]:
    """Return the figures of categories, beside the cast to the same levels in another order."""
    levels = {name: sorted(text[name].drop_nulls().unique()) for name in text.columns}
    categories = text.cast(pl.Categorical)
    enums = text.with_columns(pl.col(name).cast(pl.Enum(own)) for name, own in levels.items())
    pandas = enums.to_pandas()
    arrow = [column.dictionary_encode() for column in text.to_arrow().columns]
    cast, turned = "cast to levels in order", {name: own[::-1] for name, own in levels.items()}
    lookup = pa.array(np.arange(max(SIZES), dtype=np.int8))

    def as_enums(frame: pl.DataFrame) -> object:
        return frame.with_columns(pl.col(name).cast(pl.Enum(own)) for name, own in turned.items())

    return [
        line(
            "Polars Categorical", lambda: jp.encode(categories), cast, lambda: as_enums(categories)
        ),
        line("Polars Enum", lambda: jp.encode(enums), cast, lambda: as_enums(enums)),
        line(
            "pandas categories",
            lambda: jp.encode(pandas),
            cast,
            lambda: [pandas[name].cat.set_categories(own) for name, own in turned.items()],
        ),
        line(
            "PyArrow dictionaries",
            lambda: jp.encode(pa.table(arrow, names=text.columns)),
            "lookup by their indices",
            lambda: [lookup.take(chunk.indices) for column in arrow for chunk in column.chunks],
        ),
    ]


def of_integers(n_rows: int) -> list[Line]:
    """Return the figures of integers, beside a pass for their ends and one for their codes."""
    generator = np.random.default_rng(0)
    array = np.asfortranarray(generator.integers(0, SIZES, (n_rows, len(SIZES))))
    names = [f"q{n}" for n in range(len(SIZES))]
    pandas, polars = pd.DataFrame(array, columns=names), pl.DataFrame(array, schema=names)

    def passes() -> object:
        codes = np.empty(array.shape, np.int8, "F")
        for n in range(len(SIZES)):
            low, _ = array[:, n].min(), array[:, n].max()
            np.subtract(array[:, n], low, out=codes[:, n], casting="unsafe")
        return codes

    tables = {"numpy": array, "pandas": pandas, "Polars": polars}
    ends = "their ends, then codes"
    return [
        line(f"integers, {library}", lambda table=table: jp.encode(table), ends, passes)  # type: ignore[misc]
        for library, table in tables.items()
    ]


def of_files(paths: dict[str, str]) -> list[Line]:
    """Return the figures of files, beside their scan and cast by Polars."""

    def codes(path: str) -> object:
        with opened_files(jp.Files(path), None, None) as reading:
            return [codes for codes, _ in reading.batches()]

    scans: dict[str, Callable[[], pl.LazyFrame]] = {
        "csv": lambda: pl.scan_csv(paths["csv"], infer_schema=False),
        "parquet": lambda: pl.scan_parquet(paths["parquet"]),
    }
    return [
        line(
            f"levels and codes of .{kind}",
            lambda kind=kind: codes(paths[kind]),  # type: ignore[misc]
            "scan and cast",
            lambda kind=kind: scans[kind]().cast(pl.Categorical).collect(),  # type: ignore[misc]
            repeats=3,
        )
        for kind in paths
    ]


def of_command(path: str, model: str) -> Line:
    """Return the figures of a whole fit, the start of Python and all imports with it."""
    run = "from jointpmf.command.main import main; main()"
    fit = ["-c", run, "fit", path, "-o", model, "--rank", "5"]
    cast = f"import polars as pl; pl.read_parquet({path!r}).cast(pl.Categorical)"
    return line(
        "fit big.parquet --rank 5",
        lambda: subprocess.run([sys.executable, *fit], check=True, capture_output=True),
        "read and cast",
        lambda: subprocess.run([sys.executable, "-c", cast], check=True),
        "8 ×",
        repeats=2,
    )


def main(n_rows: int = 5_000_000) -> None:
    """Print all figures."""
    text = answers(n_rows)
    some = text[: 2 * n_rows // 5]
    with tempfile.TemporaryDirectory() as folder:
        paths = {kind: f"{folder}/big.{kind}" for kind in ("csv", "parquet")}
        text.write_csv(paths["csv"])
        text.write_parquet(paths["parquet"])
        lines = [*of_text(some), *of_categories(some), *of_integers(len(some)), *of_files(paths)]
        lines.append(of_command(paths["parquet"], f"{folder}/model.safetensors"))
    shape = f"{len(some):,} × {len(SIZES)}"
    print_lines(f"Encoding {shape} cells, files of {n_rows:,} rows, 20 % missing", lines)


if __name__ == "__main__":
    main()
