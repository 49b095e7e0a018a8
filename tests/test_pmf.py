"""Every query against the dense joint by brute force."""

import logging
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf import threads
from support import oracle


def sparse_pmf(domain, rank, seed):
    """Return a random PMF with many exact zeros."""
    generator = np.random.default_rng(seed)
    factors = []
    for size in domain.sizes:
        factor = generator.random((size, rank)) * (generator.random((size, rank)) < 0.7)
        factor[generator.integers(size, size=rank), np.arange(rank)] += 0.1
        factors.append(factor / factor.sum(axis=0))
    weights = generator.random(rank)
    return jp.JointPMF(domain, weights / weights.sum(), factors)


def random_rows(domain, generator, n_rows=20, missing=0.4):
    rows = np.column_stack([generator.integers(0, size, n_rows) for size in domain.sizes])
    rows[generator.random(rows.shape) < missing] = -1
    return rows


@st.composite
def pmfs(draw):
    seed = draw(st.integers(0, 10**6))
    generator = np.random.default_rng(seed)
    domain = oracle.random_domain(generator, draw(st.integers(1, 5)))
    make = draw(st.sampled_from([jp.random_pmf, sparse_pmf]))
    return make(domain, draw(st.integers(1, 5)), seed)


@settings(max_examples=40, deadline=None)
@given(pmfs())
def test_the_table_is_the_dense_joint(pmf):
    np.testing.assert_allclose(pmf.table(), oracle.joint(pmf), atol=1e-15)
    assert pmf.table().sum() == pytest.approx(1, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(pmfs(), st.randoms(use_true_random=False))
def test_a_marginal_sums_the_others_out_in_the_order_asked(pmf, random):
    kept = random.sample(range(len(pmf.domain)), random.randint(1, len(pmf.domain)))
    marginal = pmf.marginal([pmf.domain.names[n] for n in kept])
    np.testing.assert_allclose(
        marginal.table(), oracle.sum_onto(oracle.joint(pmf), kept), atol=1e-14
    )


def random_evidence(pmf, random):
    evidence = {}
    for variable in random.sample(list(pmf.domain), random.randint(0, len(pmf.domain) - 1)):
        kind = random.choice(["level", "set", "likelihood"])
        if kind == "level":
            evidence[variable.name] = random.choice(variable.levels)
        elif kind == "set":
            evidence[variable.name] = set(
                random.sample(variable.levels, random.randint(1, variable.size))
            )
        else:
            evidence[variable.name] = np.array([random.randint(0, 9) / 9 for _ in variable.levels])
    return evidence


@settings(max_examples=80, deadline=None)
@given(pmfs(), st.randoms(use_true_random=False))
def test_conditioning_is_bayes_rule_for_levels_sets_and_likelihoods(pmf, random):
    evidence = random_evidence(pmf, random)
    with np.errstate(invalid="ignore"):
        expected = oracle.conditioned(pmf, evidence)
    if np.isnan(expected).any():
        with pytest.raises(jp.JointPMFError, match="probability zero"):
            pmf.condition(evidence)
    else:
        np.testing.assert_allclose(pmf.condition(evidence).table(), expected, atol=1e-12)


def test_conditioning_on_everything_leaves_a_pmf_of_nothing():
    pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), 2, 0)
    nothing = pmf.condition({"x0": 1, "x1": 2})
    assert nothing.domain.names == ()
    assert nothing.table() == pytest.approx(1)


@settings(max_examples=40, deadline=None)
@given(pmfs())
def test_row_queries_agree_with_the_dense_joint(pmf):
    rows = random_rows(pmf.domain, np.random.default_rng(0))
    expected = [oracle.row_probability(pmf, row) for row in rows]
    np.testing.assert_allclose(pmf.probability(rows), expected, atol=1e-13)
    target = len(pmf.domain) - 1
    values = np.array(pmf.domain.variables[target].values)
    for row in rows:
        with np.errstate(invalid="ignore"):
            expected_row = oracle.row_prediction(pmf, row, target)
        if np.isnan(expected_row).any():
            continue
        name = pmf.domain.names[target]
        np.testing.assert_allclose(pmf.predict_proba(row[None], name)[0], expected_row, atol=1e-12)
        assert pmf.expectation(row[None], name)[0] == pytest.approx(expected_row @ values)
        assert expected_row[pmf.mode(row[None], name)[0]] == pytest.approx(expected_row.max())


