"""The likelihood of tables of any kind against the whole joint, cell by cell."""

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.marginals.measurement import Measurement
from jointpmf.point import Point
from jointpmf.solvers import em
from jointpmf.solvers.table_cells import TableCells

DOMAIN = jp.Domain.of_sizes([3, 4, 2, 3])
RANK = 3


def all_of(n):
    return np.eye(DOMAIN.sizes[n], dtype=bool)


def counts(*shape, seed=0, holes=()):
    table = np.random.default_rng(seed).integers(1, 50, shape).astype(float)
    for cell in holes:
        table[cell] = np.nan
    return table


def pair(first, second, **options):
    """Return a table of two variables with all of their levels."""
    sizes = [DOMAIN.sizes[n] for n in (first, second)]
    holes = options.pop("holes", ())
    sets = (all_of(first), all_of(second))
    return Measurement((first, second), sets, counts(*sizes, holes=holes), **options)


BANDS = np.array([[1, 1, 0, 0], [0, 0, 1, 1]], bool)
OVERLAPPING = np.array([[1, 1, 1, 1], [0, 1, 1, 0], [0, 0, 1, 1]], bool)
SOME = np.array([True, True, False])
HOLES = [(0, 1), (2, 2)]

CASES = {
    "plain": [pair(0, 1)],
    "bands": [Measurement((0, 1), (all_of(0), BANDS), counts(3, 2)), pair(1, 3)],
    "not all levels": [Measurement((0, 1), (all_of(0)[:2], all_of(1)), counts(2, 4)), pair(0, 2)],
    "overlapping": [Measurement((1, 2), (OVERLAPPING, all_of(2)), counts(3, 2)), pair(1, 0)],
    "part of the people": [pair(0, 1, where=((3, SOME),)), pair(0, 3)],
    "slices": [pair(0, 1, given=(0,)), pair(0, 3)],
    "slices of a part": [
        Measurement(
            (0, 1, 2), (all_of(0), all_of(1), all_of(2)), counts(3, 4, 2),
            given=(0, 2), where=((3, SOME),),
        )
    ],
    "suppressed": [pair(0, 1, holes=HOLES), pair(0, 3)],
    "suppressed, total known": [pair(0, 1, holes=HOLES, n_obs=np.array(500.0)), pair(0, 3)],
    "suppressed in slices": [
        pair(0, 1, holes=HOLES, given=(0,), n_obs=np.array([200.0, np.nan, 300.0])), pair(0, 3),
    ],
    "suppressed in slices of a part": [
        pair(0, 1, holes=HOLES, given=(0,), where=((2, np.array([False, True])),)), pair(0, 3),
    ],
}  # fmt: skip

every_case = pytest.mark.parametrize("tables", CASES.values(), ids=CASES)


def by_brute_force(tables, point):
    """Return the log-likelihood of tables from the whole joint."""
    return sum(_of_table(table, joint_of(point)) for table in tables)


def joint_of(point):
    pmf = jp.JointPMF.at(point, DOMAIN)
    return pmf.table()


def _of_table(table, joint):
    cells = np.zeros(table.counts.shape)
    for cell in np.ndindex(cells.shape):
        inside = joint
        for n, mask in table.where:
            inside = inside * along(mask, n)
        for sets, n, i in zip(table.sets, table.positions, cell, strict=True):
            inside = inside * along(sets[i], n)
        cells[cell] = inside.sum()
    n_obs = np.nan if table.n_obs is None else table.n_obs
    shape = [table.counts.shape[k] for k in table.given]
    n_obs = np.broadcast_to(n_obs, shape)
    most = np.prod([table.sets[k].sum(axis=0).max() for k in table.others])
    total = 0.0
    for which in np.ndindex(*shape):
        place = [slice(None)] * cells.ndim
        for axis, i in zip(table.given, which, strict=True):
            place[axis] = i
        total += _of_slice(table.counts[tuple(place)], cells[tuple(place)], n_obs[which], most)
    return total


def along(mask, n):
    return mask.reshape([-1 if k == n else 1 for k in range(len(DOMAIN))])


def _of_slice(seen, probability, n_obs, most):
    is_hidden, base = np.isnan(seen), probability.sum() / most
    n_shown = seen[~is_hidden].sum()
    found = (seen[~is_hidden] * np.log(probability[~is_hidden])).sum()
    if not is_hidden.any():
        return found - n_shown * np.log(base)
    hidden = probability[is_hidden].sum()
    if np.isnan(n_obs):  # given that a cell was published
        return found - n_shown * np.log(base - hidden)
    left = n_obs - n_shown
    constants = n_obs * np.log(n_obs) - left * np.log(left) - n_shown * np.log(n_shown)
    return found + left * np.log(hidden) - n_obs * np.log(base) + constants


