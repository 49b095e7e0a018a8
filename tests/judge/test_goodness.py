"""How well a model fits: against the dense joint, published figures, and the weights of rows."""

import logging
import math
from collections import Counter
from itertools import combinations, product

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

import jointpmf as jp
from jointpmf.fit.likelihood import EMFit
from support import oracle

DOMAIN = jp.Domain.of_sizes([2, 3, 2])
PMF = jp.random_pmf(DOMAIN, 2, random_state=0)
COMPLETE = PMF.sample(40, random_state=1, backend="codes")
WITH_HOLES = np.where(np.random.default_rng(2).random((40, 3)) < 0.3, -1, COMPLETE)
WEIGHTS = np.random.default_rng(3).integers(0, 4, 40).astype(float)
TABLES = pytest.mark.parametrize("rows", [COMPLETE, WITH_HOLES], ids=["complete", "with holes"])
WEIGHTED = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])

CARCINOMA = """0000000 34  0000100 2  0100000 6  0100001 1  0100100 4  0100101 5
1000000 2  1010101 1  1100000 2  1100001 1  1100100 2  1100101 7  1100111 1
1101001 1  1101101 2  1101111 3  1110101 13  1110111 5  1111101 10  1111111 16"""
"""Patterns of answers and how often each was seen; Agresti, 2002, table 13.1."""


def goodness(rows, weights=None, pmf=PMF, **options):
    summary = jp.summary(pmf, jp.Codes(pmf.domain, rows), sample_weight=weights)
    return summary.goodness_of_fit(**options)


def by_brute_force(rows, weights, pmf=PMF):
    """Return G², X², the cells and the patterns from the dense joint, cell by cell."""
    weights = np.ones(len(rows)) if weights is None else weights
    counts = {}
    for row, weight in zip(rows.tolist(), weights, strict=True):
        pattern = tuple(code >= 0 for code in row)
        if any(pattern) and weight:
            cells = counts.setdefault(pattern, Counter())
            cells[tuple(code for code in row if code >= 0)] += weight
    g_squared = x_squared = n_cells = 0
    for pattern, cells in counts.items():
        table = oracle.sum_onto(oracle.joint(pmf), [n for n, seen in enumerate(pattern) if seen])
        total = sum(cells.values())
        for cell in product(*map(range, table.shape)):
            observed, expected = cells[cell], total * table[cell]
            x_squared += (observed - expected) ** 2 / expected if expected or observed else 0.0
            g_squared += 2 * observed * math.log(observed / expected) if observed else 0.0
            n_cells += 1
    return g_squared, x_squared, n_cells, len(counts)


def pair_by_brute_force(rows, weights, pair, pmf=PMF):
    observed = oracle.count_table(rows, pair, pmf.domain.sizes, weights)
    expected = observed.sum() * oracle.sum_onto(oracle.joint(pmf), list(pair))
    return observed, expected, ((observed - expected) ** 2 / expected).sum()


