"""The latent-class summary, by the formulas and by brute force."""

import math

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


class TestFrame:
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
        assert f"relative entropy {found.relative_entropy:.3f}\n" in text

    def test_columns_are_aligned(self):
        lines = str(jp.summary(PMF, ROWS)).split("\n\n")[1].splitlines()
        assert lines[0].split() == ["component", "0", "1", "2"]
        assert len({len(line) for line in lines if "%" in line or "component" in line}) == 1

    def test_every_kind_of_table_gives_the_same_text(self):
        polars = pl.DataFrame({"vote": ["no", "yes", None], "age": [20, None, 40]})
        pandas = pd.DataFrame({"vote": ["no", "yes", None], "age": [20, np.nan, 40]})
        codes = jp.Codes(DOMAIN, [[0, 0, -1], [1, -1, -1], [-1, 1, -1]])
        assert len({str(jp.summary(PMF, table)) for table in (polars, pandas, codes)}) == 1