def point_at(logs, log_weights):
    factors = np.exp(logs)
    for begin, end in zip(DOMAIN.offsets[:-1], DOMAIN.offsets[1:], strict=True):
        factors[begin:end] /= factors[begin:end].sum(axis=0)
    weights = np.exp(log_weights)
    return Point(weights / weights.sum(), factors)


@pytest.fixture
def point():
    return Point.of_pmf(jp.random_pmf(DOMAIN, RANK, 1))


@every_case
def test_log_likelihood(tables, point):
    expectation = TableCells(DOMAIN, tables).expectation(RANK)
    found = expectation.counts(expectation.stack(point))[1]
    assert found == pytest.approx(by_brute_force(tables, point), rel=1e-12)


@every_case
def test_expected_counts_give_the_gradient(tables, point):
    """By Fisher's identity they do, in coordinates whose softmax is the model."""
    expectation = TableCells(DOMAIN, tables).expectation(RANK)
    expected = expectation.counts(expectation.stack(point))[0][:, :RANK]
    begins = DOMAIN.offsets[:-1]
    sums = np.repeat(np.add.reduceat(expected[:-1], begins), DOMAIN.sizes, axis=0)
    gradient = expected[:-1] - point.factors * sums
    of_weights = expected[-1] - point.weights * expected[-1].sum()
    logs, log_weights = np.log(point.factors), np.log(point.weights)
    step, generator = 1e-5, np.random.default_rng(0)
    for _ in range(5):
        change, of_log_weights = generator.normal(size=logs.shape), generator.normal(size=RANK)
        ends = [
            by_brute_force(tables, point_at(logs + d * change, log_weights + d * of_log_weights))
            for d in (step, -step)
        ]
        slope = (gradient * change).sum() + (of_weights * of_log_weights).sum()
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slope, rel=1e-6, abs=1e-5)


@every_case
def test_em_never_goes_back(tables, point):
    solver = em.EM(TableCells(DOMAIN, tables), RANK)
    state = solver.start(point)
    objectives = [state.objective]
    for _ in range(30):
        state = solver.step(state)
        objectives.append(state.objective)
    assert np.diff(objectives).max() <= 1e-12
    assert objectives[-1] < objectives[0]


def test_hidden_cells_stay_within_their_limits(point):
    table = pair(0, 1, holes=HOLES, n_obs=np.array(500.0), least=2.0, most=5.0)
    cells = TableCells(DOMAIN, [table, pair(0, 3)])
    for probability in (1e-9, 0.3, 0.9):
        expected = cells.expected_hidden(np.full(2, probability), np.ones(2), cells.n_shown)
        assert ((expected >= 2) & (expected <= 5)).all()


def test_counts_of_cells_that_are_known_to_be_few():
    """Without a total they are as many as the model expects beside what is shown."""
    table = pair(0, 1, holes=HOLES, most=3.0)
    cells = TableCells(DOMAIN, [table, pair(0, 3)])
    shown = np.nansum(table.counts)
    expected = cells.expected_hidden(np.array([1e-3, 0.5]), np.ones(2), cells.n_shown)
    assert expected[1] == 3
    scale = (shown + expected.sum()) / 1.0
    assert expected[0] == pytest.approx(1e-3 * scale)


def test_marginals_are_those_of_independent_variables():
    rows = jp.random_pmf(DOMAIN, RANK, 1).sample(1000, random_state=0, backend="codes")
    tables = jp.MarginalSet.from_table(rows, 2, domain=DOMAIN).measurements
    seen = [np.bincount(rows[:, n], minlength=DOMAIN.sizes[n]) / 1000 for n in range(4)]
    assert np.allclose(TableCells(DOMAIN, tables).marginal, np.concatenate(seen), atol=1e-12)


def test_many_cells_are_the_cells_of_the_joint():
    """So many that rows of such a number would be worth looking up in combinations."""
    truth = jp.random_pmf(jp.Domain.of_sizes([4] * 8), 3, random_state=0)
    tables = jp.MarginalSet.from_table(truth.sample(20_000, random_state=0), 3)
    cells = TableCells(truth.domain, tables.measurements)
    assert cells.n_cells > 32 * (sum(truth.domain.sizes) + 1)
    _, found = cells.expectation(3).counts(cells.expectation(3).stack(Point.of_pmf(truth)))
    names = truth.domain.names
    expected = sum(
        (table.counts * np.log(truth.marginal([names[n] for n in table.positions]).table())).sum()
        for table in tables.measurements
    )
    assert found == pytest.approx(expected, rel=1e-10)
