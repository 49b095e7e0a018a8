"""Exact bounds over all joints that meet tables, beside a dense program over the whole joint."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import jointpmf as jp
from jointpmf.judge.cliques import cliques_of, count_cells, tree_of
from jointpmf.judge.program import Program
from jointpmf.judge.table_limits import conflicts_of, limits_of, without_needless

NEAR = 1e-7


def domain_of(*sizes):
    return jp.Domain.of_sizes(list(sizes))


def random_joint(sizes, seed, concentration=0.4):
    generator = np.random.default_rng(seed)
    return generator.dirichlet(np.full(math.prod(sizes), concentration)).reshape(sizes)


def indicator(sizes, event):
    """Return which cells of the joint an event, of positions and sets of codes, has."""
    cells = np.indices(sizes)
    inside = np.ones(sizes, bool)
    for n, codes in event.items():
        inside &= np.isin(cells[n], list(codes))
    return inside.ravel().astype(float)


class Oracle:
    """A dense linear program over all cells of the joint, written without the library."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.equal = [(np.ones(math.prod(sizes)), 1.0)]
        self.below = []

    def add(self, cells, values, where=None, given=None):
        """Say which part of `where` and `given` each cell is."""
        for cell, value in zip(cells, values, strict=True):
            own = indicator(self.sizes, {**(where or {}), **(given or {}), **cell})
            base = indicator(self.sizes, {**(where or {}), **(given or {})})
            self.equal.append((own - value * base, 0.0))

    def add_range(self, cell, low, high):
        own = indicator(self.sizes, cell)
        self.below += [(own, high), (-own, -low)]

    def bounds(self, asked, given=None):
        """Solve it, by Charnes and Cooper's transformation where something is given."""
        a = np.array([row for row, _ in self.equal])
        b = np.array([value for _, value in self.equal])
        rows = np.array([row for row, _ in self.below]).reshape(-1, a.shape[1])
        most = np.array([value for _, value in self.below])
        if given is None:
            found = [
                linprog(sign * asked, rows, most, a, b, bounds=(0, None)) for sign in (1.0, -1.0)
            ]
        else:
            a = np.block([[a, -b[:, None]], [given, np.zeros(1)]])
            rows = np.hstack([rows, -most[:, None]])
            b = np.append(np.zeros(len(b)), 1.0)
            row = np.append(asked, 0.0)
            zero = np.zeros(len(rows))
            found = [
                linprog(sign * row, rows, zero, a, b, bounds=(0, None)) for sign in (1.0, -1.0)
            ]
        assert [one.status for one in found] == [0, 0]
        return found[0].fun, -found[1].fun


def names(positions):
    return [f"x{n}" for n in positions]


def summed(joint, positions):
    """Return the table of some variables, in the order asked."""
    table = joint.sum(axis=tuple(n for n in range(joint.ndim) if n not in positions))
    return table.transpose(np.argsort(np.argsort(positions)))


def plain(joint, subset):
    """Return a table of some variables, and what it says for the oracle."""
    table = summed(joint, subset)
    cells = [
        {n: {i} for n, i in zip(subset, index, strict=True)} for index in np.ndindex(table.shape)
    ]
    return jp.Marginal(names(subset), table), (cells, table.ravel())


def coarse(joint, subset):
    """Return a table whose first axis has its first levels in one band."""
    first, second = subset
    table = summed(joint, subset)
    size = table.shape[0]
    bands = [tuple(range(size - 1)), (size - 1,)]
    table = np.array([table[list(band)].sum(axis=0) for band in bands])
    cells = [{first: set(band), second: {j}} for band in bands for j in range(table.shape[1])]
    made = jp.Marginal(names(subset), table, levels={f"x{first}": bands})
    return made, (cells, table.ravel())


def partial(joint, subset, other):
    """Return a table of those alone whose other variable has its first level."""
    part = np.take(joint, [0], axis=other)
    table = summed(part, subset) / part.sum()
    cells = [
        {n: {i} for n, i in zip(subset, index, strict=True)} for index in np.ndindex(table.shape)
    ]
    made = jp.Marginal(names(subset), table, where={f"x{other}": 0})
    return made, (cells, table.ravel(), {other: {0}})


