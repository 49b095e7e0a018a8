"""Coupled fits to rows: which way is chosen, and that both ways agree."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit import subsets
from jointpmf.fit.subsets import is_cheaper_implicitly

TRUTH = jp.random_pmf(jp.Domain.of_sizes([4] * 8), 3, random_state=0)
ROWS = TRUTH.sample(2000, random_state=0, backend="codes")


def with_holes(missing=0.2):
    holes = np.random.default_rng(0).random(ROWS.shape) < missing
    return np.where(holes, -1, ROWS)


def fit(table, is_implicit, monkeypatch, **options):
    monkeypatch.setattr(subsets, "is_cheaper_implicitly", lambda *asked: is_implicit)
    options = {"method": "marginals", "random_state": 0, "domain": TRUTH.domain} | options
    return jp.fit_rows(table, 3, **options)


class TestBothWays:
    @pytest.mark.parametrize("order", [2, 3, 4])
    @pytest.mark.parametrize("table", [ROWS, with_holes()], ids=["complete", "holes"])
    def test_agree(self, order, table, monkeypatch):
        counted, implicit = (fit(table, way, monkeypatch, order=order) for way in (False, True))
        precision = 1e-5 if counted.is_unique else 1e-3  # a valley ends anywhere
        assert implicit.objective == pytest.approx(counted.objective, rel=precision)
        assert implicit.is_unique == counted.is_unique
        assert "counted" in counted.source
        assert "implicitly" in implicit.source
        assert implicit.kkt < 1e-3

    def test_weights_of_rows_count(self, monkeypatch):
        weights = np.random.default_rng(1).integers(0, 4, len(ROWS))
        repeated = np.repeat(ROWS, weights, axis=0)
        weighted = fit(ROWS, True, monkeypatch, sample_weight=weights)
        assert weighted.objective == pytest.approx(fit(repeated, True, monkeypatch).objective)

    def test_the_same_seed_gives_the_same_bits(self, monkeypatch):
        one, other = (fit(ROWS, True, monkeypatch, max_iter=5) for _ in range(2))
        np.testing.assert_array_equal(one.pmf.weights, other.pmf.weights)


class TestStart:
    def test_a_model(self, monkeypatch):
        solution = fit(ROWS, True, monkeypatch, start=TRUTH, max_iter=0)
        np.testing.assert_array_equal(solution.pmf.weights, TRUTH.weights)
        assert solution.start == "given: a JointPMF"

    def test_at_random(self, monkeypatch):
        solution = fit(ROWS, True, monkeypatch, start="random")
        assert solution.start == "random: the best of 3, as asked"
        assert solution.objective == pytest.approx(fit(ROWS, True, monkeypatch).objective, rel=1e-4)

    def test_a_rank_without_closed_form(self, monkeypatch):
        monkeypatch.setattr(subsets, "point_of_all_subsets", lambda *asked: None)
        solution = fit(ROWS, True, monkeypatch, max_iter=3)
        assert "the closed form does not apply" in solution.start

    @pytest.mark.parametrize("start", ["rows", 3, jp.random_pmf(TRUTH.domain, 2)])
    def test_others_are_refused(self, start, monkeypatch):
        with pytest.raises(jp.JointPMFError, match="start"):
            fit(ROWS, True, monkeypatch, start=start)


def test_stopping_returns_what_there_is(monkeypatch):
    solution = fit(ROWS, True, monkeypatch, start="random", callback=lambda step, pmf: True)
    assert solution.status is jp.Status.STOPPED
    assert solution.start.startswith("random: the best of 1")


def test_a_rank_that_the_marginals_do_not_determine(monkeypatch):
    table = ROWS[:, :3] % 2
    domain = jp.Domain.of_sizes([2, 2, 2])
    solution = fit(table, True, monkeypatch, order=2, domain=domain, max_iter=300)
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
            jp.fit_rows(ROWS, 2, method="marginals", order=9)


@pytest.mark.parametrize("is_implicit", [False, True])
@pytest.mark.parametrize("stop", [3, 25])
def test_a_fit_goes_on_to_the_same_bits(stop, is_implicit, monkeypatch, tmp_path):
    monkeypatch.setattr("jointpmf.fit.checkpoint.MIN_SECONDS", 0.0)
    options = {"order": 3, "checkpoint_every": 2, "max_iter": 40}

    def interrupt(step, pmf):
        return step.iteration == stop

    whole = fit(with_holes(), is_implicit, monkeypatch, checkpoint=tmp_path / "a", **options)
    part = fit(
        with_holes(), is_implicit, monkeypatch, checkpoint=tmp_path / "b", callback=interrupt,
        **options,
    )  # fmt: skip
    assert part.n_iter == stop
    rest = fit(with_holes(), is_implicit, monkeypatch, checkpoint=tmp_path / "b", **options)
    assert [step.objective for step in rest.history] == [step.objective for step in whole.history]
    for one, other in zip(rest.pmf.factors, whole.pmf.factors, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("is_implicit", [False, True])
def test_an_interrupt_before_there_is_a_start_gives_a_model(is_implicit, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(subsets, "point_of_all_subsets", interrupted)
    monkeypatch.setattr("jointpmf.fit.coupled._start", interrupted)
    solution = fit(ROWS, is_implicit, monkeypatch)
    assert solution.status is jp.Status.STOPPED
    assert solution.start == "random: interrupted before it began"
    assert solution.pmf.weights.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("order", ["3", None, 2.5, 0])
@pytest.mark.parametrize("is_implicit", [False, True])
def test_an_order_that_is_no_whole_number_is_refused(order, is_implicit, monkeypatch):
    with pytest.raises(jp.JointPMFError, match="the order must be a whole number"):
        fit(ROWS, is_implicit, monkeypatch, order=order)


@pytest.mark.parametrize("is_implicit", [False, True])
class TestTablesThatSayNothing:
    def test_a_column_without_an_observed_cell(self, is_implicit, monkeypatch):
        table = ROWS.copy()
        table[:, 2] = -1
        with pytest.raises(jp.JointPMFError, match="column 'x2' has no observed cell"):
            fit(table, is_implicit, monkeypatch)

    def test_weights_that_are_all_zero(self, is_implicit, monkeypatch):
        with pytest.raises(jp.JointPMFError, match="all sample weights are zero"):
            fit(ROWS, is_implicit, monkeypatch, sample_weight=np.zeros(len(ROWS)))

    def test_tiny_weights_are_weights(self, is_implicit, monkeypatch):
        ones, tiny = (
            fit(ROWS, is_implicit, monkeypatch, sample_weight=np.full(len(ROWS), weight))
            for weight in (1.0, 1e-300)
        )
        assert tiny.objective == pytest.approx(ones.objective, rel=1e-6)


def test_marginals_that_cannot_all_be_counted_are_refused():
    domain = jp.Domain.of_sizes([4] * 200)
    with pytest.raises(jp.JointPMFError, match=r"1313400 marginals of order 3 have .* too many"):
        subsets.check_countable(domain, 3)
    subsets.check_countable(domain, 2)
