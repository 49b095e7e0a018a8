"""EM on two jobs: against a plain C loop and against StepMix, and is the optimum found.

StepMix runs in an environment of its own, whose interpreter `JOINTPMF_PEERS` names (`make bench`
sets it up); without it those lines say so.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import jointpmf as jp
from benchmarks.measure import peak_bytes, print_lines, seconds
from jointpmf.point import Point
from jointpmf.rows.table import Rows
from jointpmf.solvers.em import EM
from jointpmf.threads import limited_to, n_threads

HERE = Path(__file__).parent
Line = tuple[str, str, str, str]


def main() -> None:
    """Measure and print."""
    print_lines("100,000 × 10 × 10 levels, 30 % missing, rank 10", first_job())
    print_lines("20,000 × 50 binary, rank 20, complete", second_job())


def planted(
    n_rows: int, sizes: list[int], rank: int, concentration: float, missing: float, seed: int
) -> tuple[jp.JointPMF, jp.Codes]:
    """Return a model with Dirichlet columns, and rows of it with holes."""
    generator = np.random.default_rng(seed)
    domain = jp.Domain.of_sizes(sizes)
    columns = [generator.dirichlet(np.full(size, concentration), rank).T for size in sizes]
    truth = jp.JointPMF(domain, generator.dirichlet(np.full(rank, 5.0)), columns)
    rows = np.array(truth.sample(n_rows, random_state=generator, backend="codes"))
    rows[generator.random(rows.shape) < missing] = jp.MISSING
    return truth, jp.Codes(domain, rows)


def first_job() -> list[Line]:
    """Return the lines of the categorical job with holes."""
    truth, codes = planted(100_000, [10] * 10, 10, 0.5, 0.3, 0)
    ours = EM(Rows.of_codes(codes), truth.rank)
    state = ours.start(Point.of_pmf(truth))
    two = seconds(lambda: ours.plain_step(state))
    with limited_to(1):
        one = seconds(lambda: ours.plain_step(state))
    plain = c_seconds(truth, codes)
    peak = peak_bytes(lambda: jp.fit_rows(codes, truth.rank, random_state=0))
    peer = stepmix(codes, "categorical_nan", truth.rank, 50, [0])
    return [
        (
            "EM iteration, one thread",
            f"{1e3 * one:.2f} ms",
            f"plain C {1e3 * plain:.2f} ms: {one / plain:.2f}×",
            "at most 1.5×",
        ),
        against(f"EM iteration, {n_threads()} threads", two, peer, 100),
        (
            "peak memory of a fit",
            f"{peak / 1e6:.0f} MB",
            f"codes {codes.array.nbytes / 1e6:.0f} MB",
            "at most 100 MB more",
        ),
        *optima([planted(100_000, [10] * 10, 10, 0.5, 0.3, seed) for seed in range(3)], peer),
    ]


def second_job() -> list[Line]:
    """Return the lines of the binary job."""
    truth, codes = planted(20_000, [2] * 50, 20, 1.0, 0.0, 0)
    ours = EM(Rows.of_codes(codes), truth.rank)
    state = ours.start(Point.of_pmf(truth))
    two = seconds(lambda: ours.plain_step(state))
    peer = stepmix(codes, "binary", truth.rank, 200, range(4))
    jobs = [planted(20_000, [2] * 50, 20, 1.0, 0.0, seed) for seed in range(8)]
    return [against(f"EM iteration, {n_threads()} threads", two, peer, 5), *optima(jobs, peer)]


def against(what: str, ours: float, peer: list[dict[str, Any]], asked: int) -> Line:
    """Return the line that sets our time beside StepMix's."""
    if not peer:
        return what, f"{1e3 * ours:.2f} ms", "StepMix is not here", f"{asked}× faster"
    theirs = min(result["per_iteration"] for result in peer)
    beside = f"StepMix {1e3 * theirs:.0f} ms: {theirs / ours:.0f}× faster"
    return what, f"{1e3 * ours:.2f} ms", beside, f"at least {asked}× faster"


def optima(jobs: list[tuple[jp.JointPMF, jp.Codes]], peer: list[dict[str, Any]]) -> list[Line]:
    """Return a line per planted model: is the default at or above the truth."""
    lines = []
    for k, (truth, codes) in enumerate(jobs):
        true = truth.log_probability(codes).mean()
        solution = jp.fit_rows(codes, truth.rank, random_state=0)
        found = solution.pmf.log_probability(codes).mean()
        beside = f"truth {true:.4f}"
        if k == 0 and peer:
            theirs = ", ".join(f"{result['log_likelihood']:.4f}" for result in peer)
            beside += f"; StepMix after {peer[0]['n_iter']} iterations {theirs}"
        began = solution.start.kind if solution.start else "nowhere"
        name = f"log-likelihood, model {k}, one fit ({began})"
        lines.append((name, f"{found:.4f}", beside, "at least the truth"))
    return lines


def c_seconds(truth: jp.JointPMF, codes: jp.Codes) -> float:
    """Return the time of one iteration in plain C, the rank padded as ours is."""
    rank = -(-truth.rank // 4) * 4
    size = truth.domain.sizes[0]
    factors = np.zeros((len(truth.domain), size, rank))
    factors[:, :, : truth.rank] = truth.factors
    weights = np.zeros(rank)
    weights[: truth.rank] = truth.weights
    rows = np.ascontiguousarray(codes.array, np.int8)
    new_weights, new_factors = np.empty_like(weights), np.empty_like(factors)
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/em.so"
        command = ["cc", "-O3", "-march=native", "-shared", "-fPIC"]
        subprocess.run([*command, str(HERE / "em.c"), "-o", library, "-lm"], check=True)
        iteration = ctypes.CDLL(library).em_iteration
        iteration.restype = ctypes.c_double
        arrays = [a.ctypes.data_as(ctypes.c_void_p) for a in (weights, factors)]
        out = [a.ctypes.data_as(ctypes.c_void_p) for a in (new_weights, new_factors)]
        codes_ = rows.ctypes.data_as(ctypes.c_void_p)

        def run() -> float:
            return iteration(codes_, *rows.shape, size, rank, *arrays, *out)

        assert np.isclose(run(), truth.log_probability(codes).sum())
        return seconds(run)


def stepmix(
    codes: jp.Codes, measurement: str, rank: int, max_iter: int, seeds: Any
) -> list[dict[str, Any]]:
    """Return what StepMix took, per seed; nothing if it is not installed."""
    python = os.environ.get("JOINTPMF_PEERS")
    if not python:
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.npz"
        np.savez(path, rows=np.where(codes.array < 0, np.nan, codes.array))
        command = [python, str(HERE / "stepmix_job.py"), path, measurement, str(rank)]
        command += [str(max_iter), *map(str, seeds)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=sys.stderr)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
