"""How often each loop is compiled: once, however its arrays lie in memory."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import json, sys
sys.path.insert(0, {tests!r})
from support.loops import compile_loops, signatures
compile_loops()
print(json.dumps(signatures()))
"""


def test_one_signature_per_loop():
    """In a process of its own: tests of single loops call them in ways that nobody else does."""
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(tests=tests)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert {"e_step", "_solve_block", "add_pair_grams", "improve"} <= set(found)
    again = {name: kinds for name, kinds in found.items() if len(kinds) > 1}
    assert not again