def test_responsibilities_are_posteriors_of_the_component():
    pmf = jp.random_pmf(jp.Domain.of_sizes([3, 4]), 3, 0)
    expected = pmf.weights * pmf.factors[0][1] * pmf.factors[1][2]
    found = pmf.responsibilities(np.array([[1, 2], [-1, -1]]))
    np.testing.assert_allclose(found[0], expected / expected.sum(), atol=1e-14)
    np.testing.assert_allclose(found[1], pmf.weights, atol=1e-14)


def test_the_targets_own_cell_is_never_evidence():
    pmf = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2]), 3, 0)
    rows = np.array([[0, 1, 1], [2, 1, 1], [-1, 1, 1]])
    proba = pmf.predict_proba(rows, "x0")
    np.testing.assert_array_equal(proba, proba[[0, 0, 0]])


def test_an_impossible_row_is_answered_without_evidence_and_said(caplog):
    pmf = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [0.4, 0.6], [np.eye(2), np.eye(2)])
    rows = np.array([[0, 0], [0, 1]])
    with caplog.at_level(logging.WARNING, logger="jointpmf"):
        found = pmf.responsibilities(rows)
    np.testing.assert_allclose(found, [[1, 0], [0.4, 0.6]])
    assert "row 1 first" in caplog.text
    assert pmf.log_probability(rows)[1] == -np.inf
    three = jp.JointPMF(jp.Domain.of_sizes([2, 2, 2]), [0.4, 0.6], [np.eye(2)] * 3)
    np.testing.assert_allclose(three.predict_proba(np.array([[0, 1, -1]]), "x2"), [[0.4, 0.6]])


def test_a_thousand_variables_do_not_underflow():
    domain = jp.Domain.of_sizes([2] * 1000)
    # the first half speaks for component 1 by 1e-300 and more, the second half takes it all back
    first = np.array([[0.1, 0.9], [0.9, 0.1]])
    pmf = jp.JointPMF(domain, [0.3, 0.7], [first] * 500 + [first[:, ::-1]] * 500)
    row = np.zeros((1, 1000), int)
    np.testing.assert_allclose(pmf.responsibilities(row), [[0.3, 0.7]], rtol=1e-9)
    expected = 500 * (np.log(0.1) + np.log(0.9))
    assert pmf.log_probability(row)[0] == pytest.approx(expected, rel=1e-12)
    evidence = {f"x{n}": 0 for n in range(999)}
    np.testing.assert_allclose(
        pmf.condition(evidence).table(), pmf.predict_proba(row, "x999")[0], rtol=1e-9
    )


def test_levels_of_the_user_come_out_of_mode_and_sample():
    domain = jp.Domain(
        [jp.Variable("vote", ("no", "yes")), jp.Variable("age", ("a", 1), values=(20, 50))]
    )
    pmf = jp.JointPMF(domain, [1.0], [[[0.2], [0.8]], [[0.9], [0.1]]])
    rows = pl.DataFrame({"vote": [None, "no"]})
    assert pmf.mode(rows, "vote").tolist() == ["yes", "yes"]
    assert pmf.mode(rows, "age").tolist() == ["a", "a"]
    np.testing.assert_allclose(pmf.expectation(rows, "age"), 23)
    with pytest.raises(jp.JointPMFError, match="'vote' have no numeric values"):
        pmf.expectation(rows, "vote")


def test_samples_have_the_joint_distribution():
    pmf = sparse_pmf(jp.Domain.of_sizes([2, 3, 4]), 3, 5)
    codes = pmf.sample(200_000, random_state=1, backend="codes")
    counts = oracle.count_table(codes[:0], (0, 1, 2), pmf.domain.sizes)
    np.add.at(counts, tuple(codes.T), 1)
    expected = pmf.table() * len(codes)
    assert counts[expected == 0].sum() == 0
    seen = expected > 0
    chi_square = ((counts - expected)[seen] ** 2 / expected[seen]).sum()
    assert chi_square < seen.sum() + 5 * np.sqrt(2 * seen.sum())


