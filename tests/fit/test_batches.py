"""Fits from batches: the same as at once, whatever the batches; each row once; codes on disk."""

import errno
import tempfile
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from jointpmf.fit.plan import FitPlan

import jointpmf as jp
from jointpmf.fit import batches as batches_module
from jointpmf.fit.rows import loop_options
from jointpmf.point import Point
from jointpmf.rows import parts, spool
from jointpmf.rows.parts import CountLevels, CountSubsets, Expect
from jointpmf.rows.spool import Spool
from jointpmf.rows.table import ColumnRows, Rows, Stacks
from jointpmf.solvers import stepwise
from jointpmf.solvers.stepwise import Stepwise, steps_of
from jointpmf.threads import limited_to
from support import oracle

TRUTH = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2, 3, 3]), rank=2, random_state=3)


def holed(n_rows, seed=0, part=0.15):
    generator = np.random.default_rng(seed)
    rows = np.array(TRUTH.sample(n_rows, random_state=generator, backend="codes"), int)
    rows[generator.random(rows.shape) < part] = jp.MISSING
    return rows


ROWS = holed(4000)


@pytest.fixture
def small(monkeypatch):
    """Make everything small, so that a small table goes every way that a large one goes."""
    monkeypatch.setattr(spool, "BLOCK_BYTES", (5 + 16) * 300)
    monkeypatch.setattr(parts, "SAMPLE_ROWS", 400)
    for module in (stepwise, batches_module):
        monkeypatch.setattr(module, "STEP_ROWS", 100)


@pytest.fixture
def spools(monkeypatch):
    """Collect all spools that are made."""
    made = []

    class Watched(Spool):
        def __init__(self, domain):
            super().__init__(domain)
            made.append(self)

    monkeypatch.setattr(batches_module, "Spool", Watched)
    return made


def split(rows, n_batches=7):
    return np.array_split(rows, n_batches)


def fit(given, **options):
    return jp.fit_batches(given, 2, **{"random_state": 0, "tol": 1e-12} | options)


