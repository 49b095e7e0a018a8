"""Fits from batches: the same as at once, whatever the batches; each row once; codes on disk."""

import errno
import tempfile
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.fit import opening
from jointpmf.fit.settings import Effort
from jointpmf.rows import spool
from jointpmf.rows.spool import Spool
from jointpmf.solvers.stepwise import Stepwise
from jointpmf.threads import limited_to
from support.small_fits import fit_rows

TRUTH = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2, 3, 3]), rank=2, random_state=3)


def holed(n_rows, seed=0, part=0.15):
    generator = np.random.default_rng(seed)
    rows = np.array(TRUTH.sample(n_rows, random_state=generator, backend="codes"), int)
    rows[generator.random(rows.shape) < part] = jp.MISSING
    return rows


ROWS = holed(4000)


FEW = Effort(most_starts=2, patience=2)
"""One start of each kind, where many would only take their time."""

SMALL = replace(FEW, sample_rows=400, step_rows=100, block_bytes=(5 + 16) * 300)
"""With all of it small, a small table goes every way that a large one goes."""


@pytest.fixture
def spools(monkeypatch):
    """Collect all spools that are made."""
    made = []

    class Watched(Spool):
        def __init__(self, *asked):
            super().__init__(*asked)
            made.append(self)

    monkeypatch.setattr(opening, "Spool", Watched)
    return made


def split(rows, n_batches=7):
    return np.array_split(rows, n_batches)


def fit(given, **options):
    how = {"random_state": 0, "tol": 1e-12, "missing_code": jp.MISSING, "effort": FEW}
    return fit_rows(given, 2, **how | options)


def fit_small(given, **options):
    return fit(given, effort=SMALL, **options)


@cache
def at_once():
    """Return the fit to all rows as one table."""
    return fit(ROWS)


@cache
def best():
    """Return the fit to all rows as one batch, of which several blocks are made."""
    return fit_small([ROWS])


@cache
def fit_shortly():
    return fit_small([ROWS], max_iter=3)