@pytest.mark.parametrize(
    "given_",
    [{"x0": 1}, {"x1": {0, 2}}, {"x2": np.array([0.1, 0, 1, 0.5])}, {"x0": 0, "x2": [1, 3]}],
)
def test_conditional_samples_have_the_conditional_distribution(given_):
    pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3, 4]), 3, 5)
    codes = pmf.sample(200_000, given=given_, random_state=1, backend="codes")
    table = pmf.table()
    for n, variable in enumerate(pmf.domain):
        if variable.name in given_:
            shape = [-1 if k == n else 1 for k in range(3)]
            likelihood = oracle.likelihood_of(variable, given_[variable.name])
            table = table * likelihood.reshape(shape)
    frequencies = np.zeros(table.shape)
    np.add.at(frequencies, tuple(codes.T), 1 / len(codes))
    np.testing.assert_allclose(frequencies, table / table.sum(), atol=0.006)


def test_samples_are_the_same_for_a_seed_and_of_every_kind():
    pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), 2, 0)
    codes = pmf.sample(50, random_state=7, backend="codes")
    np.testing.assert_array_equal(codes, pmf.sample(50, random_state=7, backend="codes"))
    assert not np.array_equal(codes, pmf.sample(50, random_state=8, backend="codes"))
    for backend in ("polars", "pandas", "pyarrow"):
        table = pmf.sample(50, random_state=7, backend=backend)
        np.testing.assert_array_equal(jp.encode(table, pmf.domain).array, codes)
    assert pmf.sample(0).shape == (0, 2)


@settings(max_examples=20, deadline=None)
@given(pmfs())
def test_exact_marginals_of_every_order(pmf):
    for order in range(1, len(pmf.domain) + 1):
        marginals = pmf.marginals(order)
        for subset, marginal in zip(marginals.subsets, marginals, strict=True):
            expected = oracle.sum_onto(oracle.joint(pmf), subset)
            np.testing.assert_allclose(np.asarray(marginal.table), expected, atol=1e-14)


def test_a_pmf_does_not_share_memory_and_cannot_be_changed():
    weights, factor = np.array([0.5, 0.5]), np.full((2, 2), 0.5)
    pmf = jp.JointPMF(jp.Domain.of_sizes([2]), weights, [factor])
    weights[0] = 9
    assert pmf.weights.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        pmf.factors[0][0, 0] = 1


def test_row_queries_are_the_same_bits_for_any_number_of_threads():
    pmf = jp.random_pmf(jp.Domain.of_sizes([5] * 6), 7, 0)
    rows = pmf.sample(150_000, random_state=0, backend="codes")
    many = pmf.predict_proba(rows, "x2")
    with threads.limited_to(1):
        np.testing.assert_array_equal(pmf.predict_proba(rows, "x2"), many)


def test_a_large_table_is_refused_with_its_size():
    pmf = jp.random_pmf(jp.Domain.of_sizes([10] * 10), 2, 0)
    with pytest.raises(jp.JointPMFError, match=r"74\.5 GiB, more than 1 GiB"):
        pmf.table()
    with pytest.raises(jp.JointPMFError, match=r"10\^302 bytes"):
        jp.random_pmf(jp.Domain.of_sizes([2] * 1000), 2, 0).table()
    assert jp.random_pmf(jp.Domain.of_sizes([10] * 3), 2, 0).table(max_bytes=8000).size == 1000