def same(first, second):
    pairs = zip([first.weights, *first.factors], [second.weights, *second.factors], strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


class TestReadAgain:
    def test_it_is_the_fit_to_all_rows(self):
        at_once = jp.fit_rows(ROWS, 2, random_state=0, tol=1e-12)
        solution = fit(split(ROWS))
        assert solution.status is jp.Status.CONVERGED
        assert solution.objective == pytest.approx(at_once.objective, abs=1e-8)

    @pytest.mark.parametrize(
        "options", [{}, {"smoothing": 2.0}, {"smoothing": 1.0, "towards": "marginal"}]
    )
    def test_it_is_the_fit_to_all_rows_also_from_many_blocks(self, small, spools, options):
        at_once = jp.fit_rows(ROWS, 2, random_state=0, tol=1e-12, **options)
        solution = fit(split(ROWS), **options)
        assert spools[0].n_parts > 10
        assert solution.start.endswith(" rows, then in steps")
        assert solution.objective == pytest.approx(at_once.objective, abs=1e-8)
        assert jp.kl_divergence(at_once.pmf, solution.pmf).value < 1e-6

    def test_the_steps_leave_little_to_do(self, small):
        best = fit(split(ROWS)).objective
        short = fit(split(ROWS), max_iter=1)
        unstepped = fit(split(ROWS), max_iter=0)  # at the model of the sample
        assert short.history[0].objective - best < 0.25 * (unstepped.objective - best)

    def test_sorted_rows_are_fitted_as_well(self, small):
        order = np.lexsort(ROWS.T)
        best = fit([ROWS]).objective
        assert fit(split(ROWS[order])).objective == pytest.approx(best, abs=1e-8)

    def test_a_callable_is_called_for_each_reading(self):
        calls = []

        def tables():
            calls.append(None)
            yield from split(ROWS)

        solution = fit(tables)
        assert len(calls) == 2
        assert same(solution.pmf, fit(split(ROWS)).pmf)
        assert len(calls) == 2
        fit(tables, domain=TRUTH.domain)
        assert len(calls) == 3

    @pytest.mark.parametrize(
        "sizes", [[4000], [1] * 50 + [3950], [0, 1999, 0, 2001, 0], [123] * 33]
    )
    def test_the_batches_do_not_matter(self, small, sizes):
        ends = np.minimum(np.cumsum([0, *sizes]), len(ROWS))
        some = [ROWS[a:b] for a, b in pairwise(ends)] + [ROWS[ends[-1] :]]
        assert same(fit(some, max_iter=3).pmf, fit([ROWS], max_iter=3).pmf)

    def test_nor_do_the_threads(self, small):
        with limited_to(1):
            one = fit(split(ROWS), max_iter=3)
        with limited_to(3):
            assert same(one.pmf, fit(split(ROWS), max_iter=3).pmf)

    def test_another_seed_is_another_sample(self, small):
        first, second = (fit(split(ROWS), max_iter=1, random_state=seed) for seed in (0, 1))
        assert not same(first.pmf, second.pmf)

    def test_a_start_can_be_given(self, small):
        solution = fit(split(ROWS), start=TRUTH)
        assert solution.start == "given: a JointPMF"
        assert solution.objective == pytest.approx(fit([ROWS]).objective, abs=1e-8)

    def test_a_start_under_which_rows_cannot_happen_is_lifted(self, small):
        sure = [np.eye(size)[:, [0, 0]] for size in TRUTH.domain.sizes]
        start = jp.JointPMF(TRUTH.domain, [0.5, 0.5], sure)
        assert np.isfinite(fit(split(ROWS), start=start, max_iter=2).objective)

    def test_rare_levels_that_no_sample_sees_are_learned(self, small):
        rows = np.where(ROWS[:, :1] == 0, [[0, 0, 0, 0, 0]], ROWS)
        rows[3777, 1] = 3
        domain = jp.Domain.of_sizes([3, 5, 2, 3, 3])
        rows[3999, 1] = 4
        solution = fit(split(rows), domain=domain)
        at_once = jp.fit_rows(rows, 2, domain=domain, random_state=0, tol=1e-12)
        assert solution.objective == pytest.approx(at_once.objective, abs=1e-8)

    def test_the_callback_sees_iterations_and_stops(self, small):
        seen = []

        def callback(step, pmf):
            seen.append(step.iteration)
            return len(seen) == 3

        solution = fit(split(ROWS), callback=callback)
        assert seen == [1, 2, 3]
        assert solution.status is jp.Status.STOPPED

    def test_rows_that_repeat_are_kept_once(self, small, spools):
        few = np.repeat(ROWS[:20], 500, axis=0)
        np.random.default_rng(0).shuffle(few)
        solution = fit(split(few))
        assert spools[0].n_rows == 10_000
        assert spools[0].n_parts == 1
        at_once = jp.fit_rows(few, 2, random_state=0, tol=1e-12)
        assert solution.objective == pytest.approx(at_once.objective, abs=1e-8)


class TestReadOnce:
    def test_each_row_is_seen_once_and_the_status_says_so(self, small):
        solution = fit(iter(split(ROWS)), domain=TRUTH.domain)
        assert solution.status is jp.Status.ONE_PASS
        assert "once" in solution.status.value
        assert solution.n_iter == -(-(4000 - 401) // 100)
        best = fit([ROWS])
        mean = solution.pmf.log_probability(ROWS).mean()
        first = fit([ROWS[:401]])
        assert -mean - best.objective < 0.2 * (
            -first.pmf.log_probability(ROWS).mean() - best.objective
        )

    def test_the_objective_is_that_of_rows_when_they_came(self, small):
        models = []
        fit_to_first = fit([ROWS[:401]], max_iter=100)
        solution = fit(
            iter(split(ROWS)), domain=TRUTH.domain, callback=lambda step, pmf: models.append(pmf)
        )
        assert len(models) == len(solution.history)
        assert solution.history[0].objective == pytest.approx(
            -fit_to_first.pmf.log_probability(ROWS[401:501]).mean(), abs=1e-2
        )
        means = [step.objective for step in solution.history]
        assert solution.objective == pytest.approx(
            (401 * fit_to_first.objective + 100 * sum(means[:-1]) + 99 * means[-1]) / 4000, abs=1e-3
        )
        assert same(models[-1], solution.pmf)

    def test_a_short_iterator_is_fitted_as_a_table(self):
        solution = fit(iter(split(ROWS)), domain=TRUTH.domain)
        assert same(solution.pmf, jp.fit_rows(ROWS, 2, random_state=0, tol=1e-12).pmf)
        assert solution.status is jp.Status.CONVERGED

    def test_the_batches_do_not_matter(self, small):
        domain = TRUTH.domain
        first = fit(iter(split(ROWS, 3)), domain=domain)
        assert same(first.pmf, fit(iter(split(ROWS, 40)), domain=domain).pmf)
        with limited_to(1):
            assert same(first.pmf, fit(iter([ROWS]), domain=domain).pmf)

    def test_it_needs_a_domain(self):
        with pytest.raises(jp.JointPMFError, match="only once, such as a generator, need a domain"):
            fit(iter(split(ROWS)))

    def test_the_callback_stops(self, small):
        solution = fit(iter(split(ROWS)), domain=TRUTH.domain, callback=lambda step, pmf: True)
        assert (solution.status, solution.n_iter) == (jp.Status.STOPPED, 1)

    def test_an_interrupt_returns_the_model_so_far(self, small):
        def interrupted():
            yield ROWS[:2000]
            raise KeyboardInterrupt

        solution = fit(interrupted(), domain=TRUTH.domain)
        assert solution.status is jp.Status.STOPPED
        assert solution.n_iter == 15

    def test_a_column_that_comes_late_is_learned(self, small):
        late = ROWS.copy()
        late[:1500, 4] = jp.MISSING
        late[:900, 0] = np.minimum(late[:900, 0], 1)  # and a level
        solution = fit(iter(split(late)), domain=TRUTH.domain)
        for name in ("x0", "x4"):
            n = TRUTH.domain.index(name)
            counts = np.bincount(late[late[:, n] >= 0, n])
            wanted = counts / counts.sum()
            assert np.abs(solution.pmf.marginal([name]).table() - wanted).max() < 0.05

    def test_a_column_that_never_comes_is_named(self, small):
        late = ROWS.copy()
        late[:, 4] = jp.MISSING
        with pytest.raises(jp.JointPMFError, match="column 'x4' has no observed cell"):
            fit(iter(split(late)), domain=TRUTH.domain)


class TestCounted:
    @pytest.mark.parametrize("given", [split, lambda rows: iter(split(rows))])
    def test_counts_are_exactly_those_of_all_rows(self, given):
        solution = fit(given(ROWS), method="marginals", order=2, domain=TRUTH.domain, tol=1e-10)
        counted = jp.MarginalSet.from_table(ROWS, 2, domain=TRUTH.domain)
        for mine, at_once in zip(solution.marginals, counted, strict=True):
            assert np.array_equal(mine.table, at_once.table)
            assert mine.n_obs == at_once.n_obs
        other = jp.fit_marginals(counted, 2, weighting="counts", random_state=0)
        assert same(solution.pmf, other.pmf)

    def test_the_source_is_said(self):
        solution = fit(split(ROWS), method="marginals", order=2)
        assert solution.source == "10 marginals counted over the rows"

    def test_too_many_are_refused(self):
        domain = jp.Domain.of_sizes([4] * 200)
        with pytest.raises(jp.JointPMFError, match="too many to count"):
            fit([np.zeros((5, 200), int)], method="marginals", domain=domain)

    def test_smoothing_belongs_to_likelihood(self):
        with pytest.raises(jp.JointPMFError, match="smoothing belongs"):
            fit(split(ROWS), method="marginals", smoothing=1.0)


class TestLevels:
    def test_batches_may_lack_columns_and_have_them_in_any_order(self):
        whole = pl.DataFrame(ROWS, [f"x{n}" for n in range(5)], orient="row").with_columns(
            pl.when(pl.all() >= 0).then(pl.all())
        )
        hidden = whole[:2000].with_columns(pl.lit(None, pl.Int64).alias("x3"))
        some = [whole[2000:].select("x4", "x1", "x0", "x2", "x3"), hidden.drop("x3"), whole[:0]]
        at_once = jp.fit_rows(
            pl.concat([some[0], hidden.select(some[0].columns)]), 2, random_state=0
        )
        solution = fit(some, tol=1e-10)
        assert solution.pmf.domain == at_once.pmf.domain
        assert solution.objective == pytest.approx(at_once.objective, abs=1e-8)

    def test_codes_bring_their_domain(self):
        codes = [jp.Codes(TRUTH.domain, rows) for rows in split(ROWS)]
        assert same(fit(codes).pmf, fit(split(ROWS), domain=TRUTH.domain).pmf)
        with pytest.raises(jp.JointPMFError, match="batch 1: the codes are over another domain"):
            fit([codes[0], jp.Codes(jp.Domain.of_sizes([9] * 5), ROWS)])

    def test_minus_one_beside_other_negative_numbers_is_refused(self):
        with pytest.raises(jp.JointPMFError, match="'x0' holds -1, which means missing"):
            fit([np.array([[-1, 1]]), np.array([[-5, 1]])])

    def test_an_unknown_level_names_column_level_and_batch(self):
        strange = np.array([[0, 0, 0, 0, 0], [0, 9, 0, 0, 0]])
        with pytest.raises(
            jp.JointPMFError, match="batch 7: column 'x1' holds 9 in row 1"
        ) as error:
            fit([*split(ROWS), strange], domain=TRUTH.domain)
        assert "\n" not in str(error.value)
        with pytest.raises(jp.JointPMFError, match="batch 7: column 'x1' holds 9 in row 1"):
            fit(iter([*split(ROWS), strange]), domain=TRUTH.domain)

    def test_too_many_numbers_are_refused_at_once(self):
        read = []

        def tables():
            for k in range(50):
                read.append(k)
                yield pl.DataFrame({"x": np.arange(30 * k, 30 * k + 30), "y": "a"})

        with pytest.raises(
            jp.JointPMFError, match="batch 3: column 'x' has more than 100 distinct"
        ):
            fit(tables)
        assert read == [0, 1, 2, 3]

    def test_a_domain_with_bins_serves(self):
        table = pl.DataFrame({"age": np.linspace(20, 60, 500), "y": ["a", "b"] * 250})
        domain = jp.encode(table[::5], bins={"age": 4}).domain
        solution = fit([table[:200], table[200:]], domain=domain)
        assert solution.pmf.domain["age"].size == 4


class TestBadBatches:
    @pytest.mark.parametrize(
        ("given", "says"),
        [
            (pl.DataFrame({"a": [1]}), r"such as \[table\], not the DataFrame itself"),
            (ROWS, r"not the ndarray itself"),
            (jp.Codes(TRUTH.domain, ROWS), r"not the Codes itself"),
            ("rows.csv", "not the str itself"),
            (3, "an iterable of tables, not 3"),
            (lambda: 3, "must return an iterable of tables, not 3"),
            ([], "the batches are empty"),
            ([ROWS[:0], ROWS[:0]], "the batches are empty"),
            ([ROWS, 3], "batch 1: a table must be"),
            ([ROWS, ROWS[:, :3]], "batch 1: the array has 3 columns for 5 variables"),
            ([[1, 2], [3, 4]], "batch 0: an array of rows must have two dimensions"),
            ([np.full((3, 2), np.nan)], "column 'x0' has no observed cell"),
        ],
    )
    def test_they_are_refused_in_one_sentence(self, given, says):
        with pytest.raises(jp.JointPMFError, match=says):
            fit(given)

    def test_an_empty_iterator(self):
        with pytest.raises(jp.JointPMFError, match="the batches are empty"):
            fit(iter([]), domain=TRUTH.domain)

    def test_rows_without_any_cell(self, small):
        empty = np.full((1000, 5), jp.MISSING)
        with pytest.raises(jp.JointPMFError, match="no row has an observed cell"):
            fit([empty], domain=TRUTH.domain)
        assert np.isfinite(fit([empty, ROWS]).objective)
        assert np.isfinite(fit(iter([empty, ROWS]), domain=TRUTH.domain).objective)
        with pytest.raises(jp.JointPMFError, match="nothing to fit"):
            fit(iter([empty]), domain=TRUTH.domain)

    def test_a_callable_that_gives_its_rows_once(self):
        generator = iter(split(ROWS))
        with pytest.raises(jp.JointPMFError, match="4000 rows when they were read first and 0"):
            fit(lambda: generator)

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"method": "magic"}, "method must be"),
            ({"towards": "nowhere"}, "towards must be"),
            ({"smoothing": -1}, "smoothing must be"),
            ({"max_iter": -1}, "max_iter must be"),
            ({"start": "algebraic"}, "start must be"),
            ({"callback": 3}, "the callback must be callable"),
            ({"domain": 3}, "a domain must be a Domain"),
        ],
    )
    def test_arguments_are_checked(self, options, says):
        with pytest.raises(jp.JointPMFError, match=says):
            fit([ROWS], **options)