def shares(joint, subset):
    """Return percentages of the second variable within each level of the first."""
    table = summed(joint, subset)
    table = table / table.sum(axis=1, keepdims=True)
    made = jp.Marginal(names(subset), 100 * table, given=[f"x{subset[0]}"])
    rows = [
        ([{subset[1]: {j}} for j in range(table.shape[1])], row, None, {subset[0]: {i}})
        for i, row in enumerate(table)
    ]
    return made, rows


def check(marginals, oracle, joint, query, given=None):
    """Compare with the oracle, for an event or the name of a variable, and look for the truth."""
    sizes = joint.shape
    codes = {int(name[1:]): levels for name, levels in (given or {}).items()}
    base = indicator(sizes, codes)
    if isinstance(query, str):
        asked = np.indices(sizes)[int(query[1:])].ravel() * base
    else:
        asked = base * indicator(sizes, {int(n[1:]): levels for n, levels in query.items()})
    expected = oracle.bounds(asked, base if given else None)
    found = jp.bounds(marginals, query, given)
    assert tuple(found) == pytest.approx(expected, abs=NEAR)
    truth = (asked @ joint.ravel()) / (base @ joint.ravel())
    assert found.low - NEAR <= truth <= found.high + NEAR
    return found


QUESTIONS = [
    ({"x0": {1}, "x2": {0, 1}}, None),
    ({"x0": {0}}, {"x3": {1}}),
    ({"x1": {0}, "x2": {1}}, {"x0": {0}, "x3": {0}}),
    ("x2", None),
    ("x2", {"x0": {1}}),
    ("x1", {"x3": {0}, "x2": {0, 1}}),
]