def test_row_queries_are_the_same_bits_for_any_chunks():
    pmf = jp.random_pmf(jp.Domain.of_sizes([5] * 6), 7, 0)
    rows = pmf.sample(200, random_state=0, backend="codes")
    whole = pmf.predict_proba(rows, "x2")
    parts = [pmf.predict_proba(rows[begin : begin + 37], "x2") for begin in range(0, 200, 37)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_the_scale_of_a_likelihood_does_not_matter():
    pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), 2, 0)
    tables = [pmf.condition({"x0": np.array([1.0, 2.0]) * s}).table() for s in (1, 1e-320, 1e300)]
    np.testing.assert_allclose(tables[1], tables[0], rtol=1e-3)
    np.testing.assert_allclose(tables[2], tables[0], rtol=1e-12)
    assert pmf.condition({"x0": np.array([5e-324, 0])}).domain.names == ("x1",)


def test_blas_gets_its_threads_back_also_when_contexts_interleave():
    controller = threads._controller().select(user_api="blas")
    before = [library["num_threads"] for library in controller.info()]
    threads.one_blas_thread.__enter__()
    threads.one_blas_thread.__enter__()
    threads.one_blas_thread.__exit__(None, None, None)
    assert {library["num_threads"] for library in controller.info()} == {1}
    threads.one_blas_thread.__exit__(None, None, None)
    assert [library["num_threads"] for library in controller.info()] == before


class TestAverage:
    DOMAIN = jp.Domain.of_sizes([2, 3, 4])

    def pmfs(self):
        return [sparse_pmf(self.DOMAIN, rank, seed) for seed, rank in enumerate((1, 2, 4))]

    def test_the_table_is_the_average_of_the_tables(self):
        pmfs = self.pmfs()
        mean = jp.average(pmfs)
        assert mean.rank == 7
        assert mean.domain == self.DOMAIN
        expected = sum(oracle.joint(pmf) for pmf in pmfs) / 3
        np.testing.assert_allclose(oracle.joint(mean), expected, atol=1e-15)

    def test_weights_of_any_scale_are_shares(self):
        pmfs = self.pmfs()
        tables = [oracle.joint(pmf) for pmf in pmfs]
        expected = 0.5 * tables[0] + 0.125 * tables[1] + 0.375 * tables[2]
        for weights in [4, 1, 3], np.array([0.4, 0.1, 0.3]), (4e200, 1e200, 3e200):
            found = oracle.joint(jp.average(pmfs, weights))
            np.testing.assert_allclose(found, expected, atol=1e-15)

    def test_a_model_of_weight_zero_changes_nothing(self):
        pmfs = self.pmfs()
        found = jp.average(pmfs, weights=[0, 1, 0])
        np.testing.assert_allclose(found.table(), pmfs[1].table(), atol=1e-15)

    def test_one_model_is_its_own_average(self):
        (pmf, *_) = self.pmfs()
        np.testing.assert_array_equal(jp.average(iter([pmf])).table(), pmf.table())

    def test_every_query_is_linear_in_the_members(self):
        pmfs = self.pmfs()
        rows = random_rows(self.DOMAIN, np.random.default_rng(0))
        expected = np.mean([pmf.probability(rows) for pmf in pmfs], axis=0)
        np.testing.assert_allclose(jp.average(pmfs).probability(rows), expected, atol=1e-15)


LABELLED = jp.Domain(
    [
        jp.Variable("vote", ("no", "yes")),
        jp.Variable("age", (20, 40, 60)),
        jp.Variable("owner", (False, True)),
    ]
)


def rows_of(frame):
    """Return the rows of a frame of any kind as tuples."""
    frame = frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame)
    return frame.rows()