class TestSpool:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        return tmp_path

    def filled(self, rows=ROWS, domain=TRUTH.domain):
        made = Spool(domain)
        for batch in split(rows):
            made.add(jp.Codes(domain, batch))
        made.finish()
        return made

    def test_it_gives_back_what_went_in(self, small):
        with self.filled() as made:
            read = [part.rows for part in made.parts()]
            assert [part.index for part in made.parts()] == list(range(made.n_parts))
            assert [part.index for part in made.parts([2, 0])] == [2, 0]
        assert made.n_rows == len(ROWS)
        assert max(map(len, read)) <= 300
        together = np.concatenate([rows.columns for rows in read], axis=1)
        weights = np.concatenate([rows.weights for rows in read])
        found = Rows.of_codes(jp.Codes(TRUTH.domain, together.T), weights)
        wanted = Rows.of_codes(jp.Codes(TRUTH.domain, ROWS))
        assert np.array_equal(found.cells, wanted.cells)
        assert np.allclose(found.weights, wanted.weights)
        assert sum(rows.n_empty for rows in read) == wanted.n_empty

    @pytest.mark.parametrize("size", [3, 200, 40_000])
    def test_codes_of_any_size_fit(self, size):
        domain = jp.Domain.of_sizes([size, 2])
        rows = np.array([[size - 1, 0], [-1, 1], [0, -1]])
        with self.filled(rows, domain) as made:
            (part,) = made.parts()
        assert np.array_equal(part.rows.columns.T, rows)

    def test_sums_over_blocks_are_those_over_all_rows(self, small):
        codes = jp.Codes(TRUTH.domain, ROWS)
        whole = parts.Part.of_codes(0, codes)
        stack = Stacks(TRUTH.domain, 2).stack(Point.of_pmf(TRUTH))
        with self.filled() as made:
            levels, wanted = made.total(CountLevels()), CountLevels()(whole)
            assert np.array_equal(levels.counts, wanted.counts)
            assert levels.weight == wanted.weight
            triples = CountSubsets([(0, 1, 2), (1, 3, 4)])
            for mine, other in zip(made.total(triples).tables, triples(whole).tables, strict=True):
                assert np.array_equal(np.asarray(mine), np.asarray(other))
            expected, other = made.total(Expect(stack, 2)), Expect(stack, 2)(whole)
            assert np.allclose(expected.counts, other.counts, rtol=1e-12)
            assert expected.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-12)

    def test_nothing_is_left_when_it_is_closed(self, folder):
        with self.filled() as made:
            assert not made._file.closed
        assert made._file.closed
        assert list(folder.iterdir()) == []

    @pytest.mark.parametrize("error", [jp.JointPMFError, KeyboardInterrupt, RuntimeError])
    @pytest.mark.parametrize("when", ["reading", "fitting"])
    def test_nothing_is_left_after_an_error(self, folder, small, spools, error, when):
        def tables():
            yield from split(ROWS)
            if when == "reading":
                raise error("no more")

        def callback(step, pmf):
            raise error("no more")

        try:
            fit(tables, domain=TRUTH.domain, callback=callback)
        except error:
            pass
        else:
            assert (error, when) == (KeyboardInterrupt, "fitting")  # which gives the model so far
        assert [made._file.closed for made in spools] == [True]
        assert list(folder.iterdir()) == []

    def test_an_interrupt_in_the_steps_gives_the_model_so_far(self, small, monkeypatch):
        add = Stepwise.add

        def interrupted(self, rows):
            if len(self.history) == 5:
                raise KeyboardInterrupt
            return add(self, rows)

        monkeypatch.setattr(Stepwise, "add", interrupted)
        solution = fit(split(ROWS))
        assert (solution.status, solution.n_iter) == (jp.Status.STOPPED, 5)
        assert np.isfinite(solution.pmf.log_probability(ROWS)).all()

    def test_a_full_disk_is_a_sentence(self, small, monkeypatch, tmp_path):
        class Full:
            def tell(self):
                return 0

            def write(self, content):
                raise OSError(errno.ENOSPC, "No space left on device")

            def close(self):
                pass

        monkeypatch.setattr(spool.tempfile, "TemporaryFile", lambda **options: Full())
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        with pytest.raises(jp.JointPMFError, match="No space left on device; set TMPDIR") as error:
            fit(split(ROWS))
        assert str(tmp_path) in str(error.value)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("towards", ["uniform", "marginal"])
