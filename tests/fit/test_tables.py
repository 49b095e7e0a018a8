"""Fits to tables of any kind by likelihood: where they decide, where not, and what is said."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit.table_points import disagreement_of

DOMAIN = jp.Domain(
    [
        jp.Variable("age", ("0-17", "18-39", "40-64", "65+")),
        jp.Variable("income", ("low", "middle", "high")),
        jp.Variable("vote", ("a", "b", "c")),
        jp.Variable("sex", ("f", "m")),
        jp.Variable("region", ("north", "south", "west")),
    ]
)
TRUTH = jp.random_pmf(DOMAIN, 2, random_state=4)
BANDS = {"age": [("0-17", "18-39"), ("40-64", "65+")]}


def published(*names, n=10_000, **how):
    """Return a table of the truth, in some form."""
    shape = [len(how.get("levels", {}).get(name, DOMAIN[name].levels)) for name in names]
    sizes = [
        size for size, name in zip(shape, names, strict=True) if name not in how.get("given", ())
    ]
    asked = jp.Marginal(names, np.ones(shape) / np.prod(sizes), n, **how)
    parts = asked.measured(DOMAIN, 1.0).predicted(TRUTH.weights, TRUTH.factors)
    return jp.Marginal(names, parts, n, **how)


def fitted(tables, rank=2, **options):
    options = {"loss": "likelihood", "random_state": 0} | options
    return jp.fit_marginals(jp.MarginalSet(DOMAIN, tables), rank, **options)


ABOUT = [("age", "income"), ("income", "vote"), ("vote", "sex"), ("sex", "region")]
ABOUT_SEX = TRUTH.marginal(["sex", "region"]).table()
TRIPLES = [published(*names) for names in combinations(DOMAIN.names, 3)]
FORMS = {
    "plain": TRIPLES,
    "bands beside levels": [
        published("age", "income", "vote", levels=BANDS),
        published("age", "sex", levels=BANDS),
        *TRIPLES[1:],
    ],
    "percentages within levels": [
        published("vote", "age", "sex", given=["age", "sex"], n=1000), *TRIPLES[:6], *TRIPLES[7:]
    ],
    "part of the people": [
        published("vote", "income", where={"age": ["40-64", "65+"], "sex": "f"}), *TRIPLES
    ],
}  # fmt: skip


@pytest.mark.parametrize("tables", FORMS.values(), ids=FORMS)
def test_exact_tables_give_the_truth(tables):
    solution = fitted(tables, max_iter=3000, tol=1e-13)
    assert jp.kl_divergence(TRUTH, solution.pmf).value < 1e-6
    assert solution.is_unique
    assert solution.n_averaged == 1
    assert solution.n_agreed >= 2
    assert solution.residuals[0][1] < 1e-3


def test_suppressed_cells_are_filled_in_by_the_other_tables():
    table = TRIPLES[0].table.copy()
    few = table < 0.015
    assert 3 < few.sum() < 15
    holes = jp.Marginal(TRIPLES[0].names, np.where(few, np.nan, table), n_obs=10_000)
    solution = fitted([holes, *TRIPLES[1:]], max_iter=3000, tol=1e-13)
    assert jp.kl_divergence(TRUTH, solution.pmf).value < 1e-6


def test_the_whole_table_as_one_is_the_fit_to_rows():
    rows = TRUTH.sample(400, random_state=0)
    whole = jp.MarginalSet.from_table(rows, len(DOMAIN), domain=DOMAIN)
    from_rows = jp.fit_rows(rows, 2, domain=DOMAIN, random_state=0)
    from_table = jp.fit_marginals(whole, 2, smoothing=0, random_state=0, tol=1e-9)
    assert from_table.objective == pytest.approx(from_rows.objective, abs=1e-6)
    assert jp.kl_divergence(from_rows.pmf, from_table.pmf).value < 1e-4


@cache
def from_pairs(**options):
    """Return a fit to pairs, which do not decide."""
    pairs = [published(*names) for names in combinations(DOMAIN.names, 2)]
    return fitted(pairs, rank=5, **{"max_iter": 300} | options)


class TestWhereTablesDoNotDecide:
    def test_it_is_an_average_and_says_so(self):
        solution = from_pairs()
        assert solution.is_unique is False
        assert solution.n_averaged == solution.n_agreed > 7
        assert solution.pmf.rank == 5 * solution.n_averaged
        assert solution.disagreement > 1e-3
        assert solution.status is jp.Status.NOT_UNIQUE

    def test_it_keeps_the_tables(self):
        assert from_pairs().residuals[0][1] < 5e-3

    def test_it_is_nearer_to_the_truth_than_its_members(self):
        found = from_pairs(search=jp.Search(n_average=1)), from_pairs()
        far, near = (jp.kl_divergence(TRUTH, solution.pmf).value for solution in found)
        assert near < far

    def test_how_many_are_averaged_can_be_said(self):
        few = from_pairs(max_iter=50, search=jp.Search(n_average=3))
        assert few.n_averaged == 3


def test_the_same_seed_gives_the_same_bits():
    first, second = (fitted(TRIPLES, max_iter=20) for _ in range(2))
    assert first.pmf.weights.tolist() == second.pmf.weights.tolist()


def test_a_start_may_be_given():
    solution = fitted(TRIPLES, search=jp.Search(start=TRUTH), max_iter=50)
    assert str(solution.start) in ("given: a JointPMF", "random")
    assert solution.restarts[0].start == "given: a JointPMF"


def test_other_tables_than_whole_ones_are_fitted_by_likelihood():
    bands = [published("age", "income", levels=BANDS), *TRIPLES]
    by_default = fitted(bands, loss="auto", max_iter=20)
    assert by_default.pmf.weights.tolist() == fitted(bands, max_iter=20).pmf.weights.tolist()


def test_a_rank_is_found_where_tables_show_dependence():
    rows = TRUTH.sample(5000, random_state=0)
    tables = jp.MarginalSet.from_table(rows, 3, domain=DOMAIN)
    solution = jp.fit_marginals(tables, loss="likelihood", random_state=0, max_iter=100)
    assert solution.pmf.rank / solution.n_averaged >= 2
    assert jp.kl_divergence(TRUTH, solution.pmf).value < 0.01


def test_few_people_do_not_make_a_rank_large():
    """Counts that were held out of overlapping tables would choose the largest that is tried."""
    truth = jp.random_pmf(jp.Domain.of_sizes([5] * 8), 6, random_state=0)
    tables = jp.MarginalSet.from_table(truth.sample(1000, random_state=0), 3)
    solution = jp.fit_marginals(
        tables, loss="likelihood", random_state=0, max_iter=50, search=jp.Search(n_average=1)
    )
    assert 2 <= solution.pmf.rank <= 4


def test_models_that_exclude_each_other_are_far_apart():
    sure = [
        jp.JointPMF(jp.Domain.of_sizes([2]), [1.0], [np.array([[p], [1 - p]])]) for p in (0.0, 1.0)
    ]
    assert disagreement_of(sure) == pytest.approx(np.log(2))


def test_a_checkpoint_knows_the_tables(tmp_path):
    first = [published("age", "income", levels=BANDS), *TRIPLES]
    other = [published("age", "income", levels=BANDS, where={"sex": "f"}), *TRIPLES]
    done = fitted(first, max_iter=20, checkpoint=tmp_path)
    again = fitted(first, max_iter=20, checkpoint=tmp_path)
    assert done.pmf.weights.tolist() == again.pmf.weights.tolist()
    with pytest.raises(jp.JointPMFError, match="marginals: not the same"):
        fitted(other, max_iter=20, checkpoint=tmp_path)


@pytest.mark.parametrize("is_impossible", [False, True])
def test_a_checkpoint_knows_which_variable_was_meant(tmp_path, is_impossible):
    """Two variables of the same levels, of which the same is said."""
    domain = jp.Domain([jp.Variable(name, ("x", "y")) for name in "abc"])

    def tables(name):
        singles = [jp.Marginal((each,), [5, 0]) for each in "ab"]
        part = jp.Marginal(("c",), [3, 4], where={} if is_impossible else {name: "x"})
        return jp.MarginalSet(domain, [part, *singles], [{name: "y"}] if is_impossible else ())

    jp.fit_marginals(tables("a"), 1, random_state=0, checkpoint=tmp_path)
    with pytest.raises(jp.JointPMFError, match="marginals: not the same"):
        jp.fit_marginals(tables("b"), 1, random_state=0, checkpoint=tmp_path)


@pytest.mark.parametrize("interrupted_at", [1, 30])
def test_ctrl_c_while_the_rank_is_sought(interrupted_at, tmp_path):
    """It ends the fit; the same call goes on from there to the same model."""
    n_calls = 0

    def interrupt(step, pmf):
        nonlocal n_calls
        n_calls += 1
        if n_calls == interrupted_at:
            raise KeyboardInterrupt

    tables = jp.MarginalSet(DOMAIN, [published(*names) for names in ABOUT])
    options = {"random_state": 0, "max_iter": 30, "search": jp.Search(n_average=2)}
    found = jp.fit_marginals(tables, callback=interrupt, checkpoint=tmp_path, **options)
    assert found.status is jp.Status.STOPPED
    assert n_calls <= interrupted_at + 1
    resumed = jp.fit_marginals(tables, checkpoint=tmp_path, **options)
    whole = jp.fit_marginals(tables, **options)
    assert resumed.pmf.weights.tolist() == whole.pmf.weights.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "newton"}, "method='newton' is for loss='squares'"),
        ({"loss": "squares", "search": jp.Search(n_average=3)}, "n_average .* by likelihood"),
        ({"loss": "magic"}, "loss"),
        ({"smoothing": -1}, "smoothing"),
        ({"weighting": "counts"}, "weighting is for squares"),
        ({"validation": lambda pmf: 0.0}, "validation is for loss='squares'"),
        ({"search": jp.Search(n_starts=3)}, "n_starts"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(jp.JointPMFError, match=message):
        fitted(TRIPLES, **options)


@pytest.mark.parametrize(
    "ask",
    [
        lambda tables: jp.plots.marginal_fit(TRUTH, tables),
    ],
)
def test_what_needs_whole_tables_says_so(ask):
    tables = jp.MarginalSet(DOMAIN, [published("age", "income", levels=BANDS), *TRIPLES])
    with pytest.raises(jp.JointPMFError, match="needs whole tables of all levels"):
        ask(tables)


class TestLoss:
    def counted(self, **how):
        return [published(*names, **how) for names in combinations(DOMAIN.names, 3)]

    def loss(self, tables, **options):
        found = jp.fit_marginals(
            jp.MarginalSet(DOMAIN, tables), 2, max_iter=5, random_state=0, **options
        )
        return found.source.loss

    def test_counts_are_fitted_by_likelihood(self):
        assert self.loss(self.counted()) == "likelihood"

    def test_exact_probabilities_are_fitted_by_squares(self):
        assert self.loss([jp.Marginal(m.names, m.table) for m in TRIPLES]) == "squares"

    def test_what_belongs_to_squares_chooses_them(self):
        assert self.loss(self.counted(), weighting="counts") == "squares"
        assert self.loss(self.counted(), method="aoadmm") == "squares"

    def test_noise_that_no_table_has(self):
        with pytest.raises(jp.JointPMFError, match="needs tables with noise"):
            fitted(TRIPLES, loss="gaussian")


def noisy(marginal, sigma, seed=0, n=10_000):
    """Return a table of counts to which noise was added."""
    noise = np.broadcast_to(np.asarray(sigma, float), marginal.table.shape)
    added = noise * np.random.default_rng(seed).standard_normal(marginal.table.shape)
    return jp.Marginal(marginal.names, n * marginal.table + added, n, noise=noise)


class TestNoise:
    def test_a_cell_with_much_noise_says_little(self):
        sigma = np.full(TRIPLES[0].table.shape, 0.1)
        sigma[0, 0, 0] = 1e5
        tables = [noisy(TRIPLES[0], sigma), *TRIPLES[1:]]
        solution = fitted(tables, loss="auto", max_iter=3000, tol=1e-10)
        assert jp.kl_divergence(TRUTH, solution.pmf).value < 1e-4

    def test_negative_cells_are_data(self):
        tables = [noisy(table, 60.0, seed) for seed, table in enumerate(TRIPLES)]
        assert min(table.table.min() for table in tables) < 0
        solution = fitted(tables, loss="gaussian")
        assert jp.kl_divergence(TRUTH, solution.pmf).value < 0.05

    def test_the_expected_count_is_between_what_was_seen_and_what_the_model_says(self):
        """The fit is that of least squares with the variance of sampling and noise together."""
        tables = [noisy(table, 30.0, seed) for seed, table in enumerate(TRIPLES)]
        pmf = fitted(tables, loss="gaussian", max_iter=5000, tol=1e-13).pmf
        slope = np.zeros(pmf.rank)
        for table, exact in zip(tables, TRIPLES, strict=True):
            own = pmf.marginal(exact.names)
            mean = 10_000 * own.table()
            weight = (10_000 * table.table - mean) / (mean + 900.0)
            for f in range(pmf.rank):
                part = own.factors[0][:, f]
                for factor in own.factors[1:]:
                    part = np.multiply.outer(part, factor[:, f])
                slope[f] += (weight * part).sum()
        assert np.ptp(slope) < 1e-3 * np.abs(weight).sum()


IMPOSSIBLE = [{"age": "0-17", "vote": ("a", "b")}, {"sex": "m", "income": "high"}]


def without_impossible(n_rows=5000):
    """Return rows of the truth among which nothing is impossible, and tables of them."""
    rows = TRUTH.sample(n_rows, random_state=0, backend="codes")
    bad = ((rows[:, 0] == 0) & (rows[:, 2] < 2)) | ((rows[:, 3] == 1) & (rows[:, 1] == 2))
    return jp.Codes(DOMAIN, rows[~bad])


class TestImpossible:
    @pytest.mark.parametrize("rank", [4, "auto"])
    def test_it_has_probability_zero_in_every_answer(self, rank):
        pairs = jp.MarginalSet.from_table(without_impossible(), 2)
        tables = jp.MarginalSet(DOMAIN, pairs.marginals, impossible=IMPOSSIBLE)
        pmf = jp.fit_marginals(tables, rank, random_state=0, max_iter=100).pmf
        whole = pmf.table()
        assert whole[0, :, :2].max() == 0
        assert whole[:, 2, :, 1].max() == 0
        drawn = pmf.sample(2000, random_state=0, backend="codes")
        assert not ((drawn[:, 0] == 0) & (drawn[:, 2] < 2)).any()

    def test_the_tables_are_kept(self):
        pairs = jp.MarginalSet.from_table(without_impossible(), 2)
        tables = jp.MarginalSet(DOMAIN, pairs.marginals, impossible=IMPOSSIBLE)
        assert jp.fit_marginals(tables, 8, random_state=0).residuals[0][1] < 0.02

    def test_a_rank_that_is_too_small(self):
        pairs = jp.MarginalSet.from_table(without_impossible(), 2)
        tables = jp.MarginalSet(DOMAIN, pairs.marginals, impossible=IMPOSSIBLE)
        with pytest.raises(jp.JointPMFError, match="rank 1 is too small for 2 impossible"):
            jp.fit_marginals(tables, 1, random_state=0)


class TestSquaresOfSomeTables:
    BANDS = published("age", "income", levels=BANDS)

    def test_whole_tables_are_used_and_the_others_named(self, caplog):
        tables = jp.MarginalSet(DOMAIN, [self.BANDS, *TRIPLES])
        found = jp.fit_marginals(tables, 2, loss="squares", random_state=0)
        assert len(found.marginals) == len(TRIPLES)
        assert "not Marginal(age, income: 2×3" in caplog.text

    def test_whole_tables_that_miss_a_variable(self):
        tables = jp.MarginalSet(
            DOMAIN, [self.BANDS, jp.Marginal(DOMAIN.names[2:], np.ones((3, 2, 3)) / 18)]
        )
        with pytest.raises(jp.JointPMFError, match="needs whole tables of all levels"):
            jp.fit_marginals(tables, 2, loss="squares")


def test_noise_says_how_much_a_table_of_unknown_size_counts_for():
    """Cells are met as far as their noise lets them, also where it differs from cell to cell."""
    generator, names = np.random.default_rng(0), ("age", "income", "vote")
    truth = TRUTH.marginal(names).table()
    noise = np.where(generator.random(truth.shape) < 0.5, 0.0005, 0.02)
    seen = truth + noise * generator.standard_normal(truth.shape)
    table, others = jp.Marginal(names, seen, noise=noise), jp.Marginal(("sex", "region"), ABOUT_SEX)
    found = fitted([table, others], loss="auto", search=jp.Search(n_average=1))
    errors = [((seen - p) / noise) ** 2 for p in (found.pmf.marginal(names).table(), truth)]
    assert errors[0].sum() < errors[1].sum()


def test_no_rank_is_tried_that_no_joint_needs():
    domain = jp.Domain.of_sizes([2, 3])
    table = jp.Marginal(("x0", "x1"), [[100, 20, 30], [10, 200, 40]])
    solution = jp.fit_marginals(jp.MarginalSet(domain, [table]), random_state=0)
    assert solution.pmf.rank == 2 * solution.n_averaged


def test_never_one_component_where_few_tables_show_dependence():
    rows = TRUTH.sample(400, random_state=1)
    tables = jp.MarginalSet.from_table(rows, 3, domain=DOMAIN)
    solution = jp.fit_marginals(tables, random_state=0, max_iter=30)
    assert solution.pmf.rank // solution.n_averaged > 1


def test_one_component_where_all_are_independent():
    free = jp.random_pmf(DOMAIN, 1, random_state=0).sample(2000, random_state=0)
    tables = jp.MarginalSet.from_table(free, 2, domain=DOMAIN)
    assert jp.fit_marginals(tables, random_state=0).pmf.rank == 1


def test_probabilities_that_leave_the_model_open_are_averaged():
    pairs = TRUTH.marginals(2)
    solution = jp.fit_marginals(pairs, 4, random_state=0, max_iter=300)
    assert solution.n_averaged > 1
    assert solution.residuals[0][1] < 1e-3


def test_one_component_where_each_table_is_of_one_variable():
    rows = TRUTH.sample(2000, random_state=0)
    tables = jp.MarginalSet.from_table(rows, 1, domain=DOMAIN)
    assert jp.fit_marginals(tables, random_state=0).pmf.rank == 1


def test_many_tables_of_one_trait_are_met_by_free_components():
    names = tuple("abcdefgh")
    domain = jp.Domain([jp.Variable(name, ("no", "yes")) for name in names])
    trait = np.linspace(-2.5, 2.5, 21)
    yes = 1 / (1 + np.exp(-1.8 * trait))
    weights = np.exp(-(trait**2) / 2)
    truth = jp.JointPMF(domain, weights / weights.sum(), [np.stack([1 - yes, yes])] * 8)
    rows = jp.Codes(domain, truth.sample(4000, random_state=1, backend="codes"))
    chain = [names[k : k + 2] for k in range(7)] + [("a", "d"), ("b", "g")]
    solution = jp.fit_marginals(jp.MarginalSet.from_table(rows, subsets=chain), random_state=0)
    assert not solution.trait_models
    assert solution.residuals[0][1] < 0.01