class TestToFrame:
    @pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
    def test_it_has_the_users_levels_and_the_tables_probabilities_in_its_order(self, backend):
        pmf = jp.random_pmf(LABELLED, 2, 0)
        found = rows_of(pmf.to_frame(backend))
        levels = list(product(*(variable.levels for variable in LABELLED)))
        assert [row[:3] for row in found] == levels
        assert [type(cell) for cell in found[0]] == [str, int, bool, float]
        np.testing.assert_array_equal([row[3] for row in found], pmf.table().ravel())

    def test_a_variable_called_probability_needs_another_column(self):
        pmf = jp.random_pmf(jp.Domain.of_sizes([2], ["probability"]), 1, 0)
        with pytest.raises(jp.JointPMFError, match=r"called 'probability': .*column='p'"):
            pmf.to_frame()
        assert pmf.to_frame(column="p").columns == ["probability", "p"]
        assert pmf.most_likely(column="p").columns == ["probability", "p"]

    def test_a_large_frame_is_refused_by_all_of_its_columns(self):
        pmf = jp.random_pmf(jp.Domain.of_sizes([10] * 3), 2, 0)
        assert pmf.table(max_bytes=8000).size == 1000
        with pytest.raises(jp.JointPMFError, match=r"31\.2 KiB, more than 7\.81 KiB"):
            pmf.to_frame(max_bytes=8000)
        assert len(pmf.to_frame(max_bytes=32_000)) == 1000

    def test_a_pmf_of_nothing_has_one_row(self):
        pmf = jp.random_pmf(jp.Domain.of_sizes([2, 3]), 2, 0).condition({"x0": 1, "x1": 2})
        assert pmf.to_frame()["probability"].to_list() == pytest.approx([1.0])
        assert pmf.most_likely()["probability"].to_list() == pytest.approx([1.0])


def most_likely_by_brute_force(pmf, n, evidence):
    """Return the codes and probabilities of the n best cells; equal ones in the order of levels."""
    table = oracle.joint(pmf)
    for k, variable in enumerate(pmf.domain):
        if variable.name in evidence:
            shape = [-1 if m == k else 1 for m in range(table.ndim)]
            likelihood = oracle.likelihood_of(variable, evidence[variable.name])
            table = table * likelihood.reshape(shape)
    if not table.sum() > 0:
        return None
    cells = oracle.all_cells(pmf.domain)
    shares = table.ravel() / table.sum()
    logs = np.full(len(shares), np.inf)
    logs[shares > 0] = -np.log(shares[shares > 0])
    order = np.lexsort([np.arange(len(cells)), np.round(logs, 8)])[:n]
    order = order[shares[order] > 0]
    return cells[order].tolist(), shares[order]