def test_steps_are_those_in_plain_numpy(smoothing, towards):
    generator = np.random.default_rng(5)
    rows, weights = holed(300, seed=5), generator.exponential(size=300) + 0.1
    plan = FitPlan(2, "auto", smoothing, towards, loop_options(10, 0.0))
    codes = jp.Codes(TRUTH.domain, rows[:100])
    steps = Stepwise(plan, Rows.of_codes(codes, weights[:100]), TRUTH)
    by_hand = oracle.StepwiseEM(rows[:100], weights[:100], TRUTH, smoothing, towards)
    for begin, end in ((100, 105), (105, 106), (106, 290), (290, 300)):
        (some,) = steps_of(jp.Codes(TRUTH.domain, rows[begin:end]), weights[begin:end])
        assert steps.add(some) is False
        by_hand.add(rows[begin:end], weights[begin:end])
        for mine, other in zip(steps.pmf().factors, by_hand.pmf().factors, strict=True):
            assert np.allclose(mine, other, atol=1e-12)
        assert np.allclose(steps.pmf().weights, by_hand.pmf().weights, atol=1e-12)
    solution = steps.solution()
    assert solution.objective == pytest.approx(-by_hand.log_likelihood / weights.sum(), rel=1e-12)
    assert solution.n_iter == 4
    assert solution.status is jp.Status.ONE_PASS