class TestRows:
    @TABLES
    @WEIGHTED
    def test_statistics_are_those_of_all_cells(self, rows, weights):
        found = goodness(rows, weights)
        g_squared, x_squared, n_cells, n_patterns = by_brute_force(rows, weights)
        assert found.g_squared == pytest.approx(g_squared)
        assert found.x_squared == pytest.approx(x_squared)
        assert (found.n_cells, found.n_patterns) == (n_cells, n_patterns)
        assert found.df == n_cells - n_patterns - (1 + 2 * (1 + 2 + 1))

    def test_p_values_are_those_of_the_distribution(self):
        found = goodness(np.tile(COMPLETE, (3, 1)))
        assert found.df == 2
        assert found.g_p_value == pytest.approx(chi2.sf(found.g_squared, 2))
        assert found.x_p_value == pytest.approx(chi2.sf(found.x_squared, 2))
        assert "χ² p" in str(found)

    @pytest.mark.parametrize(
        ("rank", "g_squared", "x_squared", "df_of_polca"),
        [(2, 62.36543, 92.64814, 103), (3, 15.26171, 20.50336, 95)],
    )
    def test_the_figures_of_polca(self, rank, g_squared, x_squared, df_of_polca):
        patterns = CARCINOMA.split()
        rows = np.array([list(row) for row in patterns[::2]]).astype(int)
        counts = np.array(patterns[1::2]).astype(int)
        codes = jp.Codes(jp.Domain.of_sizes([2] * 7), rows.repeat(counts, axis=0))
        pmf = jp.fit_rows(codes, rank, random_state=0).pmf
        found = jp.summary(pmf, codes).goodness_of_fit()
        assert found.g_squared == pytest.approx(g_squared, abs=2e-3)
        assert found.x_squared == pytest.approx(x_squared, abs=2e-2)
        assert found.df == 127 - found.n_parameters
        assert min(118, 127) - found.n_parameters == df_of_polca
        weighted = jp.summary(pmf, jp.Codes(codes.domain, rows), counts).goodness_of_fit()
        assert weighted.g_squared == pytest.approx(found.g_squared)
        assert weighted.pairs.residual == pytest.approx(found.pairs.residual)

    def test_a_row_that_cannot_happen_is_said(self):
        sure = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [1.0], [[[1.0], [0.0]]] * 2)
        found = goodness(np.array([[0, 0], [1, 0]]), pmf=sure)
        assert (found.g_squared, found.x_squared) == (math.inf, math.inf)
        assert "Some rows have probability zero under the model." in str(found)
        assert math.isinf(found.pairs.residual[0])

    def test_too_many_parameters_are_said(self):
        found = goodness(COMPLETE, pmf=jp.random_pmf(DOMAIN, 5, 0))
        assert found.df == 11 - 24
        assert math.isnan(found.g_p_value)
        assert "24 parameters for 11 free cells: the χ² test is not defined" in str(found)

    def test_of_very_many_cells_none_is_formed(self):
        pmf = jp.random_pmf(jp.Domain.of_sizes([4] * 600), 1, 0)
        found = goodness(pmf.sample(3, random_state=0, backend="codes"), pmf=pmf)
        assert found.is_sparse
        assert "df about 1e361" in str(found)
        assert math.isnan(found.g_p_value)
        assert "Goodness(rank=1" in repr(found)


class TestPairs:
    @TABLES
    @WEIGHTED
    def test_residuals_are_those_of_dense_tables_the_worst_first(self, rows, weights):
        found = goodness(rows, weights).to_frame()
        expected = {}
        for pair in combinations(range(3), 2):
            df = math.prod(DOMAIN.sizes[n] - 1 for n in pair)
            chi_squared = pair_by_brute_force(rows, weights, pair)[2]
            expected[tuple(f"x{n}" for n in pair)] = (chi_squared / df, chi_squared, df)
        residuals = found["residual"].to_list()
        assert residuals == sorted(residuals, reverse=True)
        assert len(found) == 3
        for line in found.iter_rows(named=True):
            told = line["residual"], line["chi2"], line["df"]
            assert told == pytest.approx(expected[line["first"], line["second"]])

    def test_the_worst_cell_is_where_the_residual_is_largest(self):
        for line in goodness(WITH_HOLES).to_frame().iter_rows(named=True):
            pair = int(line["first"][1]), int(line["second"][1])
            observed, expected, _ = pair_by_brute_force(WITH_HOLES, None, pair)
            cell = int(line["first_level"]), int(line["second_level"])
            size = np.abs(observed - expected) / np.sqrt(expected)
            assert size[cell] == pytest.approx(size.max())
            assert (line["observed"], line["n_rows"]) == (observed[cell], observed.sum())
            assert line["expected"] == pytest.approx(expected[cell])

    def test_pairs_that_say_nothing_are_left_out(self):
        domain = jp.Domain.of_sizes([2, 1, 2, 2])
        rows = np.array([[0, 0, 1, -1], [1, 0, -1, 0], [1, 0, 0, -1], [0, 0, -1, 1]])
        found = goodness(rows, pmf=jp.random_pmf(domain, 2, 0)).to_frame()
        assert set(zip(found["first"], found["second"], strict=True)) == {
            ("x0", "x2"),
            ("x0", "x3"),
        }

    def test_of_one_variable_there_is_none(self):
        found = goodness(np.array([[0], [1]]), pmf=jp.random_pmf(jp.Domain.of_sizes([2]), 1, 0))
        assert len(found.pairs) == 0
        assert len(found.to_frame()) == 0
        assert "pair" not in str(found)

    def test_names_and_levels_are_the_users(self):
        table = pl.DataFrame({"vote": ["no"] * 8 + ["yes"] * 4, "age": [20] * 8 + [40] * 4})
        pmf = jp.fit_rows(table, 1).pmf
        text = str(jp.summary(pmf, table).goodness_of_fit())
        assert "vote, age" in text
        assert "yes, 40" in text

    def test_only_the_worst_are_printed(self):
        pmf = jp.random_pmf(jp.Domain.of_sizes([2] * 6), 2, 0)
        found = goodness(pmf.sample(30, random_state=0, backend="codes"), pmf=pmf)
        assert str(found).endswith("… and 5 more pairs")
        assert len(found.to_frame("pandas")) == 15


