"""Held-out log-likelihood on five well-known sets of binary data, with their official splits.

Protocol: every combination of rank and smoothing (towards the marginals) is fitted on the train
split and stopped early by the valid split, `N_TRIED` fits averaged. The combination whose average
has the highest mean log-likelihood on the valid split is chosen, fitted `N_AVERAGED` times, and
averaged. The test split is scored once, with that model; a single fit of the same rank and
smoothing stands beside it. Nothing else looks at the test split.

Needs the folder `density` in `JOINTPMF_DATA`, a file per set with arrays train, valid and test.
The published numbers are those of ID-SPN (Rooshenas & Lowd, 2014).
"""

from __future__ import annotations

import os
import time
from itertools import product
from pathlib import Path

import numpy as np

import jointpmf as jp
from benchmarks.measure import print_lines

N_TRIED, N_AVERAGED = 3, 20

SETS = {
    "nltcs": ([100, 200, 400], [0.05, 0.2], -6.02, -6.02),
    "plants": ([500, 1000], [0.05, 0.2], -12.85, -12.54),
    "jester": ([60, 120], [1.0, 2.0], -52.45, -52.86),
    "bnetflix": ([120, 200, 300], [1.0, 2.0], -56.15, -56.36),
    "dna": ([20, 40, 80], [0.5, 1.0, 2.0], None, -81.21),
}
"""Ranks, smoothing, what is asked, and what ID-SPN has."""


def main() -> None:
    """Measure and print."""
    folder = os.environ.get("JOINTPMF_DATA")
    if not folder:
        print("density: set JOINTPMF_DATA to a folder with density/nltcs.npz and the other sets")
        return
    lines = [measured(Path(folder) / "density" / f"{name}.npz") for name in SETS]
    print_lines("Mean held-out log-likelihood, nats per row", lines)


def measured(path: Path) -> tuple[str, str, str, str]:
    """Return the line of one set."""
    ranks, smoothings, asked, published = SETS[path.stem]
    begin = time.perf_counter()
    with np.load(path) as splits:
        domain = jp.Domain.of_sizes([2] * splits["train"].shape[1])
        train, valid, test = (jp.Codes(domain, splits[k]) for k in ("train", "valid", "test"))

    def fitted(rank: int, smoothing: float, n_average: int) -> jp.JointPMF:
        return jp.fit_rows(
            train,
            rank,
            objective=jp.Likelihood(smoothing=smoothing, towards="marginal"),
            search=jp.Search(start="rows", n_average=n_average),
            validation=valid,
            random_state=0,
        ).pmf

    tried = {
        (rank, smoothing): fitted(rank, smoothing, N_TRIED).log_probability(valid).mean()
        for rank, smoothing in product(ranks, smoothings)
    }
    rank, smoothing = max(tried, key=lambda key: tried[key])
    single, averaged = (
        fitted(rank, smoothing, n).log_probability(test).mean() for n in (1, N_AVERAGED)
    )
    return (
        f"{path.stem}: rank {rank}, smoothing {smoothing:g}",
        f"{averaged:.3f} averaged over {N_AVERAGED}, {single:.3f} alone",
        f"ID-SPN {published}; {time.perf_counter() - begin:.0f} s",
        "report" if asked is None else f"at least {asked}",
    )


if __name__ == "__main__":
    main()
