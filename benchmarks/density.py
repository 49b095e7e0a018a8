"""Held-out log-likelihood on well-known sets of binary data, with their official splits.

Protocol: one call, `fit_rows(train, validation=valid, random_state=0)`, for every set in the folder
`density` of `JOINTPMF_DATA` (a file per set with arrays train, valid and test; sets can be named as
arguments). All choices, between free components and traits and within them, are made by the valid
split inside that call. The test split is scored once, with the model that comes back. There is no
setting for any set.

Published numbers are shown beside ours, each from its source:

- ID-SPN: Rooshenas & Lowd, "Learning sum-product networks with direct and indirect variable
  interactions", ICML 2014, table 2.
- HCLT, hidden Chow-Liu trees: Liu & Van den Broeck, "Tractable regularization of probabilistic
  circuits", NeurIPS 2021; run again on these files, size chosen by the valid split.
- Continuous mixtures: Correia, Gala, Quaeghebeur, de Campos & Peharz, "Continuous mixtures of
  tractable probabilistic models", AAAI 2023; to the digits that are known to us.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import jointpmf as jp
from benchmarks.measure import print_lines


class Published(NamedTuple):
    """What others reach on the test split of a set, and what is asked of us."""

    id_spn: float | None = None
    hclt: float | None = None
    continuous: float | None = None
    asked: float | None = None

    def __str__(self) -> str:
        known = {"ID-SPN": self.id_spn, "HCLT": self.hclt, "continuous mixtures": self.continuous}
        return ", ".join(
            f"{name} {value:.2f}" for name, value in known.items() if value is not None
        )


PUBLISHED = {
    "nltcs": Published(-6.02, asked=-5.99),
    "plants": Published(-12.54, asked=-12.30),
    "jester": Published(-52.86, -52.38, -51.93, asked=-51.82),
    "bnetflix": Published(-56.36, -56.25, -55.49, asked=-55.30),
    "kdd": Published(-2.13, -2.14, asked=-2.12),
    "tmovie": Published(-51.51, -50.54, -48.7, asked=-49.0),
    "dna": Published(-81.21, -79.05),
    "accidents": Published(-26.98, -26.74),
    "pumsb_star": Published(-22.41, -23.65),
}


def main(names: list[str]) -> None:
    """Measure and print."""
    folder = os.environ.get("JOINTPMF_DATA")
    if not folder:
        print("density: set JOINTPMF_DATA to a folder with density/nltcs.npz and other such files")
        return
    paths = sorted((Path(folder) / "density").glob("*.npz"))
    lines = [measured(path) for path in paths if path.stem in names or not names]
    print_lines("Mean held-out log-likelihood, nats per row", lines)


def measured(path: Path) -> tuple[str, str, str, str]:
    """Return the line of one set."""
    with np.load(path) as splits:
        domain = jp.Domain.of_sizes([2] * splits["train"].shape[1])
        train, valid, test = (jp.Codes(domain, splits[k]) for k in ("train", "valid", "test"))
    begin = time.perf_counter()
    solution = jp.fit_rows(train, validation=valid, random_state=0)
    seconds = time.perf_counter() - begin
    published = PUBLISHED.get(path.stem, Published())
    score = solution.pmf.log_probability(test).mean()
    asked = "report" if published.asked is None else f"at least {published.asked}"
    return (
        f"{path.stem}: {solution.start}; {solution.n_averaged} fits",
        f"{score:.3f}",
        f"{published}; {seconds:.0f} s",
        asked,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