class TestBesideTheWholeJoint:
    @pytest.mark.parametrize("seed", range(20))
    def test_pairs(self, seed):
        generator = np.random.default_rng(seed)
        sizes = tuple(generator.choice([2, 3], 4))
        joint = random_joint(sizes, seed)
        pairs = list(itertools.combinations(range(4), 2))
        chosen = [pairs[k] for k in generator.choice(6, generator.integers(3, 6), replace=False)]
        singles = [(n,) for n in range(4)]
        made = [plain(joint, subset) for subset in (*chosen, *singles)]
        oracle = Oracle(sizes)
        for _, what in made:
            oracle.add(*what)
        marginals = jp.MarginalSet(domain_of(*sizes), [marginal for marginal, _ in made])
        for query, given in QUESTIONS:
            check(marginals, oracle, joint, query, given)

    @pytest.mark.parametrize("seed", range(8))
    def test_tables_of_all_kinds(self, seed):
        sizes = (3, 2, 3, 2)
        joint = random_joint(sizes, 100 + seed)
        made = [
            plain(joint, (0, 1)),
            coarse(joint, (2, 1)),
            partial(joint, (0, 2), 3),
            coarse(joint, (0, 3)),
        ]
        percentages, rows = shares(joint, (3, 2))
        oracle = Oracle(sizes)
        for what in (*(what for _, what in made), *rows):
            oracle.add(*what)
        tables = [*(marginal for marginal, _ in made), percentages]
        marginals = jp.MarginalSet(domain_of(*sizes), tables)
        widths = [check(marginals, oracle, joint, *question).width for question in QUESTIONS]
        assert max(widths) > 1e-3

    @pytest.mark.parametrize("seed", range(4))
    def test_a_table_in_another_order_of_its_axes(self, seed):
        sizes = (3, 2, 3, 2)
        joint = random_joint(sizes, seed)
        part = joint[:, :, :2].sum(axis=(1, 2))
        table = part.T / part.sum()
        marginal = jp.Marginal(("x3", "x0"), table, where={"x2": (0, 1)})
        first, what = plain(joint, (1, 2))
        oracle = Oracle(sizes)
        oracle.add(*what)
        cells = [{3: {i}, 0: {j}} for i in range(2) for j in range(3)]
        oracle.add(cells, table.ravel(), {2: {0, 1}})
        marginals = jp.MarginalSet(domain_of(*sizes), [marginal, first])
        for query, given in QUESTIONS:
            check(marginals, oracle, joint, query, given)

    def test_what_is_impossible(self):
        sizes = (2, 3, 2)
        joint = random_joint(sizes, 0)
        joint[1, 2] = 0.0
        joint /= joint.sum()
        made = [plain(joint, (0, 2)), plain(joint, (1, 2))]
        oracle = Oracle(sizes)
        for _, what in made:
            oracle.add(*what)
        tables = [marginal for marginal, _ in made]
        open_set = jp.MarginalSet(domain_of(*sizes), tables)
        oracle.equal.append((indicator(sizes, {0: {1}, 1: {2}}), 0.0))
        impossible = [{"x0": 1, "x1": 2}]
        closed = jp.MarginalSet(domain_of(*sizes), tables, impossible)
        found = check(closed, oracle, joint, {"x0": {1}, "x1": {0}})
        assert found.width < jp.bounds(open_set, {"x0": 1, "x1": 0}).width
        assert tuple(jp.bounds(closed, {"x0": 1, "x1": 2})) == (0.0, 0.0)

    def test_overlapping_bands(self):
        joint = random_joint((4,), 3)
        bands = [(0, 1), (1, 2), (2, 3)]
        sums = np.array([joint[list(band)].sum() for band in bands])
        marginal = jp.Marginal(("x0",), sums / sums.sum(), levels={"x0": bands})
        oracle = Oracle((4,))
        base = sum(indicator((4,), {0: set(band)}) for band in bands)
        for band, value in zip(bands, sums / sums.sum(), strict=True):
            oracle.equal.append((indicator((4,), {0: set(band)}) - value * base, 0.0))
        marginals = jp.MarginalSet(domain_of(4), [marginal])
        for codes in ({0}, {1}, {1, 2}, {0, 3}):
            check(marginals, oracle, joint, {"x0": codes})

    def test_hidden_cells_are_within_what_is_known_of_them(self):
        counts = np.array([[40.0, np.nan, 25.0], [np.nan, 20.0, 8.0]])  # 7 are hidden
        marginal = jp.Marginal(("x0", "x1"), counts, 100, bounds="<6")
        marginals = jp.MarginalSet(domain_of(2, 3), [marginal])
        oracle = Oracle((2, 3))
        for index, count in np.ndenumerate(counts):
            cell = {0: {index[0]}, 1: {index[1]}}
            low, high = (0.0, 0.05) if np.isnan(count) else (count / 100, count / 100)
            oracle.add_range(cell, low, high)
        for query in ({"x0": {0}, "x1": {1}}, {"x1": {0}}, "x1"):
            truth = np.nan_to_num(counts, nan=3.5) / 100
            found = check(marginals, oracle, truth, query)
            assert found.width > 0.01

    def test_hidden_cells_of_unknown_size_are_beside_the_published_ones(self):
        """Of 80 people that are shown, and up to five that are not."""
        marginal = jp.Marginal(("x0",), [50.0, 30.0, np.nan], bounds="<6")
        found = jp.bounds(jp.MarginalSet(domain_of(3), [marginal]), {"x0": 2})
        assert tuple(found) == pytest.approx((0.0, 5 / 85), abs=NEAR)


