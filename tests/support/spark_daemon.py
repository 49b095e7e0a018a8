"""The process that Spark forks its Python workers from, which has loaded what they work with."""

import gc

import pyarrow as pa
import pyspark.worker  # noqa: F401  (so that no worker has to)
from pyspark.daemon import manager

import jointpmf as jp
from jointpmf.point import Point
from jointpmf.rows.distributed import FindLevels, MakePart, Piece
from jointpmf.rows.parts import PartedRows
from jointpmf.threads import limited_to


def load_what_is_compiled():
    """Do once what is asked of workers: what that compiles or loads, they then have."""
    table = pa.table({"a": [0.0, None, 1.0], "b": ["x", "y", None]})
    piece = Piece(0, table, table.column_names)
    domain = FindLevels()(piece).domain()
    rows = PartedRows(OnePart(MakePart(domain)(piece)))
    rows.sample(2, seed=0)
    expectation = rows.expectation(2)
    expectation.counts(expectation.stack(Point.of_pmf(jp.random_pmf(domain, 2, 0))))


class OnePart:
    """The only part of a table."""

    def __init__(self, part):
        self.domain, self._part = part.rows.domain, part

    def total(self, task):
        return task(self._part)


if __name__ == "__main__":
    with limited_to(1):
        load_what_is_compiled()
    gc.collect()
    gc.freeze()  # Spark collects garbage after every task
    manager()
