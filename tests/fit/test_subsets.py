"""Coupled fits to rows: which way is chosen, and that both ways agree."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit import coupled
from jointpmf.fit.subsets import is_cheaper_implicitly
from jointpmf.marginals.orders import check_countable

TRUTH = jp.random_pmf(jp.Domain.of_sizes([4] * 6), 3, random_state=0)
ROWS = TRUTH.sample(2000, random_state=0, backend="codes")


def with_holes(missing=0.2):
    holes = np.random.default_rng(0).random(ROWS.shape) < missing
    return np.where(holes, -1, ROWS)


def fit(table, is_implicit, order=3, start="auto", **options):
    options = {"random_state": 0, "domain": TRUTH.domain} | options
    objective, search = jp.Coupled(order, is_implicit), jp.Search(start=start)
    return jp.fit_rows(table, 3, objective=objective, search=search, **options)


class TestBothWays:
    @pytest.mark.parametrize("order", [2, 3, 4])
    @pytest.mark.parametrize("table", [ROWS, with_holes()], ids=["complete", "holes"])
    def test_agree(self, order, table):
        counted, implicit = (fit(table, way, order=order) for way in (False, True))
        precision = 1e-5 if counted.is_unique else 1e-3  # a valley ends anywhere
        assert implicit.objective == pytest.approx(counted.objective, rel=precision)
        assert implicit.is_unique == counted.is_unique
        assert counted.source.kind == "counted"
        assert implicit.source.kind == "implicit"
        assert implicit.source.n_marginals == counted.source.n_marginals == len(counted.marginals)
        assert implicit.kkt < 1e-3

    def test_weights_of_rows_count(self):
        weights = np.random.default_rng(1).integers(0, 4, len(ROWS))
        repeated = np.repeat(ROWS, weights, axis=0)
        weighted = fit(ROWS, True, sample_weight=weights)
        assert weighted.objective == pytest.approx(fit(repeated, True).objective)

    def test_the_same_seed_gives_the_same_bits(self):
        one, other = (fit(ROWS, True, max_iter=5) for _ in range(2))
        np.testing.assert_array_equal(one.pmf.weights, other.pmf.weights)


class TestStart:
    def test_a_model(self):
        solution = fit(ROWS, True, start=TRUTH, max_iter=0)
        np.testing.assert_array_equal(solution.pmf.weights, TRUTH.weights)
        assert solution.start.kind == "given"

    def test_at_random(self):
        solution = fit(ROWS, True, start="random")
        assert solution.start.kind == "random"
        assert 1 <= solution.n_agreed <= solution.n_starts == len(solution.restarts) <= 20
        assert solution.objective == pytest.approx(fit(ROWS, True).objective, rel=1e-4)

    def test_a_rank_without_closed_form(self, monkeypatch):
        monkeypatch.setattr(coupled, "point_of_all_subsets", lambda *asked: None)
        solution = fit(ROWS, True, max_iter=3)
        assert "the closed form does not apply" in str(solution.start)

    @pytest.mark.parametrize("start", ["rows", 3, jp.random_pmf(TRUTH.domain, 2)])
    def test_others_are_refused(self, start):
        with pytest.raises(jp.JointPMFError, match="start"):
            fit(ROWS, True, start=start)


def test_stopping_returns_what_there_is():
    solution = fit(ROWS, True, start="random", callback=lambda step, pmf: True)
    assert solution.status is jp.Status.STOPPED
    assert (solution.start.kind, solution.n_starts) == ("random", 1)


def test_a_rank_that_the_marginals_do_not_determine():
    table = ROWS[:, :3] % 2
    domain = jp.Domain.of_sizes([2, 2, 2])
    solution = fit(table, True, order=2, domain=domain, max_iter=300)
    assert solution.is_unique is False


class TestChoice:
    @staticmethod
    def codes(n_variables, n_rows, missing=0.0):
        generator = np.random.default_rng(0)
        array = generator.integers(0, 5, (n_rows, n_variables))
        array[generator.random(array.shape) < missing] = -1
        return jp.Codes(jp.Domain.of_sizes([5] * n_variables), array)

    def test_few_variables_are_counted(self):
        assert not is_cheaper_implicitly(self.codes(5, 10_000), 10, 3)

    def test_many_are_not(self):
        assert is_cheaper_implicitly(self.codes(200, 1000), 10, 3)
        assert is_cheaper_implicitly(self.codes(200, 1000, missing=0.3), 10, 3)

    def test_higher_orders_turn_sooner(self):
        codes = self.codes(20, 5000)
        assert not is_cheaper_implicitly(codes, 10, 2)
        assert is_cheaper_implicitly(codes, 10, 4)

    def test_tables_that_would_fill_the_memory_are_not_counted(self):
        few_rows = self.codes(300, 2)
        assert is_cheaper_implicitly(few_rows, 1, 4)

    def test_an_impossible_order_gets_its_own_sentence(self):
        with pytest.raises(jp.JointPMFError, match="order"):
            jp.fit_rows(ROWS, 2, objective=jp.Coupled(order=9))


@pytest.mark.parametrize("is_implicit", [False, True])
@pytest.mark.parametrize("stop", [3, 25])
def test_a_fit_goes_on_to_the_same_bits(stop, is_implicit, tmp_path):
    options = {"order": 3, "max_iter": 40}

    def kept_in(folder):
        return jp.Checkpoint(tmp_path / folder, every=2, seconds=0.0)

    def interrupt(step, pmf):
        return step.iteration == stop

    whole = fit(with_holes(), is_implicit, checkpoint=kept_in("a"), **options)
    part = fit(with_holes(), is_implicit, checkpoint=kept_in("b"), callback=interrupt, **options)
    assert part.n_iter == stop
    rest = fit(with_holes(), is_implicit, checkpoint=kept_in("b"), **options)
    assert [step.objective for step in rest.history] == [step.objective for step in whole.history]
    for one, other in zip(rest.pmf.factors, whole.pmf.factors, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("is_implicit", [False, True])
def test_an_interrupt_before_there_is_a_start_gives_a_model(is_implicit, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(coupled, "point_of_all_subsets", interrupted)
    monkeypatch.setattr(coupled, "algebraic_start", interrupted)
    solution = fit(ROWS, is_implicit)
    assert solution.status is jp.Status.STOPPED
    assert str(solution.start) == "random: interrupted before it began"
    assert solution.pmf.weights.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("order", ["3", None, 2.5, 0])
@pytest.mark.parametrize("is_implicit", [False, True])
def test_an_order_that_is_no_whole_number_is_refused(order, is_implicit):
    with pytest.raises(jp.JointPMFError, match="the order must be a whole number"):
        fit(ROWS, is_implicit, order=order)


@pytest.mark.parametrize("is_implicit", [False, True])
class TestTablesThatSayNothing:
    def test_a_column_without_an_observed_cell(self, is_implicit):
        table = ROWS.copy()
        table[:, 2] = -1
        with pytest.raises(jp.JointPMFError, match="column 'x2' has no observed cell"):
            fit(table, is_implicit)

    def test_weights_that_are_all_zero(self, is_implicit):
        with pytest.raises(jp.JointPMFError, match="all sample weights are zero"):
            fit(ROWS, is_implicit, sample_weight=np.zeros(len(ROWS)))

    def test_tiny_weights_are_weights(self, is_implicit):
        ones, tiny = (
            fit(ROWS, is_implicit, sample_weight=np.full(len(ROWS), weight))
            for weight in (1.0, 1e-300)
        )
        assert tiny.objective == pytest.approx(ones.objective, rel=1e-6)


def test_marginals_that_cannot_all_be_counted_are_refused():
    domain = jp.Domain.of_sizes([4] * 200)
    with pytest.raises(jp.JointPMFError, match=r"1313400 marginals of order 3 have .* too many"):
        check_countable(domain, 3)
    check_countable(domain, 2)


def test_counting_too_many_is_refused_also_where_the_rank_is_searched_for():
    table = np.zeros((3, 200), int)
    with pytest.raises(jp.JointPMFError, match="too many to count"):
        jp.fit_rows(table, objective="marginals", domain=jp.Domain.of_sizes([4] * 200))


@pytest.mark.parametrize(
    ("objective", "rank", "sentence"),
    [
        (jp.Coupled(is_implicit=True), "auto", "is_implicit needs a rank"),
        (jp.Coupled(is_implicit=True), 2, "is_implicit does not apply to rows that are counted"),
    ],
    ids=["rank", "batches"],
)
def test_marginals_that_cannot_be_implicit(objective, rank, sentence):
    source = ROWS if rank == "auto" else [ROWS]
    with pytest.raises(jp.JointPMFError, match=sentence):
        jp.fit_rows(source, rank, objective=objective)


OTHER_ROWS = TRUTH.sample(200, random_state=7, backend="codes")
HIDDEN = np.random.default_rng(3).random(ROWS.shape) < 0.1


@pytest.mark.parametrize(
    "validation",
    [0.2, OTHER_ROWS, HIDDEN, jp.HiddenCells(0.1, scoring="error"), lambda pmf: pmf.weights.max()],
    ids=["fraction", "table", "mask", "cells", "function"],
)
class TestValidation:
    """Coupled fits are stopped by whatever fits by likelihood are stopped by."""

    @pytest.mark.parametrize("is_implicit", [False, True])
    def test_of_a_rank(self, validation, is_implicit):
        solution = fit(ROWS, is_implicit, validation=validation, max_iter=30)
        costs = [step.validation for step in solution.history]
        assert solution.validation == min(costs)
        again = fit(ROWS, is_implicit, validation=validation, max_iter=30)
        assert [step.validation for step in again.history] == costs

    def test_of_a_rank_that_is_searched_for(self, validation):
        solution = jp.fit_rows(
            ROWS[:, :5], objective="marginals", validation=_part(validation), random_state=0
        )
        assert np.isfinite(solution.validation)
        assert solution.source.kind == "counted"
        assert solution.source.n_rows == len(ROWS)


def _part(validation):
    """Return a validation for the first five columns."""
    return validation[:, :5] if isinstance(validation, np.ndarray) else validation