class TestWithin:
    def test_rounding_is_half_a_unit_either_way(self):
        marginal = jp.Marginal(
            ("x0", "x1"), [[0.3, 0.2], [0.1, 0.4]], where={"x2": 0}, rounding=0.1
        )
        everyone = jp.Marginal(("x2",), [1.0, 0.0])
        marginals = jp.MarginalSet(domain_of(2, 2, 2), [marginal, everyone])
        found = jp.bounds(marginals, {"x0": 0, "x1": 0})
        assert tuple(found) == pytest.approx((0.25, 0.35), abs=NEAR)

    @pytest.mark.parametrize("seed", range(5))
    def test_the_truth_is_inside_whatever_rounding_does_to_the_total(self, seed):
        generator = np.random.default_rng(seed)
        counts = generator.multinomial(150, random_joint((2, 3, 3), seed).ravel()).reshape(2, 3, 3)
        tables = [summed(counts, subset) for subset in ((0, 1), (1, 2))]
        rounded = [5 * np.rint(table / 5) for table in tables]
        marginals = jp.MarginalSet(
            domain_of(2, 3, 3),
            [
                jp.Marginal(("x0", "x1"), rounded[0], rounding=5),
                jp.Marginal(("x1", "x2"), rounded[1], rounding=5),
            ],
        )
        truth = counts / counts.sum()
        for i, j, k in np.ndindex(2, 3, 3):
            low, high = jp.bounds(marginals, {"x0": i, "x1": j, "x2": k})
            assert low - NEAR <= truth[i, j, k] <= high + NEAR

    def test_counts_in_slices_are_rounded_each_by_their_own_size(self):
        """A slice of ten and one of a thousand people, both in fives."""
        table = [[5, 5], [500, 500]]
        marginal = jp.Marginal(("x0", "x1"), table, given=["x0"], rounding=5)
        marginals = jp.MarginalSet(domain_of(2, 2), [marginal])
        small, large = (jp.bounds(marginals, {"x1": 0}, {"x0": i}) for i in (0, 1))
        assert tuple(small) == pytest.approx((2.5 / 10, 7.5 / 10), abs=NEAR)
        assert tuple(large) == pytest.approx((497.5 / 1000, 502.5 / 1000), abs=NEAR)

    def test_noise_is_met_within_four_standard_deviations_or_as_many_as_asked(self):
        marginal = jp.Marginal(("x0",), [0.5, 0.3, 0.2], noise=0.01)
        marginals = jp.MarginalSet(domain_of(3), [marginal])
        assert tuple(jp.bounds(marginals, {"x0": 0})) == pytest.approx((0.46, 0.54), abs=NEAR)
        found = jp.bounds(marginals, {"x0": 0}, within=2)
        assert tuple(found) == pytest.approx((0.48, 0.52), abs=NEAR)

    def test_noise_of_counts_moves_their_sum_too(self):
        """Of 90, 100 or 110 people: cells of 50 and 50, each within 4 · 1.25."""
        marginal = jp.Marginal(("x0",), [50.0, 50.0], noise=1.25)
        found = jp.bounds(jp.MarginalSet(domain_of(2), [marginal]), {"x0": 0})
        assert tuple(found) == pytest.approx((45 / 100, 55 / 100), abs=NEAR)

    @pytest.mark.parametrize("within", [1.0, 3.0])
    def test_counts_are_met_within_their_sampling_error(self, within):
        """At the bounds, what was counted is just so many standard deviations off (eq. 64)."""
        marginals = jp.MarginalSet(domain_of(3), [jp.Marginal(("x0",), [20, 70, 10])])
        assert jp.bounds(marginals, {"x0": 0}).width == pytest.approx(0.0, abs=NEAR)
        for end in jp.bounds(marginals, {"x0": 0}, within=within):
            off = abs(end - 0.2) / math.sqrt(end * (1 - end) / 100)
            assert off == pytest.approx(within, rel=1e-6)

    def test_a_level_that_nobody_had_may_be_rare(self):
        marginals = jp.MarginalSet(domain_of(2), [jp.Marginal(("x0",), [100, 0])])
        assert tuple(jp.bounds(marginals, {"x0": 1})) == (0.0, 0.0)
        low, high = jp.bounds(marginals, {"x0": 1}, within=2)
        assert (low, high) == pytest.approx((0.0, 4 / 104), abs=NEAR)

    def test_tables_counted_over_rows_with_holes(self):
        truth = jp.random_pmf(domain_of(2, 3, 2, 2), 2, 0)
        rows = truth.sample(3000, random_state=0, backend="codes").copy()
        rows[np.random.default_rng(0).random(rows.shape) < 0.2] = -1
        marginals = jp.MarginalSet.from_table(rows, 2, domain=truth.domain)
        query = {"x0": 1, "x1": 2, "x3": 0}
        with pytest.raises(jp.JointPMFError, match=r"no joint .* gives x\d=.* probability") as said:
            jp.bounds(marginals, query)
        assert "within=3" in str(said.value)
        low, high = jp.bounds(marginals, query, within=3)
        probability = truth.marginal(list(query)).table()[1, 2, 0]
        assert low < probability < high
        narrow = jp.bounds(marginals, query, within=2.5)
        assert low <= narrow.low <= narrow.high <= high


