"""Derivatives and covariance of tables of any kind, against the joint cell by cell."""

import numpy as np
import pytest

from jointpmf.marginals.measurement import Measurement
from jointpmf.point import Point
from jointpmf.solvers.jacobian import whole_tangent
from jointpmf.solvers.table_jacobian import TableCurvature
from jointpmf.solvers.table_noise import Projection, TableNoise, count_independent
from support.oracle import cp_tensor
from support.planted import planted

SIZES = [3, 2, 4, 2]


def plain(*positions, n_obs=100.0):
    shape = [SIZES[n] for n in positions]
    sets = tuple(np.eye(size, dtype=bool) for size in shape)
    return Measurement(positions, sets, np.full(shape, n_obs / np.prod(shape)))


def bands(n, *entries):
    sets = np.zeros((len(entries), SIZES[n]), bool)
    for row, entry in zip(sets, entries, strict=True):
        row[list(entry)] = True
    return sets


def published(shape, *holes):
    counts = np.full(shape, 5.0)
    for hole in holes:
        counts[hole] = np.nan
    return counts


TABLES = {
    "pairs": [plain(0, 1), plain(1, 2), plain(2, 3), plain(0, 3)],
    "triples": [plain(0, 1, 2), plain(1, 2, 3), plain(0, 2, 3, n_obs=50.0)],
    "bands": [
        Measurement((0, 2), (np.eye(3, dtype=bool), bands(2, (0, 1), (2, 3))), published((3, 2))),
        Measurement(
            (2, 3), (bands(2, (0,), (1, 2), (2, 3)), np.eye(2, dtype=bool)), np.ones((3, 2))
        ),
        plain(1, 3),
    ],
    "parts": [
        Measurement((0,), (np.eye(3, dtype=bool),), published(3), ((2, bands(2, (0, 3))[0]),)),
        plain(0, 1, 2),
        Measurement(
            (3, 1), (np.eye(2, dtype=bool),) * 2, published((2, 2)), ((0, bands(0, (1,))[0]),)
        ),
    ],
    "percentages": [
        Measurement(
            (0, 2),
            (np.eye(3, dtype=bool), np.eye(4, dtype=bool)),
            published((3, 4)),
            given=(0,),
            n_obs=np.array([20.0, 20.0, 20.0]),
        ),
        plain(2, 3),
        plain(0, 1),
    ],
    "holes": [
        Measurement(
            (0, 1),
            (np.eye(3, dtype=bool), np.eye(2, dtype=bool)),
            published((3, 2), (0, 1)),
            n_obs=np.array(40.0),
        ),
        Measurement(
            (1, 2),
            (np.eye(2, dtype=bool), np.eye(4, dtype=bool)),
            published((2, 4), (0, 0), (1, 3)),
            given=(0,),
            n_obs=np.array([np.nan, 30.0]),
        ),
        plain(2, 3),
    ],
}


def split(point):
    return point.weights, np.split(point.factors, np.cumsum(SIZES)[:-1])


def point_at(vector, rank):
    return Point(vector[:rank], vector[rank:].reshape(-1, rank))


def published_cells(tables, point):
    """Return what each table would publish of a model."""
    return np.concatenate(
        [table.predicted(*split(point))[~np.isnan(table.counts)] for table in tables]
    )


def indicators(table):
    """Return who is in each cell of a table, for each cell of the joint."""
    whole = np.indices(SIZES).reshape(len(SIZES), -1)
    inside = np.ones(whole.shape[1])
    for n, mask in table.where:
        inside = inside * mask[whole[n]]
    rows = []
    for cell in np.ndindex(table.counts.shape):
        member = inside.copy()
        for n, sets, entry in zip(table.positions, table.sets, cell, strict=True):
            member *= sets[entry][whole[n]]
        rows.append(member)
    return np.array(rows).reshape(*table.counts.shape, -1)


def influences(table, joint):
    """Return what each cell of the joint adds to each published number, and how many it is of."""
    members = indicators(table)
    base = members.copy()
    n_obs = table.n_obs
    if n_obs is not None:
        is_open = np.broadcast_to(np.expand_dims(np.isnan(n_obs), table.others), table.counts.shape)
        base[is_open & np.isnan(table.counts)] = 0
    base = np.broadcast_to(base.sum(axis=table.others, keepdims=True), base.shape)
    parts = base @ joint
    out = (members - ((members @ joint) / parts)[..., None] * base) / parts[..., None]
    shown = np.nansum(table.counts, axis=table.others, keepdims=True)
    total = shown
    if n_obs is not None:
        n_obs = np.expand_dims(n_obs, table.others)
        total = np.where(np.isnan(n_obs), shown, n_obs)
    people = np.broadcast_to(total, parts.shape) / parts
    known = ~np.isnan(table.counts)
    return out[known], people[known]