def same(first, second):
    pairs = zip([first.weights, *first.factors], [second.weights, *second.factors], strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


class TestReadAgain:
    def test_it_is_the_fit_to_all_rows(self):
        solution = fit(split(ROWS))
        assert solution.status is jp.Status.CONVERGED
        assert solution.objective == pytest.approx(at_once().objective, abs=1e-8)

    @pytest.mark.parametrize(
        "options", [{}, {"smoothing": 2.0}, {"smoothing": 1.0, "towards": "marginal"}]
    )
    def test_it_is_the_fit_to_all_rows_also_from_many_blocks(self, spools, options):
        whole = fit(ROWS, **options)
        solution = fit_small(split(ROWS), **options)
        assert spools[0].n_parts > 10
        assert solution.start.in_steps
        assert solution.start.n_rows == pytest.approx(400, rel=0.2)
        assert solution.objective == pytest.approx(whole.objective, abs=1e-8)
        assert jp.kl_divergence(whole.pmf, solution.pmf).value < 1e-6

    def test_the_steps_leave_little_to_do(self):
        least = best().objective
        short = fit_small(split(ROWS), max_iter=1)
        unstepped = fit_small(split(ROWS), max_iter=0)  # at the model of the sample
        assert short.history[0].objective - least < 0.25 * (unstepped.objective - least)

    def test_sorted_rows_are_fitted_as_well(self):
        solution = fit_small(split(ROWS[np.lexsort(ROWS.T)]))
        assert solution.objective == pytest.approx(best().objective, abs=1e-8)

    def test_a_callable_is_called_for_each_reading(self):
        calls = []

        def tables():
            calls.append(None)
            yield from split(ROWS)

        solution = fit(tables, max_iter=5)
        assert len(calls) == 2
        assert same(solution.pmf, fit(split(ROWS), max_iter=5).pmf)
        assert len(calls) == 2
        fit(tables, domain=TRUTH.domain, max_iter=5)
        assert len(calls) == 3

    @pytest.mark.parametrize(
        "sizes", [[4000], [1] * 50 + [3950], [0, 1999, 0, 2001, 0], [123] * 33]
    )
    def test_the_batches_do_not_matter(self, sizes):
        ends = np.minimum(np.cumsum([0, *sizes]), len(ROWS))
        some = [ROWS[a:b] for a, b in pairwise(ends)] + [ROWS[ends[-1] :]]
        assert same(fit_small(some, max_iter=3).pmf, fit_shortly().pmf)

    def test_nor_do_the_threads(self):
        for count in (1, 3):
            with limited_to(count):
                assert same(fit_small(split(ROWS), max_iter=3).pmf, fit_shortly().pmf), count

    def test_another_seed_is_another_sample(self):
        first, second = (fit_small(split(ROWS), max_iter=1, random_state=seed) for seed in (0, 1))
        assert not same(first.pmf, second.pmf)

    def test_a_start_can_be_given(self):
        solution = fit_small(split(ROWS), start=TRUTH)
        assert solution.start.kind == "given"
        assert solution.objective == pytest.approx(best().objective, abs=1e-8)

    def test_a_start_under_which_rows_cannot_happen_is_lifted(self):
        sure = [np.eye(size)[:, [0, 0]] for size in TRUTH.domain.sizes]
        start = jp.JointPMF(TRUTH.domain, [0.5, 0.5], sure)
        assert np.isfinite(fit_small(split(ROWS), start=start, max_iter=2).objective)

    def test_rare_levels_that_no_sample_sees_are_learned(self):
        rows = np.where(ROWS[:, :1] == 0, [[0, 0, 0, 0, 0]], ROWS)
        rows[3777, 1] = 3
        domain = jp.Domain.of_sizes([3, 5, 2, 3, 3])
        rows[3999, 1] = 4
        solution = fit_small(split(rows), domain=domain)
        assert solution.objective == pytest.approx(fit(rows, domain=domain).objective, abs=1e-8)

    def test_the_callback_sees_iterations_and_stops(self):
        seen = []

        def callback(step, pmf):
            seen.append(step.iteration)
            return len(seen) == 3

        solution = fit_small(split(ROWS), callback=callback)
        assert seen == [1, 2, 3]
        assert solution.status is jp.Status.STOPPED

    def test_rows_that_repeat_are_kept_once(self, spools):
        few = np.repeat(ROWS[:20], 500, axis=0)
        np.random.default_rng(0).shuffle(few)
        solution = fit_small(split(few))
        assert spools[0].n_rows == 10_000
        assert spools[0].n_parts == 1
        assert solution.objective == pytest.approx(fit(few).objective, abs=1e-8)


class TestReadOnce:
    def test_each_row_is_seen_once_and_the_status_says_so(self):
        solution = fit_small(iter(split(ROWS)), domain=TRUTH.domain)
        assert solution.status is jp.Status.ONE_PASS
        assert "once" in solution.status.value
        assert solution.n_iter == -(-(4000 - 401) // 100)
        least = best().objective
        mean = solution.pmf.log_probability(ROWS).mean()
        first = fit_small([ROWS[:401]])
        assert -mean - least < 0.2 * (-first.pmf.log_probability(ROWS).mean() - least)

    def test_the_objective_is_that_of_rows_when_they_came(self):
        models = []
        fit_to_first = fit_small([ROWS[:401]], max_iter=100)
        solution = fit_small(
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
        assert same(solution.pmf, at_once().pmf)
        assert solution.status is jp.Status.CONVERGED

    def test_the_batches_do_not_matter(self):
        domain = TRUTH.domain
        first = fit_small(iter(split(ROWS, 3)), domain=domain)
        assert same(first.pmf, fit_small(iter(split(ROWS, 40)), domain=domain).pmf)
        with limited_to(1):
            assert same(first.pmf, fit_small(iter([ROWS]), domain=domain).pmf)

    def test_it_needs_a_domain(self):
        with pytest.raises(jp.JointPMFError, match="only once, such as a generator, need a domain"):
            fit(iter(split(ROWS)))

    def test_the_callback_stops(self):
        solution = fit_small(
            iter(split(ROWS)), domain=TRUTH.domain, callback=lambda step, pmf: True
        )
        assert (solution.status, solution.n_iter) == (jp.Status.STOPPED, 1)

    def test_an_interrupt_returns_the_model_so_far(self):
        def interrupted():
            yield ROWS[:2000]
            raise KeyboardInterrupt

        solution = fit_small(interrupted(), domain=TRUTH.domain)
        assert solution.status is jp.Status.STOPPED
        assert solution.n_iter == 15

    def test_a_column_that_comes_late_is_learned(self):
        late = ROWS.copy()
        late[:1500, 4] = jp.MISSING
        late[:900, 0] = np.minimum(late[:900, 0], 1)  # and a level
        solution = fit_small(iter(split(late)), domain=TRUTH.domain)
        for name in ("x0", "x4"):
            n = TRUTH.domain.index(name)
            counts = np.bincount(late[late[:, n] >= 0, n])
            wanted = counts / counts.sum()
            assert np.abs(solution.pmf.marginal([name]).table() - wanted).max() < 0.05

    def test_a_column_that_never_comes_is_named(self):
        late = ROWS.copy()
        late[:, 4] = jp.MISSING
        with pytest.raises(jp.JointPMFError, match="column 'x4' has no observed cell"):
            fit_small(iter(split(late)), domain=TRUTH.domain)


class TestLevels:
    def test_batches_may_lack_columns_and_have_them_in_any_order(self):
        whole = pl.DataFrame(ROWS, [f"x{n}" for n in range(5)], orient="row").with_columns(
            pl.when(pl.all() >= 0).then(pl.all())
        )
        hidden = whole[:2000].with_columns(pl.lit(None, pl.Int64).alias("x3"))
        some = [whole[2000:].select("x4", "x1", "x0", "x2", "x3"), hidden.drop("x3"), whole[:0]]
        whole = fit(pl.concat([some[0], hidden.select(some[0].columns)]), tol=1e-10)
        solution = fit(some, tol=1e-10)
        assert solution.pmf.domain == whole.pmf.domain
        assert solution.objective == pytest.approx(whole.objective, abs=1e-8)

    def test_codes_bring_their_domain(self):
        codes = [jp.Codes(TRUTH.domain, rows) for rows in split(ROWS)]
        given = fit(split(ROWS), domain=TRUTH.domain, max_iter=5)
        assert same(fit(codes, max_iter=5).pmf, given.pmf)
        with pytest.raises(jp.JointPMFError, match="batch 1: the codes are over another domain"):
            fit([codes[0], jp.Codes(jp.Domain.of_sizes([9] * 5), ROWS)])

    def test_minus_one_is_a_level_unless_it_is_said_to_be_missing(self):
        batches = [np.array([[-1, 1]]), np.array([[-5, 1], [0, 0]])]
        assert fit(batches).pmf.domain["x0"].levels == (-5, 0)
        assert fit(batches, missing_code=None).pmf.domain["x0"].levels == (-5, -1, 0)

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
            (3, "a table must be a pandas, Polars or PyArrow table or an array, not int"),
            (lambda: 3, "must return an iterable of tables, not 3"),
            ([], "the table is empty"),
            ([ROWS[:0], ROWS[:0]], "the batches are empty"),
            ([ROWS, 3], "batch 1: a table must be"),
            ([ROWS, ROWS[:, :3]], "batch 1: the array has 3 columns for 5 variables"),
            ([ROWS, ROWS[0]], "batch 1: an array of rows must have two dimensions"),
            (iter([[1, 2], [3, 4]]), "need a domain"),
            ([np.full((3, 2), np.nan)], "column 'x0' has no observed cell"),
        ],
    )
    def test_they_are_refused_in_one_sentence(self, given, says):
        with pytest.raises(jp.JointPMFError, match=says):
            fit(given)

    def test_an_empty_iterator(self):
        with pytest.raises(jp.JointPMFError, match="the batches are empty"):
            fit(iter([]), domain=TRUTH.domain)

    def test_rows_without_any_cell(self):
        empty = np.full((1000, 5), jp.MISSING)
        with pytest.raises(jp.JointPMFError, match="no row has an observed cell"):
            fit_small([empty], domain=TRUTH.domain)
        assert np.isfinite(fit_small([empty, ROWS]).objective)
        assert np.isfinite(fit_small(iter([empty, ROWS]), domain=TRUTH.domain).objective)
        with pytest.raises(jp.JointPMFError, match="nothing to fit"):
            fit_small(iter([empty]), domain=TRUTH.domain)

    def test_a_callable_that_gives_its_rows_once(self):
        generator = iter(split(ROWS))
        with pytest.raises(jp.JointPMFError, match="4000 rows when they were read first and 0"):
            fit(lambda: generator)

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"objective": "magic"}, "objective must be"),
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