class TestSize:
    def test_a_chain_of_thirty_variables(self):
        truth = jp.random_pmf(domain_of(*[4] * 30), 3, 0)
        links = [(f"x{n}", f"x{n + 1}") for n in range(29)]
        marginals = truth.marginals(subsets=links)
        found = jp.bounds(marginals, {"x0": 1, "x29": 2})
        assert 0 < found.n_cells < 3000
        assert found.low <= truth.marginal(["x0", "x29"]).table()[1, 2] <= found.high
        ends = [truth.marginal([name]).table() for name in ("x0", "x29")]
        assert found.low >= max(0.0, ends[0][1] + ends[1][2] - 1) - NEAR
        assert found.high <= min(ends[0][1], ends[1][2]) + NEAR
        known = jp.bounds(marginals, {"x7": 1, "x8": 0})
        expected = truth.marginal(["x7", "x8"]).table()[1, 0]
        assert tuple(known) == pytest.approx((expected, expected), abs=NEAR)

    def test_an_event_of_all_thirty(self):
        """The query has 4^30 combinations, and is looked at step by step."""
        truth = jp.random_pmf(domain_of(*[4] * 30), 2, 0)
        marginals = truth.marginals(subsets=[(f"x{n}", f"x{n + 1}") for n in range(29)])
        event = {f"x{n}": {0, 1, 2} for n in range(30)}
        low, high = jp.bounds(marginals, event)
        columns = [factor[:3].sum(axis=0) for factor in truth.factors]
        assert low < np.prod(columns, axis=0) @ truth.weights < high

    @pytest.mark.parametrize("seed", range(5))
    def test_steps_and_the_whole_query_have_the_same_bounds(self, seed):
        sizes = (3, 3, 3, 3, 3)
        joint = random_joint(sizes, seed)
        made = [plain(joint, (n, n + 1)) for n in range(4)]
        oracle = Oracle(sizes)
        for _, what in made:
            oracle.add(*what)
        marginals = jp.MarginalSet(domain_of(*sizes), [marginal for marginal, _ in made])
        event = {f"x{n}": {0} for n in range(5)}
        assert check(marginals, oracle, joint, event).n_cells < math.prod(sizes)
        evidence = {name: event.pop(name) for name in ("x1", "x3")}
        check(marginals, oracle, joint, event, evidence)
        del event["x2"], event["x4"]
        check(marginals, oracle, joint, "x2", evidence | event)

    def test_levels_that_nothing_tells_apart_are_one(self):
        sizes = (30, 30, 30)
        bands = [tuple(range(10)), tuple(range(10, 30))]
        pairs = itertools.combinations(names(range(3)), 2)
        tables = [
            jp.Marginal(pair, [[0.3, 0.2], [0.2, 0.3]], levels=dict.fromkeys(pair, bands))
            for pair in pairs
        ]
        event = dict.fromkeys(names(range(3)), bands[0])
        found = jp.bounds(jp.MarginalSet(domain_of(*sizes), tables), event)
        assert found.n_cells == 8
        assert tuple(found) == pytest.approx((0.1, 0.3), abs=NEAR)

    def test_too_many_cells_are_refused_with_their_number_and_variables(self):
        truth = jp.random_pmf(domain_of(*[4] * 12), 2, 0)
        marginals = truth.marginals(order=2)
        with pytest.raises(jp.JointPMFError, match=r"16,777,216 cells.*max_cells=20,000.*'x0'"):
            jp.bounds(marginals, {"x0": 1, "x5": 1, "x7": 0})
        with pytest.raises(jp.JointPMFError, match="max_cells=7"):
            jp.bounds(
                truth.marginals(subsets=[("x0", "x1"), ("x1", "x2")]),
                {"x0": 1, "x2": 1},
                max_cells=7,
            )

    def test_what_one_table_shows_is_known_however_many_others_there_are(self):
        truth = jp.random_pmf(domain_of(*[4] * 12), 2, 0)
        expected = truth.marginal(["x0", "x5"]).table()[1, 2]
        found = jp.bounds(truth.marginals(order=2), {"x0": 1, "x5": 2})
        assert tuple(found) == pytest.approx((expected, expected), abs=NEAR)

    def test_a_table_that_has_the_query_needs_no_other(self):
        truth = jp.random_pmf(domain_of(*[4] * 12), 2, 0)
        found = jp.bounds(truth.marginals(subsets=[("x0", "x1"), ("x2", "x3")]), {"x0": 1})
        assert found.n_cells == 4
        assert found.width == pytest.approx(0.0, abs=NEAR)


