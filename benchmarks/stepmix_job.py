"""Fit one job with StepMix and print what it took, as JSON; run by the peers' own interpreter.

Arguments: a file with the array `rows` (NaN is missing), the measurement, the rank, the budget of
iterations, and the seeds.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
from stepmix.stepmix import StepMix


def main(path: str, measurement: str, rank: str, max_iter: str, *seeds: str) -> None:
    """Fit and print seconds per iteration and the mean log-likelihood of each seed."""
    warnings.simplefilter("ignore")
    with np.load(path) as file:
        rows = file["rows"]
    results = []
    for seed in seeds:
        seconds = {}
        for budget in (2, int(max_iter)):
            model = StepMix(
                int(rank),
                measurement=measurement,
                n_init=1,
                max_iter=budget,
                random_state=int(seed),
                verbose=0,
                progress_bar=0,
            )
            begin = time.perf_counter()
            model.fit(rows)
            seconds[model.n_iter_] = time.perf_counter() - begin
        (few, short), (many, long) = sorted(seconds.items())
        results.append(
            {
                "per_iteration": (long - short) / (many - few),
                "n_iter": many,
                "log_likelihood": float(model.score(rows)),
            }
        )
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
