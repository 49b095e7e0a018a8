"""Tables to codes, and files to codes: beside what the table's own library takes for as much."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, process_time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import jointpmf as jp
from benchmarks.measure import print_lines

SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12)
"""How many levels the columns have."""


def answers(n_rows: int, missing: float = 0.2, seed: int = 0) -> pl.DataFrame:
    """Return columns of text whose cells depend on a component, of which a part is missing."""
    generator = np.random.default_rng(seed)
    component = generator.choice(5, n_rows, p=generator.dirichlet(np.full(5, 5.0)))
    columns = []
    for n, size in enumerate(SIZES):
        ends = generator.dirichlet(np.ones(size), 5).cumsum(axis=1)[:, :-1]
        codes = (generator.random(n_rows)[:, None] > ends[component]).sum(axis=1)
        levels = pl.Series([f"answer {chr(97 + k)}{n}" for k in range(size)])
        cells = levels.gather(pl.Series(codes, dtype=pl.UInt32))
        columns.append(
            cells.set(pl.Series(generator.random(n_rows) < missing), None).alias(f"q{n}")
        )
    return pl.DataFrame(columns)


def both(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int = 5
) -> tuple[float, float, float, float]:
    """Return the shortest time and processor time of each, taken in turns."""
    best = [np.inf] * 4
    for _ in range(repeats):
        for k, function in enumerate((ours, theirs)):
            begin, used = perf_counter(), process_time()
            function()
            best[k] = min(best[k], perf_counter() - begin)
            best[2 + k] = min(best[2 + k], process_time() - used)
    return best[0], best[1], best[2], best[3]


def line(what: str, beside: str, asked: str, *functions: Callable[[], object]) -> tuple[str, ...]:
    """Return what is printed about two functions."""
    ours, theirs, our_work, their_work = both(*functions)
    measured = f"{ours:.3f} s, {our_work:.3f} s of processors"
    ratios = f"{ours / theirs:.2f} ×, processors {our_work / their_work:.2f} ×"
    return what, f"{measured}: {ratios}", f"{beside}: {theirs:.3f} s, {their_work:.3f} s", asked


def of_text(text: pl.DataFrame) -> list[tuple[str, ...]]:
    """Return the figures of tables of text, beside the cast to categories."""
    arrow, pandas = text.to_arrow(), text.to_pandas()
    objects = pandas.astype(object)
    cast = "cast to categories"

    def dictionaries() -> object:
        return [column.dictionary_encode() for column in arrow.columns]

    return [
        line(
            "Polars text", cast, "1.5 ×", lambda: jp.encode(text), lambda: text.cast(pl.Categorical)
        ),
        line("PyArrow text", cast, "1.5 ×", lambda: jp.encode(arrow), dictionaries),
        line(
            "pandas text (Arrow)",
            cast,
            "1.5 ×",
            lambda: jp.encode(pandas),
            lambda: pandas.astype("category"),
        ),
        line(
            "pandas text (objects)",
            cast,
            "1.5 ×",
            lambda: jp.encode(objects),
            lambda: objects.astype("category"),
        ),
    ]


def of_categories(text: pl.DataFrame) -> list[tuple[str, ...]]:
    """Return the figures of categories, beside the library's cast to the same levels in order."""
    levels = {name: sorted(text[name].drop_nulls().unique()) for name in text.columns}
    enums = {name: pl.Enum(own) for name, own in levels.items()}
    mixed = {name: pl.Enum(own[::-1]) for name, own in levels.items()}
    categories = text.cast(pl.Categorical)
    of_pandas = text.to_pandas().astype("category")
    arrow = pa.table(
        {
            n: c.dictionary_encode()
            for n, c in zip(text.columns, text.to_arrow().columns, strict=True)
        }
    )
    cast = "cast to the levels in order"

    def to_enums(frame: pl.DataFrame) -> object:
        return frame.with_columns(pl.col(name).cast(enums[name]) for name in enums)

    other = text.cast(mixed)
    turned = pd.DataFrame(
        {n: of_pandas[n].cat.set_categories(own[::-1]) for n, own in levels.items()}
    )
    return [
        line(
            "Polars Categorical",
            cast,
            "1.5 ×",
            lambda: jp.encode(categories),
            lambda: to_enums(categories),
        ),
        line("Polars Enum", cast, "1.5 ×", lambda: jp.encode(other), lambda: to_enums(other)),
        line(
            "pandas categories",
            cast,
            "1.5 ×",
            lambda: jp.encode(turned),
            lambda: [turned[n].cat.set_categories(own) for n, own in levels.items()],
        ),
        line(
            "PyArrow dictionaries",
            "take by their indices",
            "1.5 ×",
            lambda: jp.encode(arrow),
            lambda: [
                pa.array(np.arange(20, dtype=np.int8)).take(chunk.indices)
                for column in arrow.columns
                for chunk in column.chunks
            ],
        ),
    ]


def of_integers(n_rows: int) -> list[tuple[str, ...]]:
    """Return the figures of integers, beside a pass for their ends and one for their codes."""
    generator = np.random.default_rng(0)
    array = np.asfortranarray(generator.integers(0, SIZES, (n_rows, len(SIZES))))
    names = [f"q{n}" for n in range(len(SIZES))]
    pandas, polars = pd.DataFrame(array, columns=names), pl.DataFrame(array, schema=names)
    holes = polars.select(pl.when(pl.Series(generator.random(n_rows) < 0.8)).then(pl.all()))
    floats = holes.to_pandas()

    def passes() -> object:
        codes = np.empty(array.shape, np.int8, "F")
        for n in range(len(SIZES)):
            low, _ = array[:, n].min(), array[:, n].max()
            np.subtract(array[:, n], low, out=codes[:, n], casting="unsafe")
        return codes

    cells, what, asked = "ends, then codes", "integers", "1.5 ×"
    return [
        line(f"{what}, numpy", cells, asked, lambda: jp.encode(array), passes),
        line(f"{what}, pandas", cells, asked, lambda: jp.encode(pandas), passes),
        line(f"{what}, Polars", cells, asked, lambda: jp.encode(polars), passes),
        line(f"{what} with holes, Polars", cells, "", lambda: jp.encode(holes), passes),
        line(f"{what} with holes, pandas", cells, "", lambda: jp.encode(floats), passes),
    ]


if __name__ == "__main__":
    text = answers(1_000_000)
    print_lines("x", [*of_integers(2_000_000)])