class TestEdges:
    @settings(max_examples=40, deadline=None)
    @drawn(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 3), st.sets(st.integers(0, 2)))
    def test_two_margins_leave_what_frechet_says(self, seed, rows, columns, levels):
        first, second = (
            np.random.default_rng([seed, k]).dirichlet(np.full(size, 0.3))
            for k, size in enumerate((rows, columns))
        )
        marginals = jp.MarginalSet(
            domain_of(rows, columns), [jp.Marginal(["x0"], first), jp.Marginal(["x1"], second)]
        )
        chosen = sorted(level for level in levels if level < rows) or [0]
        a, b = first[chosen].sum(), second[0]
        found = jp.bounds(marginals, {"x0": set(chosen), "x1": 0})
        assert tuple(found) == pytest.approx((max(0.0, a + b - 1), min(a, b)), abs=NEAR)
        assert 0 <= found.low <= found.high <= 1

    def test_a_variable_in_no_table_is_free(self):
        truth = jp.random_pmf(domain_of(2, 2, 3), 2, 0)
        marginals = truth.marginals(subsets=[("x0", "x1")])
        assert tuple(jp.bounds(marginals, {"x2": 1})) == pytest.approx((0, 1), abs=NEAR)
        assert tuple(jp.bounds(marginals, "x2")) == pytest.approx((0, 2), abs=NEAR)
        probability = truth.marginal(["x0"]).table()[1]
        both = jp.bounds(marginals, {"x0": 1, "x2": 1})
        assert tuple(both) == pytest.approx((0, probability), abs=NEAR)

    def test_what_a_part_is_of_is_free_if_nothing_tells(self):
        marginal = jp.Marginal(("x0",), [0.3, 0.7], where={"x1": 1})
        marginals = jp.MarginalSet(domain_of(2, 2), [marginal])
        assert tuple(jp.bounds(marginals, {"x1": 1})) == pytest.approx((0, 1), abs=NEAR)
        given = jp.bounds(marginals, {"x0": 0}, {"x1": 1})
        assert tuple(given) == pytest.approx((0.3, 0.3), abs=NEAR)

    def test_tables_that_are_not_connected_with_the_query_do_not_matter(self):
        clash = [jp.Marginal(["x1", "x2"], np.eye(2) / 2), jp.Marginal(["x2"], [0.3, 0.7])]
        marginals = jp.MarginalSet(domain_of(2, 2, 2), [jp.Marginal(["x0"], [0.4, 0.6]), *clash])
        assert tuple(jp.bounds(marginals, {"x0": 1})) == pytest.approx((0.6, 0.6), abs=NEAR)
        with pytest.raises(jp.JointPMFError, match=r"x2=0 probability 0\.5"):
            jp.bounds(marginals, {"x0": 1, "x1": 1})

    def test_percentages_that_do_not_sum_to_a_hundred(self):
        marginal = jp.Marginal(("x0", "x1"), [[33.3, 33.3, 33.3], [50, 25, 25]], given=["x0"])
        marginals = jp.MarginalSet(domain_of(2, 3), [marginal, jp.Marginal(["x0"], [0.5, 0.5])])
        found = jp.bounds(marginals, {"x1": 0})
        assert tuple(found) == pytest.approx(((1 / 3 + 1 / 2) / 2,) * 2, abs=NEAR)

    def test_an_empty_given_is_none(self):
        marginals = jp.MarginalSet(domain_of(2), [jp.Marginal(["x0"], [0.4, 0.6])])
        assert jp.bounds(marginals, {"x0": 1}, {}) == jp.bounds(marginals, {"x0": 1})

    def test_a_rare_given(self):
        """A conditional whose condition has probability 1e-6."""
        joint = np.array([[0.3e-6, 0.7e-6], [0.4, 0.6 - 1e-6]])
        marginals = jp.MarginalSet(domain_of(2, 2), [jp.Marginal(["x0", "x1"], joint)])
        found = jp.bounds(marginals, {"x1": 0}, {"x0": 0})
        assert tuple(found) == pytest.approx((0.3, 0.3), abs=1e-5)

    def test_text(self):
        domain = jp.Domain([jp.Variable("age", ("young", "old")), jp.Variable("score", (1, 2, 4))])
        tables = [jp.Marginal(["age"], [0.5, 0.5]), jp.Marginal(["score"], [0.5, 0.25, 0.25])]
        marginals = jp.MarginalSet(domain, tables)
        where = "in every joint distribution that meets the tables."
        found = jp.bounds(marginals, {"score": [2, 4]}, {"age": "old"})
        assert str(found) == f"P(score = 2 or 4 | age = old) is between 0 and 1 {where}"
        assert str(jp.bounds(marginals, "score")) == f"E(score) is 2 {where}"
        assert str(jp.bounds(marginals, "score", within=2)).endswith("2 standard deviations.")
        low, high = found
        assert (low, high, high - low) == (found.low, found.high, found.width)