def test_a_row_that_cannot_happen_is_made_possible():
    domain = jp.Domain.of_sizes([3, 2])
    apart = jp.JointPMF(domain, [0.5, 0.5], [[[1, 0], [0, 1], [0, 0]], [[1, 0], [0, 1]]])
    first = np.array([[0, 0], [1, 1]] * 10)
    plan = FitPlan(2, "auto", 0.0, "uniform", loop_options(10, 0.0))
    steps = Stepwise(plan, Rows.of_codes(jp.Codes(domain, first)), apart)
    steps.add(ColumnRows.of_codes(jp.Codes(domain, np.array([[2, 0], [0, 1]]))))
    assert np.isfinite(steps.solution().objective)
    assert (steps.pmf().probability(np.array([[2, 0], [0, 1]])) > 0).all()


def test_rows_without_a_cell_are_no_step():
    plan = FitPlan(2, "auto", 0.0, "uniform", loop_options(10, 0.0))
    steps = Stepwise(plan, Rows.of_codes(jp.Codes(TRUTH.domain, ROWS[:50])), TRUTH)
    before = steps.pmf()
    steps.add(ColumnRows.of_codes(jp.Codes(TRUTH.domain, np.full((5, 5), jp.MISSING))))
    assert same(before, steps.pmf())
    assert steps.history == []
