"""The first call of each entry point on a machine where nothing has been compiled yet.

Each runs in a process of its own with an empty folder of compiled code; imports do not count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from benchmarks.measure import print_lines

PREPARED = """
import json, time
import numpy as np
import jointpmf as jp
from numba.core import event

truth = jp.random_pmf(jp.Domain.of_sizes([2, 3, 4, 3, 2]), 3, random_state=0)
array = np.random.default_rng(0).integers(-1, 2, (300, 5))
codes = jp.Codes(truth.domain, array)
triples = truth.marginals(3)
noisy = jp.MarginalSet(
    truth.domain, [jp.Marginal(m.names, 1000 * m.table, 1000, noise=3) for m in triples]
)
"""

TIMED = """
took, busy = [], time.process_time()
with event.install_recorder("numba:compile") as compilations:
    for _ in range(2):
        begin = time.perf_counter()
        {call}
        took.append(time.perf_counter() - begin)
        busy = time.process_time() - busy if len(took) == 1 else busy
n_compiled = sum(record.is_end for _, record in compilations.buffer)
print(json.dumps([*took, busy, n_compiled]))
"""

CALLS = {
    "fit_rows": "jp.fit_rows(codes, 3, random_state=0)",
    'fit_rows, rank="auto"': "jp.fit_rows(codes, random_state=0)",
    "fit_marginals": "jp.fit_marginals(triples, 3, random_state=0)",
    '  rank="auto"': "jp.fit_marginals(triples, random_state=0)",
    '  method="aoadmm"': 'jp.fit_marginals(triples, 3, method="aoadmm", random_state=0)',
    '  method="newton"': 'jp.fit_marginals(triples, 3, method="newton", random_state=0)',
    '  loss="likelihood"': 'jp.fit_marginals(triples, 3, loss="likelihood", random_state=0)',
    '  loss="gaussian"': 'jp.fit_marginals(noisy, 3, loss="gaussian", random_state=0)',
    "identifiability": "jp.identifiability(triples, 3)",
    "predict_proba": 'truth.predict_proba(codes, "x1")',
    "sample": "truth.sample(300, random_state=0)",
    "impute": "jp.impute(truth, array)",
    "population": "truth.population(300, triples, random_state=0)",
    "uncertainty": "jp.fit_rows(codes, 3, random_state=0).uncertainty(n=10, random_state=0)",
    "the demo": (
        "from rich.console import Console; from jointpmf.command.demo import run; "
        "run(Console(quiet=True))"
    ),
}
ASKED = {"the demo": "under 10 s"}


def main() -> None:
    """Measure and print."""
    print_lines("First calls, nothing compiled before", [line(what) for what in CALLS])


def line(what: str) -> tuple[str, str, str, str]:
    """Return how long a first call takes, and the second beside it."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", PREPARED + TIMED.format(call=CALLS[what])],
            env={**os.environ, "NUMBA_CACHE_DIR": folder},
            capture_output=True,
            text=True,
            check=True,
        )
    first, second, busy, n_compiled = json.loads(done.stdout.splitlines()[-1])
    beside = f"{busy:.1f} s of a core; again {second:.2f} s; {n_compiled} functions compiled"
    return what, f"{first:.1f} s", beside, ASKED.get(what, "under 6 s")


if __name__ == "__main__":
    main()
