"""The latent-class summary, by the formulas and by brute force."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.judge.summary import CRITERIA, information_criteria
from support import oracle

DOMAIN = jp.Domain(
    [
        jp.Variable("vote", ("no", "yes", "perhaps")),
        jp.Variable("age", (20, 40)),
        jp.Variable("town size", ("small", "large")),
    ]
)
PMF = jp.random_pmf(DOMAIN, 3, random_state=0)
ROWS = jp.Codes(DOMAIN, [[0, 1, -1], [2, 0, 1], [-1, -1, -1], [1, -1, 0], [1, -1, 0], [-1, 1, -1]])
SEEN = [0, 1, 3, 4, 5]
WEIGHTS = np.array([1.0, 0.5, 7.0, 0.0, 2.0, 3.0])


def posterior(row):
    """Return P(component | row) as a quotient of dense joints."""
    parts = [
        weight * oracle.row_probability(one_component(f), row)
        for f, weight in enumerate(PMF.weights)
    ]
    return np.array(parts) / sum(parts)


def one_component(f):
    return jp.JointPMF(DOMAIN, [1.0], [factor[:, [f]] for factor in PMF.factors])


def entropy_of(rows, weights):
    entropies = [oracle.entropy(posterior(row)) for row in rows]
    return 1 - np.average(entropies, weights=weights) / math.log(3)


class TestNumbers:
    def test_the_likelihood_is_that_of_the_rows_that_say_something(self):
        found = jp.summary(PMF, ROWS)
        expected = sum(math.log(oracle.row_probability(PMF, ROWS.array[m])) for m in SEEN)
        assert found.log_likelihood == pytest.approx(expected, rel=1e-12)
        assert found.n_rows == 5

    def test_parameters_are_free_numbers(self):
        assert jp.summary(PMF, ROWS).n_parameters == 2 + 3 * (2 + 1 + 1)

    def test_criteria_are_the_formulas(self):
        found = jp.summary(PMF, ROWS)
        deviance, p, m = -2 * found.log_likelihood, 14, 5
        assert found.aic == pytest.approx(deviance + 2 * p)
        assert found.bic == pytest.approx(deviance + p * math.log(m))
        assert found.abic == pytest.approx(deviance + p * math.log((m + 2) / 24))
        assert found.caic == pytest.approx(deviance + p * (math.log(m) + 1))

    def test_published_criteria_are_reproduced(self):
        found = information_criteria(-317.2568, 15, 118)  # carcinoma, two classes, by poLCA
        assert tuple(found) == CRITERIA
        assert found["aic"] == pytest.approx(664.5137, abs=2e-4)
        assert found["bic"] == pytest.approx(706.0739, abs=2e-4)

    def test_weights_are_what_rows_count_for(self):
        found = jp.summary(PMF, ROWS, sample_weight=WEIGHTS)
        logs = [math.log(oracle.row_probability(PMF, row)) for row in ROWS.array[SEEN]]
        assert found.n_rows == 6.5
        assert found.log_likelihood == pytest.approx(WEIGHTS[SEEN] @ logs, rel=1e-12)
        assert found.bic == pytest.approx(-2 * found.log_likelihood + 14 * math.log(6.5))
        expected = entropy_of(ROWS.array[SEEN], WEIGHTS[SEEN])
        assert found.relative_entropy == pytest.approx(expected, abs=1e-12)

    def test_a_row_twice_is_a_row_of_weight_two(self):
        twice = jp.Codes(DOMAIN, ROWS.array[[0, 0, 1]])
        double = jp.summary(PMF, twice)
        weighted = jp.summary(PMF, jp.Codes(DOMAIN, ROWS.array[:2]), sample_weight=[2, 1])
        assert str(double) == str(weighted)

    def test_an_impossible_row_counts_unless_its_weight_is_zero(self):
        sure = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [0.5, 0.5], [np.eye(2), np.eye(2)])
        rows = [[0, 0], [0, 1]]
        assert jp.summary(sure, rows).log_likelihood == -np.inf
        assert jp.summary(sure, rows, [1, 0]).log_likelihood == pytest.approx(math.log(0.5))


class TestComponents:
    def test_relative_entropy_by_brute_force(self):
        expected = entropy_of(ROWS.array[SEEN], np.ones(5))
        assert 0 < expected < 1
        assert jp.summary(PMF, ROWS).relative_entropy == pytest.approx(expected, abs=1e-12)

    def test_rows_that_surely_belong_have_relative_entropy_one(self):
        sure = jp.JointPMF(jp.Domain.of_sizes([3, 3]), [0.2, 0.3, 0.5], [np.eye(3), np.eye(3)])
        assert jp.summary(sure, [[0, 0], [2, None], [1, 1]]).relative_entropy == 1

    def test_rows_that_tell_nothing_have_relative_entropy_zero(self):
        same = jp.JointPMF(jp.Domain.of_sizes([2]), [0.5, 0.5], [[[0.3, 0.3], [0.7, 0.7]]])
        found = jp.summary(same, [[0], [1], [1]])
        assert found.relative_entropy == pytest.approx(0, abs=1e-12)

    def test_one_component_is_sure(self):
        assert jp.summary(jp.random_pmf(DOMAIN, 1, 0), ROWS).relative_entropy == 1

    def test_each_row_has_its_likeliest_component_and_an_empty_one_has_none(self):
        components = jp.summary(PMF, ROWS).components
        assert components.tolist() == [
            int(np.argmax(posterior(row))) if max(row) >= 0 else -1 for row in ROWS.array
        ]
        assert len(set(components.tolist())) > 2


def own_groups(codes):
    """Return the rows of each group that has a label, and then those without, if there are any."""
    groups = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
    return [*groups, *([np.flatnonzero(codes < 0)] if (codes < 0).any() else [])]


def assert_sizes(found, codes, weights):
    """Compare sizes with sums over rows, one at a time; rows without a cell do not count."""
    for k, rows in enumerate(own_groups(np.asarray(codes))):
        seen = [m for m in rows if m in SEEN]
        posteriors = np.array([posterior(ROWS.array[m]) for m in seen]).reshape(-1, 3)
        assigned = np.eye(3)[posteriors.argmax(axis=1)]
        total = weights[seen].sum()
        assert found.n_rows[k] == pytest.approx(total)
        if total:
            expected = weights[seen] @ posteriors / total
            np.testing.assert_allclose(found.by_posterior[k], expected, atol=1e-12)
            expected = weights[seen] @ assigned / total
            np.testing.assert_allclose(found.by_component[k], expected, atol=1e-12)
        else:
            assert np.isnan(found.by_posterior[k]).all()


class TestSizes:
    @pytest.mark.parametrize("given", [None, WEIGHTS])
    def test_of_all_rows(self, given):
        found = jp.summary(PMF, ROWS, given)
        assert_sizes(found.sizes, np.zeros(6, int), np.ones(6) if given is None else given)
        assert found.sizes.by_posterior.sum() == pytest.approx(1)

    @pytest.mark.parametrize("given", [None, WEIGHTS])
    def test_by_labels_with_and_without_missing_ones(self, given):
        weights = np.ones(6) if given is None else given
        found = jp.summary(PMF, ROWS, given)
        sizes = found.sizes_by(["b", "a", "a", None, "c", "b"])
        assert sizes.labels == ("a", "b", "c", None)
        assert_sizes(sizes, [1, 0, 0, -1, 2, 1], weights)
        whole = found.sizes_by(np.array([7, 7, -1, -1, 7, 7]))
        assert whole.labels == (-1, 7)  # a number is a label, whatever it is
        assert_sizes(whole, [1, 1, 0, 0, 1, 1], weights)

    def test_a_group_of_no_weight_has_no_shares(self):
        sizes = jp.summary(PMF, ROWS).sizes_by(["a", "a", "empty", "a", "a", "a"])
        assert sizes.n_rows.tolist() == [5, 0]
        assert np.isnan(sizes.by_posterior[1]).all()
        assert str(sizes).splitlines()[2].split() == ["empty", "0", "–", "–", "–"]

    @pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
    def test_by_a_column_that_the_model_does_not_have(self, kind):
        table = kind(
            {"vote": ["no", "perhaps", "yes"], "age": [40, 20, 20], "town": ["x", "y", "x"]}
        )
        found = jp.summary(PMF, table).sizes_by("town")
        assert found.labels == ("x", "y")
        expected = PMF.responsibilities(table)
        np.testing.assert_allclose(found.by_posterior, [expected[[0, 2]].mean(0), expected[1]])
        assert str(found).startswith("town rows ")

    def test_by_a_variable_of_the_model_as_the_model_has_it(self):
        age = jp.Variable("age", ("young", "old"), edges=(0, 30, 99))
        pmf = jp.random_pmf(jp.Domain([age, DOMAIN["vote"]]), 2, 0)
        table = pl.DataFrame({"age": [25, 60, None, 41], "vote": ["no", "no", "yes", "yes"]})
        found = jp.summary(pmf, table).sizes_by("age")
        assert found.labels == ("young", "old", None)
        assert found.n_rows.tolist() == [1, 2, 1]
        assert jp.summary(PMF, ROWS).sizes_by("age").labels == (20, 40, None)

    def test_by_a_column_of_codes_that_the_model_does_not_have(self):
        part = PMF.marginal(["vote", "age"])
        assert jp.summary(part, ROWS).sizes_by("town size").labels == ("small", "large", None)

    def test_categories_keep_their_order_and_a_column_may_be_empty(self):
        town = pd.Categorical(["small", "large", "small"], ["small", "large"], ordered=True)
        table = pd.DataFrame({"vote": ["no", "yes", "no"], "town": town, "none": [None] * 3})
        found = jp.summary(PMF, table)
        assert found.sizes_by("town").labels == ("small", "large")
        assert found.sizes_by("none").labels == (None,)
        assert str(found.sizes_by("none")).splitlines()[1].split()[:2] == ["missing", "3"]
        assert found.sizes_by("none").to_frame()["label"].to_list() == [None] * 3

    def test_labels_of_any_kind(self):
        found = jp.summary(PMF, ROWS)
        for labels in (pl.Series([1.5, 1.5, 2, 2, None, 2]), pd.Series([1.5, 1.5, 2, 2, None, 2])):
            assert found.sizes_by(labels).labels == (1.5, 2.0, None)

    @pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
    def test_the_frame_has_all_shares(self, backend):
        named = PMF.reordered([0, 1, 2], names=["a", "b", "c"])
        sizes = jp.summary(named, ROWS, WEIGHTS).sizes_by([2, 2, 2, 1, 1, None])
        frame = pl.DataFrame(sizes.to_frame(backend))
        assert frame["label"].to_list() == ["1"] * 3 + ["2"] * 3 + [None] * 3
        assert frame["component"].to_list() == ["a", "b", "c"] * 3
        np.testing.assert_allclose(frame["by_posterior"], sizes.by_posterior.ravel())
        np.testing.assert_allclose(frame["by_component"], sizes.by_component.ravel())
        assert frame["rows"].sum() == pytest.approx(6.5)

    @pytest.mark.parametrize("given", [None, WEIGHTS])
    def test_the_classification_table_by_brute_force(self, given):
        weights = np.ones(6) if given is None else given
        found = jp.summary(PMF, ROWS, given)
        for f in range(3):
            rows = [m for m in SEEN if found.components[m] == f and weights[m]]
            if rows:
                posteriors = [posterior(ROWS.array[m]) for m in rows]
                expected = np.average(posteriors, axis=0, weights=weights[rows])
                np.testing.assert_allclose(found.classification[f], expected, atol=1e-12)
            else:
                assert np.isnan(found.classification[f]).all()


class TestPosteriors:
    @pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
    def test_a_row_has_its_posterior_and_its_most_likely_component(self, backend):
        found = jp.summary(PMF, ROWS)
        frame = found.posteriors(backend)
        frame = (
            pl.from_pandas(frame, nan_to_null=True) if backend == "pandas" else pl.DataFrame(frame)
        )
        assert frame.columns == ["component 0", "component 1", "component 2", "most likely"]
        np.testing.assert_allclose(frame.to_numpy()[:, :3], PMF.responsibilities(ROWS))
        components = [None if f < 0 else f for f in found.components.tolist()]
        assert frame["most likely"].to_list() == components

    def test_names_are_its_columns(self):
        named = PMF.reordered([0, 1, 2], names=["a", "b", "c"])
        frame = jp.summary(named, ROWS).posteriors()
        assert frame.columns == ["a", "b", "c", "most likely"]
        assert frame["most likely"][0] == "abc"[jp.summary(PMF, ROWS).components[0]]


class TestSolution:
    ROWS = np.array([[0, 0, 0], [1, 1, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])

    def test_a_solution_also_says_how_often_it_was_found(self):
        solution = jp.fit_rows(self.ROWS, rank=2, random_state=0)
        several = replace(solution, n_starts=8, n_agreed=3)
        found = jp.summary(several, self.ROWS)
        assert found.pmf is solution.pmf
        assert "\nfound by 3 of 8 starts\n" in str(found)
        assert "found by" not in str(jp.summary(replace(solution, n_starts=1), self.ROWS))
        plain = jp.summary(solution.pmf, self.ROWS)
        assert plain.replication == ""
        assert "found by" not in str(plain)


class TestFrame:
    def test_components_with_names_are_named(self):
        named = PMF.reordered([0, 1, 2], names=["a", "b", "c"])
        assert jp.summary(named, ROWS).to_frame()["component"].to_list()[:3] == ["a", "b", "c"]
        heading = str(jp.summary(named, ROWS)).split("\n\n")[1].splitlines()[0]
        assert heading.split() == ["component", "a", "b", "c"]

    @pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
    def test_it_has_every_profile_and_weight(self, backend):
        found = pl.DataFrame(jp.summary(PMF, ROWS).to_frame(backend))
        assert found.height == PMF.rank * sum(DOMAIN.sizes)
        for variable, level, component, weight, probability in found.rows():
            n, code = DOMAIN.index(variable), [*map(str, DOMAIN[variable].levels)].index(level)
            assert weight == PMF.weights[component]
            assert probability == PMF.factors[n][code, component]


class TestText:
    def test_it_shows_every_name_level_and_number(self):
        found = jp.summary(PMF, ROWS)
        text = str(found)
        for variable in DOMAIN:
            assert variable.name in text
            for level in variable.levels:
                assert f"\n  {level}" in text
        for factor in [PMF.weights[None], *PMF.factors]:
            for row in factor:
                shown = " ".join(f"{100 * p:.1f} %" for p in row)
                assert shown in " ".join(text.split())
        for label in "AIC", "BIC", "aBIC", "CAIC":
            assert f" {label} {getattr(found, label.lower()):.2f}" in " " + text.replace("\n", " ")
        assert text.startswith("5 rows, rank 3, 14 parameters\n")
        assert f"log-likelihood {found.log_likelihood:.4f}\n" in text
        assert f"relative entropy (entropy R²) {found.relative_entropy:.3f}\n" in text

    def test_columns_are_aligned(self):
        lines = str(jp.summary(PMF, ROWS)).split("\n\n")[1].splitlines()
        assert lines[0].split() == ["component", "0", "1", "2"]
        assert len({len(line) for line in lines if "%" in line or "component" in line}) == 1

    def test_every_kind_of_table_gives_the_same_text(self):
        polars = pl.DataFrame({"vote": ["no", "yes", None], "age": [20, None, 40]})
        pandas = pd.DataFrame({"vote": ["no", "yes", None], "age": [20, np.nan, 40]})
        codes = jp.Codes(DOMAIN, [[0, 0, -1], [1, -1, -1], [-1, 1, -1]])
        assert len({str(jp.summary(PMF, table)) for table in (polars, pandas, codes)}) == 1