class TestBootstrap:
    def test_a_model_that_lacks_a_component_is_refuted_and_the_right_one_is_not(self):
        factors = [np.array([[0.9, 0.1], [0.1, 0.9]])] * 5
        truth = jp.JointPMF(jp.Domain.of_sizes([2] * 5), [0.5, 0.5], factors)
        rows = truth.sample(300, random_state=0, backend="codes")
        small, right = (
            goodness(
                rows,
                pmf=jp.fit_rows(jp.Codes(truth.domain, rows), rank, random_state=0).pmf,
                n_bootstrap=19,
                random_state=0,
            )
            for rank in (1, 2)
        )
        assert small.g_bootstrap_p == small.x_bootstrap_p == 0.05
        assert (small.pairs.bootstrap_p == 0.05).all()
        assert right.g_bootstrap_p > 0.05
        assert right.x_bootstrap_p > 0.05
        assert right.pairs.bootstrap_p.mean() > 0.2
        assert "Bootstrap p-values are from 19 simulated tables." in str(right)

    def test_tables_miss_the_same_cells_have_the_same_weights_and_are_fitted_anew(
        self, monkeypatch
    ):
        run, tables = EMFit.run, []

        def spy(self, source, generator):
            solution = run(self, source, generator)
            tables.append((source, solution.pmf))
            return solution

        monkeypatch.setattr(EMFit, "run", spy)
        found = goodness(WITH_HOLES, WEIGHTS, n_bootstrap=4, random_state=0)
        assert len(tables) == 4
        n_above = np.zeros(2)
        for source, pmf in tables:
            np.testing.assert_array_equal(source.codes.array < 0, WITH_HOLES < 0)
            np.testing.assert_array_equal(source.weights, WEIGHTS)
            assert pmf.rank == 2
            simulated = by_brute_force(source.codes.array, WEIGHTS, pmf)[:2]
            n_above += np.array(simulated) >= (found.g_squared, found.x_squared)
        assert (found.g_bootstrap_p, found.x_bootstrap_p) == tuple((1 + n_above) / 5)

    def test_the_same_seed_gives_the_same_bits(self):
        first, second, other = (
            goodness(WITH_HOLES, n_bootstrap=9, random_state=seed) for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(first.pairs.bootstrap_p, second.pairs.bootstrap_p)
        assert str(first) == str(second)
        p_values = first.pairs.bootstrap_p.tolist(), other.pairs.bootstrap_p.tolist()
        assert p_values[0] != p_values[1]

    @pytest.mark.parametrize("n_done", [0, 2])
    def test_after_an_interrupt_what_was_done_counts(self, monkeypatch, caplog, n_done):
        run, fits = EMFit.run, []

        def stopped(self, source, generator):
            if len(fits) == n_done:
                raise KeyboardInterrupt
            fits.append(self)
            return run(self, source, generator)

        monkeypatch.setattr(EMFit, "run", stopped)
        with caplog.at_level(logging.WARNING, "jointpmf"):
            found = goodness(COMPLETE, n_bootstrap=5, random_state=0)
        assert found.n_bootstrap == n_done
        assert math.isnan(found.g_bootstrap_p) == (n_done == 0)
        assert f"stopped after {n_done} of 5 simulated tables" in caplog.text
        assert "nan" not in str(found)

    def test_a_bar_shows_what_is_done(self, monkeypatch, capfd):
        for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}.items():
            monkeypatch.setenv(name, value)
        goodness(COMPLETE, n_bootstrap=2, random_state=0)
        assert capfd.readouterr() == ("", "")
        goodness(COMPLETE, n_bootstrap=2, random_state=0, verbose=True)
        assert "simulating: table 2" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_bootstrap": -1}, "n_bootstrap .*-1"),
        ({"n_bootstrap": 1.5}, "n_bootstrap .*1.5"),
        ({"n_bootstrap": 1, "random_state": "x"}, "random_state .*'x'"),
    ],
)
def test_bad_input_is_said(options, said):
    with pytest.raises(jp.JointPMFError, match=said):
        goodness(COMPLETE, **options)


def test_another_kind_of_frame_is_refused():
    with pytest.raises(jp.JointPMFError, match="backend"):
        goodness(COMPLETE).to_frame("numpy")