class TestDisk:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        return tmp_path

    @pytest.mark.parametrize("error", [jp.JointPMFError, KeyboardInterrupt, RuntimeError])
    @pytest.mark.parametrize("when", ["reading", "fitting"])
    def test_nothing_is_left_after_an_error(self, folder, spools, error, when):
        def tables():
            yield from split(ROWS)
            if when == "reading":
                raise error("no more")

        def callback(step, pmf):
            raise error("no more")

        try:
            fit_small(tables, domain=TRUTH.domain, callback=callback)
        except error:
            pass
        else:
            assert (error, when) == (KeyboardInterrupt, "fitting")  # which gives the model so far
        assert [made._file.closed for made in spools] == [True]
        assert list(folder.iterdir()) == []

    def test_an_interrupt_in_the_steps_gives_the_model_so_far(self, monkeypatch):
        add = Stepwise.add

        def interrupted(self, rows):
            if len(self.history) == 5:
                raise KeyboardInterrupt
            return add(self, rows)

        monkeypatch.setattr(Stepwise, "add", interrupted)
        solution = fit_small(split(ROWS))
        assert (solution.status, solution.n_iter) == (jp.Status.STOPPED, 5)
        assert np.isfinite(solution.pmf.log_probability(ROWS)).all()

    def test_a_full_disk_is_a_sentence(self, monkeypatch, tmp_path):
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
            fit_small(split(ROWS))
        assert str(tmp_path) in str(error.value)
