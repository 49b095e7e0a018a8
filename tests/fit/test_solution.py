"""What a fit says about itself: facts are fields, and `str` writes the sentence."""

import pytest

import jointpmf as jp
from jointpmf.fit.solution import FittedTo, Start
from jointpmf.model_file import read_about


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        (Start("rows"), "rows"),
        (Start("random", "as asked"), "random: as asked"),
        (Start("rows", n_rows=412.0), "rows, on 412 rows"),
        (
            Start("merged rows", n_rows=50_000.0, in_steps=True),
            "merged rows, on 50000 rows, then in steps",
        ),
    ],
)
def test_where_a_fit_began(start, sentence):
    assert str(start) == sentence


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (FittedTo("rows", n_rows=300), "300 rows"),
        (FittedTo("rows", n_rows=9000, n_sampled=100), "a sample of 100 of 9000 rows"),
        (FittedTo("marginals", n_marginals=4), "4 marginals"),
    ],
)
def test_what_was_fitted(source, sentence):
    assert str(source) == sentence


def test_every_fit_says_what_was_fitted_and_how():
    rows = jp.random_pmf(jp.Domain.of_sizes([3] * 4), 2, 0).sample(60, random_state=0)
    counted = jp.MarginalSet.from_table(rows, 2)
    by_rows = jp.fit_rows(rows, 2, objective=jp.Likelihood(smoothing=0.5), random_state=0)
    assert by_rows.source == FittedTo("rows", n_rows=60)
    assert by_rows.settings == jp.Likelihood(smoothing=0.5)
    assert by_rows.n_starts == len(by_rows.restarts) >= by_rows.n_agreed >= 1
    searched = jp.fit_rows(rows, random_state=0)
    assert searched.source == FittedTo("rows", n_rows=60)
    assert searched.settings.smoothing in (0.1, 1.0)
    assert searched.n_averaged > 1
    given = jp.fit_marginals(counted, 2, loss="squares", random_state=0)
    assert given.source == FittedTo("marginals", n_marginals=6, loss="squares")
    assert given.settings is None
    batches = jp.fit_rows([rows[:30], rows[30:]], 2, random_state=0)
    assert batches.source == FittedTo("rows", n_rows=60)
    once = jp.fit_rows(iter([rows[:30], rows[30:]]), 2, domain=by_rows.pmf.domain, random_state=0)
    assert once.source == FittedTo("rows", n_rows=60)


def test_a_saved_solution_says_what_was_fitted(tmp_path):
    truth = jp.random_pmf(jp.Domain.of_sizes([2, 2, 2]), 1, random_state=0)
    names = [("x0", "x1"), ("x2",)]
    tables = [jp.Marginal(pair, truth.marginal(pair).table()) for pair in names]
    solution = jp.fit_marginals(jp.MarginalSet(truth.domain, tables), 1, random_state=0)
    solution.save(tmp_path / "m.safetensors")
    about = read_about(tmp_path / "m.safetensors")
    assert about == solution.about
    assert about["subsets"] == '[["x0", "x1"], ["x2"]]'
    assert (about["tables"], about["rank"], about["loss"]) == ("2", "1", "squares")
    assert jp.load(tmp_path / "m.safetensors").rank == 1