class TestBadInput:
    @pytest.fixture
    def marginals(self):
        domain = jp.Domain([jp.Variable("a", ("n", "y")), jp.Variable("b", (1, 2, 3))])
        return jp.MarginalSet(domain, [jp.Marginal(["a", "b"], [[0.2, 0.3, 0], [0.4, 0.1, 0]])])

    @pytest.mark.parametrize(
        ("query", "given", "what"),
        [
            ({"c": 1}, None, "no variable 'c'"),
            ("c", None, "no variable 'c'"),
            ({"a": "perhaps"}, None, "'a' has no level 'perhaps'"),
            ({"a": "y"}, {"b": 9}, "'b' has no level 9"),
            ({"a": []}, None, "'a' covers no level"),
            ({}, None, "the query is empty"),
            (None, None, "the query must be a mapping"),
            (["a"], None, "the query must be a mapping"),
            ({"a": "y"}, "b", "given must be a mapping"),
            ("a", None, "'a' have no values"),
            ({"a": "y"}, {"a": {"n", "y"}}, "'a' is in the query and in given"),
            ({"b": 1}, {"b": 2}, "'b' is in the query and in given"),
            ("b", {"b": {1, 2}}, "'b' is in the query and in given"),
            ({"a": "y"}, {"b": 3}, "given in .* has probability zero in every joint"),
        ],
    )
    def test_questions(self, marginals, query, given, what):
        with pytest.raises(jp.JointPMFError, match=what):
            jp.bounds(marginals, query, given)

    @pytest.mark.parametrize("marginals", [None, [], jp.Domain.of_sizes([2]), {"a": 1}])
    def test_marginals(self, marginals):
        with pytest.raises(jp.JointPMFError, match="must be a MarginalSet"):
            jp.bounds(marginals, {"a": "y"})

    @pytest.mark.parametrize("within", [-1, math.nan, "two", True])
    def test_within(self, marginals, within):
        with pytest.raises(jp.JointPMFError, match="within must be a number of at least 0"):
            jp.bounds(marginals, {"a": "y"}, within=within)

    @pytest.mark.parametrize("max_cells", [0, 2.5, "many"])
    def test_max_cells(self, marginals, max_cells):
        with pytest.raises(jp.JointPMFError, match="max_cells must be a whole number"):
            jp.bounds(marginals, {"a": "y"}, max_cells=max_cells)

    def test_pairs_that_agree_and_have_no_joint(self):
        """Three variables of which every two differ."""
        pairs = itertools.combinations(names(range(3)), 2)
        tables = [jp.Marginal(pair, [[0, 0.5], [0.5, 0]]) for pair in pairs]
        marginals = jp.MarginalSet(domain_of(2, 2, 2), tables)
        for given in (None, {"x2": 1}):
            with pytest.raises(jp.JointPMFError, match=r"the tables of 'x0, x1', .* together"):
                jp.bounds(marginals, {"x0": 1}, given)

    def test_bands_that_disagree_are_named(self):
        bands = {"x0": [(0, 1), 2]}
        tables = [
            jp.Marginal(["x0"], [0.2, 0.3, 0.5]),
            jp.Marginal(["x0"], [0.6, 0.4], levels=bands),
        ]
        marginals = jp.MarginalSet(domain_of(3), tables)
        with pytest.raises(jp.JointPMFError, match=r"x0=\(0, 1\) probability 0.5"):
            jp.bounds(marginals, {"x0": 1})

    def test_a_combination_that_others_say_happens(self):
        tables = [jp.Marginal(["x0"], [0.4, 0.6]), jp.Marginal(["x1"], [0.3, 0.7])]
        marginals = jp.MarginalSet(domain_of(2, 2), tables, [{"x0": 1, "x1": 1}])
        with pytest.raises(jp.JointPMFError, match="no joint distribution meets"):
            jp.bounds(marginals, {"x0": 1})