def brute_force_covariance(tables, joint, observed):
    """Return the covariance of the published numbers, by sums over the joint."""
    found = [influences(table, joint) for table in tables]
    are_same = observed is not None
    observed = observed if are_same else np.ones(len(SIZES))
    names = [{*table.positions, *(n for n, _ in table.where)} for table in tables]
    blocks = []
    for s, (first, people) in enumerate(found):
        row = []
        for t, (second, others) in enumerate(found):
            parts = [np.prod(observed[sorted(each)]) for each in (names[s], names[t])]
            rows_of = np.maximum.outer(people / parts[0], others / parts[1])
            shared = float(s == t or are_same) / np.prod(observed[sorted(names[s] & names[t])])
            row.append(shared * (first * joint) @ second.T / rows_of)
        blocks.append(np.hstack(row))
    return np.vstack(blocks)


@pytest.fixture
def truth():
    return planted(SIZES, 2, seed=3)


@pytest.mark.parametrize("kind", TABLES)
def test_derivatives_are_those_of_what_is_published(kind, truth):
    tables, point = TABLES[kind], Point.of_pmf(truth)
    curvature = TableCurvature(truth.domain, tables)
    tangent = whole_tangent(truth.domain, point)
    vector = np.concatenate([point.weights, point.factors.ravel()])
    step = 1e-5
    columns = []
    for k in range(len(tangent.moved)):
        change = step * tangent.expand(np.eye(len(tangent.moved))[k])
        ahead, behind = (published_cells(tables, point_at(vector + s * change, 2)) for s in (1, -1))
        columns.append((ahead - behind) / (2 * step))
    jacobian = curvature.jacobian(point, tangent)
    np.testing.assert_allclose(jacobian, np.array(columns).T, atol=1e-8)
    whole = tangent.reduce_matrix(curvature.matrix(point))
    np.testing.assert_allclose(whole, jacobian.T @ jacobian, atol=1e-12)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("observed", [None, [1.0] * 4, [0.9, 0.5, 0.7, 1.0]], ids=str)
def test_the_covariance_is_that_by_sums_over_the_joint(kind, observed, truth):
    tables, point = TABLES[kind], Point.of_pmf(truth)
    observed = None if observed is None else np.array(observed)
    slices = TableCurvature(truth.domain, tables).slices
    noise = TableNoise(truth.domain, slices, point, observed)
    joint = cp_tensor(truth.weights, truth.factors).ravel()
    wanted = brute_force_covariance(tables, joint, observed)
    found = noise.times(np.eye(len(wanted)))
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("observed", [None, [1.0] * 4, [0.9, 0.5, 0.7, 1.0]], ids=str)
def test_the_information_is_that_of_the_whole_covariance(kind, observed, truth):
    tables, point = TABLES[kind], Point.of_pmf(truth)
    observed = None if observed is None else np.array(observed)
    curvature = TableCurvature(truth.domain, tables)
    jacobian = curvature.jacobian(point, whole_tangent(truth.domain, point))
    noise = TableNoise(truth.domain, curvature.slices, point, observed)
    projection = Projection(noise, jacobian)
    while projection.add_block():
        pass
    covariance = brute_force_covariance(tables, truth.table().ravel(), observed)
    wanted = jacobian.T @ np.linalg.pinv(covariance, rcond=1e-10) @ jacobian
    scale = np.sqrt(np.diag(wanted))
    np.testing.assert_allclose(
        projection.information / np.outer(scale, scale), wanted / np.outer(scale, scale), atol=1e-6
    )


@pytest.mark.parametrize("kind", TABLES)
def test_independent_numbers_are_counted(kind, truth):
    joint = planted(SIZES, 4, seed=1).table().ravel()
    rows = np.concatenate([influences(table, joint)[0] for table in TABLES[kind]])
    slices = TableCurvature(truth.domain, TABLES[kind]).slices
    found = count_independent(truth.domain, slices, np.random.default_rng(0))
    assert found == np.linalg.matrix_rank(rows, tol=1e-9)
