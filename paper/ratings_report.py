"""The tables and figures of the rating experiment, from its records."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import t as student

from jointpmf.show import plots

PAPER = {
    # method: RMSE and MAE on MovieLens 1, 2, 3 and Jester, as the paper prints them
    "CP (pairs)": (0.8095, 0.6134, 0.7637, 0.5811, 0.9038, 0.7028, 4.8585, 4.0052),
    "CP (triples)": (0.7903, 0.6003, 0.7443, 0.5655, 0.8955, 0.6947, 4.7931, 3.9270),
    "CP (quadruples)": (0.7874, 0.5994, 0.7419, 0.5624, 0.8912, 0.6916, 4.7797, 3.9204),
    "global average": (0.9368, 0.7157, 0.8924, 0.7026, 1.0102, 0.8175, 5.1975, 4.4201),
    "user average": (0.9388, 0.6979, 0.8008, 0.5787, 1.0693, 0.8106, 5.0287, 4.0377),
    "item average": (0.8888, 0.6863, 0.8864, 0.6930, 0.9549, 0.7516, 5.1063, 4.3148),
    "BMF": (0.8161, 0.6367, 0.7443, 0.5760, 0.9207, 0.7293, 4.8168, 4.0088),
}
TITLES = {
    "action": "MovieLens 1 (action)",
    "animation": "MovieLens 2 (animation)",
    "romance": "MovieLens 3 (romance)",
    "jester": "Jester",
}
TABLE = (
    "CP (pairs)",
    "CP (triples)",
    "CP (triples), likelihood",
    "CP (triples), likelihood, averaged",
    "CP (quadruples)",
    "coupled, default",
    "maximum likelihood",
    "likelihood, averaged",
    "global average",
    "user average",
    "item average",
    "BMF, up to 40 epochs",
    "BMF",
)
AVERAGES = ("global average", "user average", "item average")
SOME_RANKS = (10, 20, 40)
FEW_EPOCHS = 40
ABLATION = {
    "to convergence": "likelihood, one fit, run to convergence",
    "maximum likelihood": "stopped at the best validation iterate",
    "+ noise floor": "and a noise floor: smoothing 0.01 towards the marginals",
    "+ averaging": "noise floor and the average of six fits",
    "likelihood, averaged": "`fit_rows(ratings)`: these, or traits, as the validation part says",
    "CP (triples)": "triples by least squares, as the paper",
    "coupled, by counts": "triples weighted by their counts",
    "coupled, default": "the same from the closed form, with second-order steps",
    "CP (triples), likelihood": "triples by the likelihood of their counts, one fit",
    "CP (triples), likelihood, averaged": "triples by the likelihood of their counts, averaged",
}
CURVES = ("CP (pairs)", "CP (triples)", "CP (quadruples)", "maximum likelihood", "+ averaging")
LABELS = {
    "likelihood, averaged": "likelihood, averaged (rank auto)",
}
SURE = 0.8
BMFS = ("BMF", "BMF, up to 40 epochs")
LEVELS = np.arange(1, 20) / 20
"""Nominal coverages of the reliability plot."""

SPREAD = np.sqrt(0.2 / 0.7)
"""What splits of one table have in common widens intervals by: test part over training part."""

NOTE = """
Mean ± standard error over the splits; everything left open is chosen on the validation part. The
paper's numbers are from a larger MovieLens release. CP: AO-ADMM from a random start, the best
validation iterate. `CP (triples), likelihood`: the counts of the same triples by EM, one fit; and
the average of eight fits; rank and smoothing are raised while that helps. `coupled, default`:
triples by least squares with everything at its default. `likelihood, averaged`:
`fit_rows(ratings)`. BMF: rank, regularisation and epochs chosen, at its library's own
learning rate; that library's default is 20 epochs, and many more are better.
"""
LEVEL_NOTE = """
Absolute errors are of the predicted mean, as in the paper. Of a predicted level (the median of the
predicted distribution; for methods without one, the level nearest to the prediction):
"""
RATIO_NOTE = """
Errors as a part of BMF's, and the paired difference of RMSE with two intervals of 95 %: over the
splits, and widened for what splits of one table have in common (Nadeau and Bengio 2003). The last
column has everything chosen on the test part, split by split, for both. The paper's best
(quadruples) has 0.965, 0.997, 0.968 and 0.992 of its BMF's RMSE.
"""


class Series(NamedTuple):
    """What a method did on all splits of a set, with what was chosen on validation."""

    rmse: np.ndarray
    mae: np.ndarray
    mae_of_level: np.ndarray
    on_test: np.ndarray
    seconds: np.ndarray


Records = list[dict[str, Any]]


def write(records: Records, title: str, sizes: dict[str, str], stem: Path) -> str:
    """Write the report, the numbers of every split and the figures; return the report."""
    records = [*records, *_with_few_epochs(records)]
    series = _series(records)
    text = "\n".join(_report(series, records, title, sizes)) + "\n"
    stem.with_name(f"{stem.name}.md").write_text(text)
    _write_numbers(records, stem.with_name(f"{stem.name}.csv"))
    _draw_ranks(records, series, stem.with_name(f"{stem.name}_rank"))
    _draw_reliability(records, stem.with_name(f"{stem.name}_reliability"))
    return text


def _with_few_epochs(records: Records) -> Records:
    """Return the records of biased matrix factorization as if it had few epochs only."""
    return [
        {
            **record,
            "method": BMFS[1],
            "tried": [t for t in record["tried"] if t["setting"]["n_epochs"] <= FEW_EPOCHS],
        }
        for record in records
        if record["method"] == BMFS[0]
    ]


def _chosen(record: dict[str, Any]) -> dict[str, Any]:
    return min(record["tried"], key=lambda tried: tried["validation"])


def _column(tried: Records, name: str) -> np.ndarray:
    return np.array([one[name] for one in tried])


def _series(records: Records) -> dict[tuple[str, str], Series]:
    groups: dict[tuple[str, str], Records] = {}
    for record in records:
        groups.setdefault((record["set"], record["method"]), []).append(record)
    found = {}
    for key, group in groups.items():
        chosen = [_chosen(record) for record in group]
        found[key] = Series(
            rmse=_column(chosen, "rmse"),
            mae=_column(chosen, "mae"),
            mae_of_level=_column(chosen, "mae_of_level"),
            on_test=np.array([min(_column(record["tried"], "rmse")) for record in group]),
            seconds=_column(chosen, "seconds"),
        )
    return found


def _report(
    series: dict[tuple[str, str], Series], records: Records, title: str, sizes: dict[str, str]
) -> Iterator[str]:
    yield f"# {title}\n"
    for name, size in sizes.items():
        yield f"- {TITLES[name]}: {size}"
    yield "\n## RMSE: the paper's Table III, and ours beside it\n"
    yield from _errors(series, "rmse")
    yield NOTE
    yield "## MAE\n"
    yield from _errors(series, "mae")
    yield LEVEL_NOTE
    yield from _errors(series, "mae_of_level", tuple(m for m in TABLE if m not in AVERAGES))
    yield "\n## Against biased matrix factorization"
    for bmf in BMFS:
        yield f"\n### {bmf}\n"
        yield RATIO_NOTE if bmf == BMFS[0] else ""
        head = ["method", "set", "RMSE", "MAE", "MAE of level", "difference of RMSE", "widened"]
        yield from _table([*head, "RMSE chosen on test"], _against(series, bmf))
    yield "\n## What helps: RMSE as a part of BMF's\n"
    yield from _table(
        ["what", *TITLES.values()],
        ([text, *_parts_of_bmf(records, series, m)] for m, text in ABLATION.items()),
    )
    yield "\n## How sure: sets of levels that have probability 80 %\n"
    place = int(np.abs(LEVELS - SURE).argmin())
    yield from _table(
        ["method", *TITLES.values()],
        (
            [m, *(f"{_coverage(records, s, m)[place]:.1%}" for s in TITLES)]
            for m in ("CP (quadruples)", "maximum likelihood", "likelihood, averaged")
        ),
    )
    yield "\nPart of the hidden ratings inside; the level at the border of a set counts by the part"
    yield "of it that the set needs. The reliability plot shows all probabilities.\n"
    yield "## Seconds per fit, one thread\n"
    yield from _table(
        ["method", *TITLES.values()],
        ([m, *(f"{series[s, m].seconds.mean():.2g}" for s in TITLES)] for m in TABLE),
    )
    yield "\n`likelihood, averaged` is the whole search for the best kinds of fit, others are one"
    yield "fit (`CP (triples), likelihood, averaged`: eight) with the chosen setting."


def _errors(
    series: dict[tuple[str, str], Series], measure: str, methods: tuple[str, ...] = TABLE
) -> Iterator[str]:
    def cells(method: str) -> Iterator[str]:
        for k, name in enumerate(TITLES):
            if is_printed:
                place = 2 * k + (measure == "mae")
                yield f"{PAPER[method][place]:.4f}" if method in PAPER else ""
            ours = getattr(series[name, method], measure)
            error = f" ± {ours.std(ddof=1) / np.sqrt(len(ours)):.4f}" if len(ours) > 1 else ""
            yield f"{ours.mean():.4f}{error}"

    is_printed = measure != "mae_of_level"
    head = ["method"]
    for title in TITLES.values():
        head += [f"{title}: paper", "ours"] if is_printed else [title]
    yield from _table(head, ([method, *cells(method)] for method in methods))


def _against(series: dict[tuple[str, str], Series], bmf: str) -> Iterator[list[str]]:
    for method in TABLE:
        for name, title in TITLES.items():
            if method not in BMFS:
                yield [method, title, *_compared(series[name, method], series[name, bmf])]


def _compared(own: Series, bmf: Series) -> Iterator[str]:
    for measure in ("rmse", "mae", "mae_of_level"):
        yield f"{getattr(own, measure).mean() / getattr(bmf, measure).mean():.4f}"
    difference = own.rmse - bmf.rmse
    n, mean = len(difference), difference.mean()
    deviation = difference.std(ddof=1) * student.ppf(0.975, n - 1) if n > 1 else np.nan
    half, wide = deviation / np.sqrt(n), deviation * np.hypot(np.sqrt(1 / n), SPREAD)
    yield f"{mean:+.4f} ({mean - half:+.4f}, {mean + half:+.4f})"
    yield f"({mean - wide:+.4f}, {mean + wide:+.4f})"
    yield f"{own.on_test.mean() / bmf.on_test.mean():.4f}"


def _parts_of_bmf(
    records: Records, series: dict[tuple[str, str], Series], method: str
) -> Iterator[str]:
    """Yield a method's RMSE in parts of BMF's for every set, at the ranks that all rows have."""
    for name in TITLES:
        own = [r for r in records if r["set"] == name and r["method"] == method]
        if method == "maximum likelihood":
            own = [
                {"tried": [t for t in r["tried"] if t["setting"]["rank"] in SOME_RANKS]}
                for r in own
            ]
        rmse = np.mean([_chosen(record)["rmse"] for record in own])
        yield f"{rmse / series[name, 'BMF'].rmse.mean():.4f}"


def _coverage(records: Records, name: str, method: str) -> np.ndarray:
    own = [r for r in records if r["set"] == name and r["method"] == method]
    return np.mean([_chosen(record)["coverage"] for record in own], axis=0)


def _table(head: list[str], rows: Iterator[list[str]] | Any) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _write_numbers(records: Records, path: Path) -> None:
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        names = ("validation", "rmse", "mae", "mae_of_level")
        writer.writerow(["set", "split", "method", "setting", *names])
        for record in records:
            chosen = _chosen(record)
            setting = " ".join(f"{name}={value}" for name, value in chosen["setting"].items())
            errors = [f"{chosen[name]:.5f}" for name in names]
            writer.writerow([record["set"], record["split"], record["method"], setting, *errors])


def _draw_ranks(records: Records, series: dict[tuple[str, str], Series], path: Path) -> None:
    """Draw the paper's figure: RMSE as a function of rank, on the test part."""
    with plots.style():
        figure = Figure(figsize=(9, 7))
        for ax, (name, title) in zip(figure.subplots(2, 2).flat, TITLES.items(), strict=True):
            references = {
                LABELS.get(method, method): series[name, method].rmse.mean()
                for method in ("BMF", "likelihood, averaged")
            }
            for method in CURVES:
                ranks, errors = _by_rank(records, name, method)
                label = LABELS.get(method, method)
                plots.error_by_rank(ranks, errors, label=label, references=references, ax=ax)
                references = {}  # once is enough
            ax.set_title(title)
            ax.get_legend().remove()
        figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        _save(figure, path)


def _by_rank(records: Records, name: str, method: str) -> tuple[list[int], list[list[float]]]:
    """Return the ranks that a method tried, and its errors at each of them on every split."""
    own = [r["tried"] for r in records if r["set"] == name and r["method"] == method]
    ranks = [tried["setting"]["rank"] for tried in own[0]]
    return ranks, [[tried["rmse"] for tried in record] for record in own]


def _draw_reliability(records: Records, path: Path) -> None:
    """Draw how often hidden ratings lie in sets of some probability, against that probability."""
    with plots.style():
        figure = Figure(figsize=(5, 5))
        ax = figure.subplots()
        ax.plot([0, 1], [0, 1], color=plots.GREY, lw=1)
        for (name, title), marker in zip(TITLES.items(), plots.MARKERS, strict=False):
            covered = _coverage(records, name, "likelihood, averaged")
            ax.plot(LEVELS, covered, marker=marker, label=title)
        ax.set(xlabel="probability of the set", ylabel="hidden ratings inside", aspect="equal")
        ax.set(xlim=(0, 1), ylim=(0, 1))
        ax.legend()
        _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path.with_name(f"{path.name}.png"), dpi=150)
    figure.savefig(path.with_name(f"{path.name}.svg"), metadata={"Date": None})