class TestCliques:
    @pytest.mark.parametrize("seed", range(10))
    def test_every_group_is_in_a_clique_and_variables_are_connected_through_the_tree(self, seed):
        generator = np.random.default_rng(seed)
        groups = [
            frozenset(map(int, generator.choice(9, generator.integers(2, 4), replace=False)))
            for _ in range(8)
        ]
        cliques = cliques_of(groups, [2] * 9)
        assert all(any(group <= clique for clique in cliques) for group in groups)
        assert not any(a < b for a in cliques for b in cliques)
        meetings = tree_of(cliques)
        for n in range(9):
            holders = {k for k, clique in enumerate(cliques) if n in clique}
            links = [m for m in meetings if n in m.common]
            assert all({m.first, m.second} <= holders for m in links)
            assert len(links) == max(len(holders) - 1, 0)

    def test_a_ring_needs_triples_only(self):
        ring = [frozenset({n, (n + 1) % 12}) for n in range(12)]
        cliques = cliques_of(ring, [3] * 12)
        assert {len(clique) for clique in cliques} == {3}
        assert count_cells(cliques, [3] * 12) == 10 * 27

    def test_needless_tables_are_summed_out(self):
        joint = random_joint((2, 3, 2, 2), 0)
        made = [plain(joint, subset)[0] for subset in ((0, 1), (1, 2), (2, 3), (1,))]
        tables = limits_of(jp.MarginalSet(domain_of(2, 3, 2, 2), made), None)
        left = without_needless(tables, frozenset({0}))
        assert [table.variables for table in left] == [(0,)]
        np.testing.assert_allclose(left[0].low, summed(joint, (0,)))

    def test_exact_tables_that_contradict_each_other_are_found(self):
        tables = [jp.Marginal(["x0", "x1"], np.eye(2) / 2), jp.Marginal(["x1"], [0.4, 0.6])]
        limits = limits_of(jp.MarginalSet(domain_of(2, 2), tables), None)
        found = conflicts_of(limits)
        assert [(one.variables, one.by) for one in found] == [((1,), pytest.approx(0.1))]


def test_a_program_that_is_not_solved_says_so(monkeypatch):
    class Result:
        status, message = 4, "numerical difficulties"

    monkeypatch.setattr("jointpmf.judge.program.linprog", lambda *_, **__: Result)
    program = Program([frozenset({0})], [], [2])
    with pytest.raises(jp.JointPMFError, match="numerical difficulties"):
        program.extremes({0: np.array([0.0, 1.0])})
