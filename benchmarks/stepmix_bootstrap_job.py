"""Bootstrap one fit with StepMix and print its standard errors, as JSON; run by the peers' Python.

Arguments: a file with the array `rows` (complete, codes from 0), the rank, how many repetitions,
and how many starts each has.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
from stepmix.stepmix import StepMix


def main(path: str, rank: str, n_repetitions: str, n_init: str) -> None:
    """Print class sizes and profiles of shape (variables × levels, rank), and their errors."""
    warnings.simplefilter("ignore")
    with np.load(path) as file:
        rows = file["rows"]
    model = StepMix(
        int(rank),
        measurement="categorical",
        n_init=int(n_init),
        max_iter=5000,
        abs_tol=1e-8,
        random_state=0,
        verbose=0,
        progress_bar=0,
    )
    begin = time.perf_counter()
    model.fit(rows)
    samples, _ = model.bootstrap(
        rows, n_repetitions=int(n_repetitions), progress_bar=False, random_state=0
    )
    took = time.perf_counter() - begin
    spread = samples.reset_index().groupby(["param", "class_no", "variable"])["value"].std()
    pis = spread["pis"].reset_index()
    place = pis["variable"].str.split("_").map(lambda parts: (int(parts[1]), int(parts[2])))
    pis = pis.assign(place=place).pivot(index="place", columns="class_no", values="value")
    found = {
        "log_likelihood": float(model.score(rows)) * len(rows),
        "sizes": model.weights_.tolist(),
        "sizes_error": spread["class_weights"].to_numpy().tolist(),
        "profiles": model.get_parameters()["measurement"]["pis"].T.tolist(),
        "profiles_error": pis.sort_index().to_numpy().tolist(),
        "seconds": took,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
