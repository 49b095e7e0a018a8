"""A table with holes of several types, and parts of a table that is in memory after all."""

from itertools import pairwise

import numpy as np
import pandas as pd

import jointpmf as jp
from jointpmf.rows.parts import Part


def planted_table(n_rows=1500):
    """Return a table of numbers, text, booleans and dates with holes, some rows empty."""
    truth = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2, 5]), rank=3, random_state=1)
    rows = np.array(truth.sample(n_rows, random_state=0, backend="codes"))
    generator = np.random.default_rng(0)
    holes = generator.random(rows.shape) < 0.25
    holes[:7] = True
    table = pd.DataFrame(
        {
            "a.b`c": np.where(holes[:, 0], np.nan, rows[:, 0]),
            "text": np.array(["w", "ä", "x", "b"])[rows[:, 1]],
            "truth": rows[:, 2] == 1,
            "day": pd.Timestamp("2020-02-28") + pd.to_timedelta(rows[:, 3], "D"),
        }
    )
    table.loc[holes[:, 1], "text"] = None
    table["truth"] = table["truth"].astype("boolean").mask(holes[:, 2])
    table.loc[holes[:, 3], "day"] = None
    return table


class InMemory:
    """Parts of a table that is in memory after all."""

    def __init__(self, codes, n_parts, weights=None):
        self.domain = codes.domain
        bounds = np.linspace(0, codes.n_rows, n_parts + 1).astype(int)
        self.parts = []
        for k, (a, b) in enumerate(pairwise(bounds)):
            own = None if weights is None else weights[a:b]
            self.parts.append(Part.of_codes(k, jp.Codes(codes.domain, codes.array[a:b]), own))

    def total(self, task):
        found = [task(part) for part in self.parts]
        total = found[0]
        for more in found[1:]:
            total = total.merged(more)
        return total
