"""`make fuzz MINUTES=30`: odd files, tables and commands, stops and kills, until time is over.

Every finding has a seed: `python tests/fuzz/attack.py --target files --seed 17` does it again.
"""

import argparse
import contextlib
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz import commands, files, kills, stops, tables, workers

TARGETS = {
    "files": (files.attack, 200),
    "tables": (tables.attack, 60),
    "commands": (commands.attack, 40),
    "stops": (stops.attack, 10),
    "kills": (kills.attack, 1),
    "workers": (workers.attack, 1),
}
"""What is attacked, and how many cases a round of it has: a round takes some seconds."""

BY_NAME = {"executors": (workers.kill_executor, 1)}
"""What is attacked only if it is asked for: Spark needs Java, and minutes."""

SECONDS, BYTES = 600, 2**34
"""What a case may take at most, and of how much memory addresses the process may have."""


def attacked(target, seed, n_cases=None):
    """Attack a target; raise what a case ends with that should not have."""
    attack, usual = (TARGETS | BY_NAME)[target]
    count = usual if n_cases is None else n_cases

    @hypothesis.seed(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def case(data):
        with within_limits():
            attack(data)

    case()
    return count


@contextlib.contextmanager
def within_limits():
    """Raise if it takes too long; warnings are for people."""

    def too_long(*_):
        raise TimeoutError(f"it took more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def say(text):
    """Print a line now."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main():
    """Attack until time is over, and say what was found; the exit code is 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=None, help="one round with this seed")
    parser.add_argument("--target", choices=TARGETS | BY_NAME, action="append")
    asked = parser.parse_args()
    if "executors" not in (asked.target or ()):  # Java reserves addresses that it does not use
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    begun = said = time.monotonic()
    seed = time.time_ns() % 10**9 if asked.seed is None else asked.seed
    tally, findings = Counter(), []
    while True:
        for target in asked.target or TARGETS:
            try:
                tally[target] += attacked(target, seed)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException:  # a panic in Rust is no Exception
                findings.append(f"--target {target} --seed {seed}")
                say(f"FINDING {findings[-1]}\n{traceback.format_exc()}")
            now = time.monotonic()
            if now - said >= 60:
                said = now
                say(f"{(now - begun) / 60:.0f} min, cases {dict(tally)}, {len(findings)} findings")
        seed += 1
        if asked.seed is not None or time.monotonic() - begun >= 60 * asked.minutes:
            break
    say(f"cases {dict(tally)}, {len(findings)} findings")
    for finding in findings:
        say(f"again: python tests/fuzz/attack.py {finding}")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