class TestMostLikely:
    @settings(max_examples=150, deadline=None)
    @given(pmfs(), st.randoms(use_true_random=False), st.sampled_from([1, 2, 5, 2000]))
    def test_it_is_the_best_of_all_cells(self, pmf, random, n):
        evidence = random_evidence(pmf, random)
        expected = most_likely_by_brute_force(pmf, n, evidence)
        if expected is None:
            with pytest.raises(jp.JointPMFError, match="probability zero"):
                pmf.most_likely(n, given=evidence)
            return
        found = pmf.most_likely(n, given=evidence)
        *columns, probabilities = found.to_numpy().T
        np.testing.assert_allclose(probabilities, expected[1], rtol=1e-7)
        assert np.transpose(columns).astype(int).tolist() == expected[0]

    @pytest.mark.parametrize("rank", [1, 4])
    def test_equal_rows_come_in_the_order_of_their_levels(self, rank):
        domain = jp.Domain.of_sizes([3, 2, 4])
        factors = [np.full((size, rank), 1 / size) for size in domain.sizes]
        pmf = jp.JointPMF(domain, np.full(rank, 1 / rank), factors)
        found = pmf.most_likely(24).to_numpy()[:, :3].astype(int)
        np.testing.assert_array_equal(found, oracle.all_cells(domain))

    def test_equal_rows_of_a_large_domain_take_few_nodes(self):
        domain = jp.Domain.of_sizes([4] * 30)
        pmf = jp.JointPMF(domain, [1.0], [np.full((4, 1), 0.25)] * 30)
        found = pmf.most_likely(3, max_nodes=5000)
        assert found.drop("probability").sum_horizontal().to_list() == [0, 1, 2]
        assert found["x29"].to_list() == [0, 1, 2]

    def test_equal_rows_of_different_components_do_not_depend_on_rounding(self):
        generator = np.random.default_rng(0)
        factor = generator.dirichlet(np.ones(3))
        factors = [np.column_stack([np.roll(factor, k), np.roll(factor, -k)]) for k in range(6)]
        pmf = jp.JointPMF(jp.Domain.of_sizes([3] * 6), [0.5, 0.5], factors)
        found = pmf.most_likely(2).to_numpy()[:, :6].tolist()
        assert found == sorted(found)
        logs = pmf.log_probability(np.array(found, int))
        assert logs[0] == pytest.approx(logs[1], rel=1e-12)

    def test_impossible_rows_are_left_out(self):
        pmf = jp.JointPMF(jp.Domain.of_sizes([3, 3]), [0.2, 0.3, 0.5], [np.eye(3), np.eye(3)])
        found = pmf.most_likely(100)
        assert found.drop("probability").rows() == [(2, 2), (1, 1), (0, 0)]
        assert found["probability"].to_list() == pytest.approx([0.5, 0.3, 0.2], abs=1e-12)

    @pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
    def test_it_has_the_users_levels_and_the_evidence(self, backend):
        pmf = jp.random_pmf(LABELLED, 2, 0)
        (row,) = rows_of(pmf.most_likely(given={"vote": "yes", "age": {20, 40}}, backend=backend))
        table = pmf.condition({"vote": "yes"}).table()[:2]
        best = np.unravel_index(table.argmax(), table.shape)
        levels = [LABELLED["age"].levels[best[0]], LABELLED["owner"].levels[best[1]]]
        assert row[:3] == ("yes", *levels)
        assert row[3] == pytest.approx(table.max() / table.sum())

    def test_thirty_variables_take_few_nodes(self):
        pmf = jp.random_pmf(jp.Domain.of_sizes([4] * 30), 10, 0)
        found = pmf.most_likely(10, max_nodes=3000)
        logs = pmf.log_probability(found)
        assert (np.diff(logs) < 1e-9).all()
        drawn = pmf.log_probability(pmf.sample(20_000, random_state=0))
        assert logs[-1] > drawn.max()
        rows = jp.encode(found, pmf.domain).array
        for n in range(30):  # no change of one level is better than the last
            for code in range(4):
                changed = rows[:1].copy()
                changed[0, n] = code
                is_found = (rows == changed).all(axis=1).any()
                assert is_found or pmf.log_probability(changed)[0] <= logs[-1] + 1e-9

    def test_a_thousand_variables_do_not_underflow(self):
        factor = np.array([[0.3, 0.4], [0.4, 0.3], [0.3, 0.3]])
        pmf = jp.JointPMF(jp.Domain.of_sizes([3] * 1000), [0.3, 0.7], [factor] * 1000)
        found = pmf.most_likely()
        assert found["probability"].to_list() == [0.0]
        expected = np.log(0.7) + 1000 * np.log(0.4)
        assert pmf.log_probability(found)[0] == pytest.approx(expected, rel=1e-12)
        assert (jp.encode(found, pmf.domain).array == 0).all()

    def test_what_is_not_certain_is_not_returned(self):
        apart = jp.random_pmf(jp.Domain.of_sizes([5] * 15), 20, 0)
        alike = [0.14 + 0.3 * factor for factor in apart.factors]
        pmf = jp.JointPMF(apart.domain, apart.weights, alike)
        message = "only 0 of the 2 most likely rows are certain after 1,0.. partial rows; raise max"
        with pytest.raises(jp.JointPMFError, match=message):
            pmf.most_likely(2, max_nodes=1000)


@pytest.mark.parametrize("order", ["C", "F"])
def test_factors_are_in_the_order_of_a_file_whatever_they_came_in(order, tmp_path):
    """So that a model and its file give the same bits."""
    pmf = jp.random_pmf(jp.Domain.of_sizes([3, 4, 5]), 5, 0)
    pmf = jp.JointPMF(pmf.domain, pmf.weights, [np.array(f, order=order) for f in pmf.factors])
    for one in (pmf, pmf.reordered([4, 2, 0, 1, 3])):
        assert all(factor.flags.c_contiguous for factor in one.factors)
        one.save(tmp_path / "model.safetensors")
        again = jp.load(tmp_path / "model.safetensors")
        for name in one.domain.names:
            here, there = (m.marginal([name]).table() for m in (one, again))
            np.testing.assert_array_equal(here, there)
