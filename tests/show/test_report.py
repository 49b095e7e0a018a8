"""The report: what it says is true of the fit and the data, and any name is only text in it."""

import io
import itertools
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.command.arguments import ranks_of
from jointpmf.command.main import main
from jointpmf.command.report import findings_in
from jointpmf.fit.solution import Restart, Solution, Start
from jointpmf.judge.bootstrap import BootstrapTest
from jointpmf.judge.curve import RankCurve, RankScore
from jointpmf.judge.information import component_information
from jointpmf.model_file import read_model_file, write_model
from jointpmf.show.report.comparison import Budget, compared_pairs, comparison
from jointpmf.show.report.components import telling_levels
from jointpmf.show.report.findings import findings_of
from jointpmf.show.report.page import report_bytes
from jointpmf.show.report.profile_plot import chosen_lanes, positions
from jointpmf.show.report.subject import Subject
from jointpmf.show.report.tally import Tally
from jointpmf.solvers.loop import Status, Step
from support.browser import (
    AXE,
    DESKTOP,
    HOSTILE,
    LEFT,
    PHONE,
    SCHEMES,
    faults_for_axe,
    skip_or_fail,
)
from support.traits import planted, pmf_of

DEVICES = {"desktop": DESKTOP, "phone": PHONE}


class _Reader(HTMLParser):
    """What a page shows, and which elements it is made of; every element must be closed."""

    def __init__(self, content):
        super().__init__()
        self.open, self.tags, self.parts = [], [], []
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attributes)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in ("td", "th", "p", "li", "h1", "h2", "h3", "span", "div"):
            self.parts.append(" ")

    def handle_data(self, data):
        if not {"style", "title"} & set(self.open):
            self.parts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.parts).split())


def shown(content):
    return _Reader(content)


@pytest.fixture(scope="module")
def survey(fit, table, tmp_path_factory):
    """Return the file of a report that none of the tests changes."""
    path = tmp_path_factory.mktemp("survey") / "fit.html"
    fit.report(path, table)
    return path


@pytest.fixture
def written(tmp_path):
    def write(solution, *given, **more):
        solution.report(tmp_path / "fit.html", *given, **more)
        return shown((tmp_path / "fit.html").read_text())

    return write


def solution_of(pmf, status=Status.CONVERGED, history=(), **rest):
    return Solution(pmf, status, 1.0, list(history), **rest)


def scores(*points):
    ranks = [RankScore(rank, s, e, s, 10 * rank, 0.1) for rank, s, e in points]
    return RankCurve("validation", tuple(ranks), np.zeros((len(points), 1)))


def random(sizes, rank=2):
    return jp.random_pmf(jp.Domain.of_sizes(sizes), rank, 0)


class TestWhatItSays:
    def test_the_survey(self, fit, table, written):
        text = written(fit, table, scores((3, -15.1, 0.1), (4, -15.0, 0.1), (5, -15.2, 0.1))).text
        assert "944 rows of 10 variables: 9,204 cells are observed, and 236 are missing" in text
        shares = [100 * (table["vote"] == level).sum() / 708 for level in ("Clinton", "Dole")]
        bars = "vote 25.0 % missingClinton {:.1f} % Dole {:.1f} %".format(*shares)
        assert bars in text
        assert "Yes. The objective stopped improving." in text
        assert str(jp.identifiability(fit.pmf.domain, 4, order=3)) in text
        assert "all 45 pairs of variables" in text
        assert "Maximum likelihood" in text
        assert f"Starts {fit.n_starts} Starts that found it {fit.n_agreed}" in text
        assert "The best is rank 4." in text
        for f, weight in enumerate(fit.pmf.weights):
            assert f"Component {f} {100 * weight:.1f} %, about {round(944 * weight)} rows" in text

    def test_without_rows_it_says_so(self, written):
        text = written(solution_of(random([3, 3, 3]))).text
        assert "The rows were not given to this report" in text
        assert "neither marginals nor rows" in text
        assert "Nothing to watch out for" in text
        assert "The rows were not given, so they were not checked" in text

    def test_a_fit_to_marginals(self, written):
        truth = random([3, 4, 2])
        fit = jp.fit_marginals(truth.marginals(order=3), 2, random_state=0)
        text = written(fit).text
        assert "Least squares on marginals" in text
        assert "The one observed marginal, a table, beside the model's. The distance" in text
        assert str(jp.identifiability(truth.marginals(order=3), 2)) in text

    def test_what_a_file_tells_of_the_fit(self):
        about = {"method": "likelihood", "loss": "likelihood", "criterion": "abic", "starts": "12"}
        found = findings_of(Subject(random([2, 3]), about | {"agreed": "5"}))
        text = shown(report_bytes(found, "x").decode()).text
        assert "Rank chosen by aBIC Starts 12 Starts that found it 5" in text
        assert "Loss" not in text  # the method says so
        found = findings_of(Subject(random([2, 3]), {"method": "marginals", "loss": "squares"}))
        assert "Loss squares" in shown(report_bytes(found, "x").decode()).text

    def test_the_page_is_one_file_that_runs_and_fetches_nothing(self, survey):
        content = survey.read_text()
        assert (
            "Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-" in content
        )
        assert not {"script", "link", "img", "iframe"} & set(shown(content).tags)
        assert "http:" not in content
        assert "https:" not in content
        assert "url(" not in content
        assert str(survey.parent) not in content
        assert len(content) < 100_000

    def test_the_same_fit_gives_the_same_bytes(self, fit, table, survey, tmp_path):
        fit.report(tmp_path / "fit.html", table)
        assert (tmp_path / "fit.html").read_bytes() == survey.read_bytes()


class TestNumbers:
    """What is counted, against the plainest way to count it."""

    @pytest.fixture
    def rows(self):
        pmf = random([3, 4, 2])
        array = pmf.sample(400, random_state=1, backend="codes").astype(int)
        array[np.random.default_rng(2).random(array.shape) < 0.3] = jp.MISSING
        return pmf, jp.Codes(pmf.domain, array)

    def test_parts_add_up(self, rows):
        pmf, codes = rows
        pairs = compared_pairs(pmf.domain)
        whole, parts = Tally(pmf, pairs), Tally(pmf, pairs, max_numbers=30)
        whole.add(codes)
        for begin in range(0, 400, 70):
            parts.add(jp.Codes(pmf.domain, codes.array[begin : begin + 70]))
        for tally in (whole, parts):
            assert tally.n_rows == 400
            assert tally.n_observed == (codes.array >= 0).sum()
            np.testing.assert_allclose(tally.shares_missing, (codes.array < 0).mean(axis=0))
            assert tally.log_likelihood == pytest.approx(pmf.log_probability(codes).sum())
            told = jp.summary(pmf, codes)
            assert tally.sharpness == pytest.approx(told.relative_entropy)
            np.testing.assert_allclose(tally.components.by_posterior, told.sizes.by_posterior[0])
            np.testing.assert_allclose(tally.components.by_component, told.sizes.by_component[0])
        one, other = (comparison(Subject(pmf, {}), tally) for tally in (whole, parts))
        assert one == other

    def test_the_typical_probability_beats_frequencies_only_with_structure(self):
        sure = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [0.5, 0.5], [np.eye(2)] * 2)
        tally = Tally(sure)
        tally.add(jp.Codes(sure.domain, np.array([[0, 0], [1, 1]])))
        by_model, alone = tally.typical_probability
        assert (by_model, alone) == (pytest.approx(math.sqrt(0.5)), pytest.approx(0.5))
        tally.add(jp.Codes(sure.domain, np.array([[0, 1]])))
        assert tally.typical_probability is None
        assert (tally.n_impossible, tally.first_impossible) == (1, 2)

    def test_distances_are_those_of_the_tables(self, rows):
        pmf, codes = rows
        tally = Tally(pmf, compared_pairs(pmf.domain))
        tally.add(codes)
        found = comparison(Subject(pmf, {}), tally)
        observed = jp.MarginalSet.from_table(codes, 2)
        assert found.n_all == len(found.misfits) == 3
        beyond = [misfit.beyond_chance for misfit in found.misfits]
        assert beyond == sorted(beyond, reverse=True)
        for misfit in found.misfits:
            marginal = next(m for m in observed if m.names == misfit.names)
            apart = np.asarray(marginal.table) - pmf.marginal(misfit.names).table()
            assert misfit.distance == pytest.approx(np.abs(apart).sum() / 2)
            assert misfit.n_obs == marginal.n_obs
            assert abs(misfit.observed - misfit.fitted) == pytest.approx(np.abs(apart).max())
            cell = tuple(pmf.domain[n].code(level) for n, level in zip(*misfit[:5:4], strict=True))
            assert misfit.observed == pytest.approx(np.asarray(marginal.table)[cell])

    def test_chance_is_what_draws_from_the_model_have(self):
        pmf = random([5, 4])
        distances = []
        for seed in range(100):
            drawn = pmf.sample(80, random_state=seed, backend="codes")
            tally = Tally(pmf, [("x0", "x1")])
            tally.add(jp.Codes(pmf.domain, drawn))
            (misfit,) = comparison(Subject(pmf, {}), tally).misfits
            distances.append(misfit.distance)
        assert misfit.chance == pytest.approx(np.mean(distances), rel=0.1)
        assert not misfit.is_clear

    def test_many_or_large_marginals_are_drawn_from(self):
        few, small = Budget(marginals=10), Budget(marginals=10, cells=9)
        domain = jp.Domain.of_sizes([2] * 30)
        pairs = compared_pairs(domain, few)
        assert len(set(pairs)) == 10
        assert all(domain.index(a) < domain.index(b) for a, b in pairs)
        assert pairs == compared_pairs(domain, few)
        assert compared_pairs(jp.Domain.of_sizes([3, 3, 4]), small) == [("x0", "x1")]
        pmf = random([2, 2, 2, 2])
        found = comparison(Subject(pmf, {}, marginals=pmf.marginals(order=2)), None, small)
        assert (len(found.misfits), found.n_all) == (2, 6)

    def test_a_component_is_told_by_what_is_likely_and_more_likely_there(self):
        domain = jp.Domain(
            [
                jp.Variable("vote", ("a", "b", "c")),
                jp.Variable("age", (1, 2, 3, 4)),
                jp.Variable("noise", (0, 1)),
            ]
        )
        vote = np.array([[0.95, 0.2], [0.05, 0.2], [0.0, 0.6]])
        age = np.array([[0.1, 0.4], [0.1, 0.4], [0.4, 0.1], [0.4, 0.1]])
        pmf = jp.JointPMF(domain, [0.5, 0.5], [vote, age, np.full((2, 2), 0.5)])
        first, second = telling_levels(pmf, [0, 1], 5)
        assert [(one.name, one.levels) for one in first] == [("vote", ("a",)), ("age", ("3", "4"))]
        assert [(one.name, one.levels) for one in second] == [("vote", ("c",)), ("age", ("1", "2"))]
        assert (first[1].within, first[1].overall) == (pytest.approx(0.8), pytest.approx(0.5))
        assert telling_levels(pmf, [0], 1) == [first[:1]]


def quality_in(page):
    """Return the section on how well the model fits, as text."""
    return page.text.split("How well does it fit?")[1].split("The variables")[0]


class TestGoodness:
    def test_the_statistics_are_those_of_the_summary(self, fit, table, written):
        text = quality_in(written(fit, table))
        told = jp.summary(fit, table).goodness_of_fit()
        assert f"G² {told.g_squared:,.2f} X² " in text
        assert f"Degrees of freedom {told.df:,} " in text
        assert "distribution does not hold: summary(…).goodness_of_fit(n_bootstrap=99)" in text
        assert "Cells are missing in 2 patterns" in text
        assert "about as large as the degrees" not in text

    def test_with_many_rows_per_cell_there_are_p_values(self, written):
        domain = jp.Domain.of_sizes([2] * 4)
        truth = jp.random_pmf(domain, 2, 0)
        codes = jp.Codes(domain, truth.sample(3000, random_state=0, backend="codes"))
        fit = jp.fit_rows(codes, 2, random_state=0)
        told = jp.summary(fit, codes).goodness_of_fit()
        text = quality_in(written(fit, codes))
        for name, statistic, p_value in (
            ("G²", told.g_squared, told.g_p_value),
            ("X²", told.x_squared, told.x_p_value),
        ):
            assert f"{name} {statistic:,.2f} (p = {p_value:.3g})" in text
        assert f"Degrees of freedom {told.df} G² and X² compare" in text
        assert "both are about as large as the degrees of freedom" in text

    def test_pairs_are_ordered_by_residuals_as_in_the_summary(self, fit, table, written):
        told = jp.summary(fit, table).goodness_of_fit()
        names = told.domain.names
        expected = [
            (names[first], names[second], f"{residual:.2f}")
            for first, second, residual in zip(
                told.pairs.first, told.pairs.second, told.pairs.residual, strict=True
            )
        ][:10]
        text = quality_in(written(fit, table))
        assert "χ²/df, the bivariate residual, is about one where the model holds" in text
        found = [
            re.search(rf"{re.escape(f'{a}, {b}{a} = ')}[^%]* {re.escape(residual)} [0-9.]+ %", text)
            for a, b, residual in expected
        ]
        assert all(found)
        assert [one.start() for one in found] == sorted(one.start() for one in found)

    def test_residuals_are_those_of_goodness_of_fit(self):
        pmf = random([3, 4, 1, 2])
        array = pmf.sample(300, random_state=1, backend="codes").astype(int)
        array[np.random.default_rng(2).random(array.shape) < 0.3] = jp.MISSING
        codes, weights = jp.Codes(pmf.domain, array), np.random.default_rng(3).random(300)
        for own in (None, weights):
            tally = Tally.of_table(pmf, codes, own, counts_pairs=True)
            found = comparison(Subject(pmf, {}), tally).misfits
            frame = jp.summary(pmf, codes, own).goodness_of_fit().to_frame()
            told = [(a, b) for a, b in zip(frame["first"], frame["second"], strict=True)]
            assert [one.names for one in found[:3]] == told
            for one, residual in zip(found, frame["residual"], strict=False):
                assert one.residual == pytest.approx(residual)
            assert {one.residual for one in found[3:]} == {None}  # a variable of one level

    def test_parts_of_a_table_have_the_statistics_of_the_whole(self):
        pmf = random([3, 2, 2])
        codes = jp.Codes(pmf.domain, pmf.sample(200, random_state=1, backend="codes"))
        whole = jp.summary(pmf, codes).goodness_of_fit()
        for most_cells in (3 * 12, 2**22):  # there are twelve distinct rows of three cells
            tally = Tally(pmf, most_cells=most_cells)
            for begin in range(0, 200, 30):
                tally.add(jp.Codes(pmf.domain, codes.array[begin : begin + 30]))
            found = tally.goodness()
            assert (found.n_rows, found.df) == (whole.n_rows, whole.df)
            assert found.g_squared == pytest.approx(whole.g_squared)
            assert found.x_squared == pytest.approx(whole.x_squared)
            assert len(found.pairs) == 0
        tally = Tally(pmf, most_cells=20)
        for part in (codes, codes):
            tally.add(part)
        assert tally.goodness() is None

    def test_a_table_of_too_many_rows_has_none(self, fit, table):
        tally = Tally(fit.pmf, compared_pairs(fit.pmf.domain), most_cells=1000)
        tally.add(jp.encode(table, fit.pmf.domain))
        found = findings_of(Subject.of_solution(fit), tally)
        text = quality_in(shown(report_bytes(found, "x").decode()))
        assert "G² and X² are not told: the table has too many distinct rows" in text
        assert "χ²/df" in text  # of pairs, which are counted all the same

    @pytest.mark.parametrize(
        ("rest", "said"),
        [
            ({"n_averaged": 24}, "G² and X² are not told of an average of 24 fits"),
            ({"status": Status.VALIDATED}, "fitted to all rows by maximum likelihood"),
            ({"marginals": random([2, 3, 2]).marginals(order=2)}, "by maximum likelihood"),
        ],
    )
    def test_where_they_make_no_sense_it_says_so(self, written, rest, said):
        pmf = random([2, 3, 2])
        page = written(solution_of(pmf, **rest), pmf.sample(50, random_state=0))
        text = quality_in(page)
        assert said in text
        assert "Degrees of freedom" not in text

    def test_of_other_rows_than_were_fitted_there_are_none(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        pmf = random([2, 3])
        write_model("m.safetensors", pmf.domain, pmf.weights, pmf.factors, {"rows": "70"})
        subject = Subject.of_file(read_model_file("m.safetensors"))
        for n_rows, is_told in ((70, True), (71, False)):
            pmf.sample(n_rows, random_state=0).write_csv("t.csv")
            found = findings_in(subject, "t.csv", [], "error", None, 0, False)
            assert (found.goodness is not None) == is_told

    def test_impossible_rows_are_infinitely_far(self, written):
        sure = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [0.5, 0.5], [np.eye(2)] * 2)
        codes = jp.Codes(sure.domain, [[0, 0], [1, 1], [0, 1]])
        text = quality_in(written(solution_of(sure), codes))
        assert "G² ∞ X² ∞ Degrees of freedom −2" in text
        assert "Some rows have probability zero under the model." in text
        assert re.search(r"x0, x1x0 = 0, x1 = 1 ∞ ", text)


def numbers_in(page):
    """Return the sections on the components, as text."""
    return page.text.split(" The components ", 1)[1].split("How well does it fit?")[0]


class TestProfiles:
    def test_criteria_and_sizes_are_those_of_the_summary(self, fit, table, written):
        page = written(fit, table)
        text, told = quality_in(page), jp.summary(fit, table)
        assert f"Log-likelihood −{-told.log_likelihood:,.2f}" in text
        assert f"Free parameters {told.n_parameters:,}" in text
        for label, criterion in told.criteria.items():
            assert f"{label} {criterion:,.2f}" in text
        assert f"Relative entropy (entropy R²) {told.relative_entropy:.3f}" in text
        text = numbers_in(page)
        ways = told.pmf.weights, told.sizes.by_posterior[0], told.sizes.by_component[0]
        for f in range(4):
            shares = " ".join(f"{100 * way[f]:.1f} %" for way in ways)
            assert f" {f} {shares} " in text

    def test_the_whole_profile_is_in_the_table(self, fit, table, written):
        page = written(fit, table)
        text = numbers_in(page)
        for variable, factor in zip(fit.pmf.domain, fit.pmf.factors, strict=True):
            for level, row in zip(variable.levels, factor, strict=True):
                shares = " ".join(f"{100 * p:.1f} %" for p in row)
                assert f"{variable.name} = {level} {shares}" in text
        assert page.tags.count("details") == 1
        assert page.tags.count("figure") == 2 * len(fit.pmf.domain) + 1  # two each, and the plot

    def test_bars_are_the_profiles(self, tmp_path):
        pmf = random([2, 3])
        solution_of(pmf).report(tmp_path / "fit.html")
        content = (tmp_path / "fit.html").read_text()
        drawn = [
            [float(width) for width in re.findall(r'<rect x="[^"]*" width="([^"]*)"', bar)]
            for bar in re.findall(r'<svg class="stacked".*?</svg>', content)
        ]
        expected = [
            column
            for factor in pmf.factors
            for column in np.column_stack([factor @ pmf.weights, factor]).T
        ]
        assert len(drawn) == len(expected) == 6
        for widths, shares in zip(drawn, expected, strict=True):
            np.testing.assert_allclose(widths, 100 * shares, rtol=1e-4)
        assert '<details open="">' in content  # short enough to be read at once

    def test_names_stand_for_numbers(self, written):
        names = ["<b>calm", "keen"]
        page = written(solution_of(random([2, 3]).reordered(names=names)))
        assert "<b>calm" in page.text
        assert "Component 0" not in page.text
        assert "b" in page.tags  # of the tiles, and not of the name
        assert "component" in numbers_in(page)

    def test_levels_are_named_once_if_all_variables_share_them(self, tmp_path):
        for sizes, n_lists in ([2, 2, 2], 1), ([2, 3, 2], 3):
            solution_of(random(sizes)).report(tmp_path / "fit.html")
            assert (tmp_path / "fit.html").read_text().count('<ul class="levels">') == n_lists

    def test_without_rows_there_are_weights_only(self, written):
        page = written(solution_of(random([2, 3])))
        assert "AIC" not in page.text
        assert "By posterior" not in page.text

    def test_an_impossible_row_has_no_criteria(self, written):
        sure = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [0.5, 0.5], [np.eye(2), np.eye(2)])
        page = written(solution_of(sure), [[0, 0], [0, 1]])
        text = numbers_in(page)
        assert "AIC" not in page.text
        assert "0 50.0 % 100.0 % 100.0 %" in text  # of the possible row

    def test_an_average_has_no_profiles(self, written):
        text = numbers_in(written(solution_of(random([2, 3], 4), n_averaged=2)))
        assert "Not shown for an average of 2 fits" in text

    def test_one_component(self, written):
        page = written(solution_of(random([2, 3], 1)), [[0, 1], [1, 2]])
        text = numbers_in(page)
        assert "Relative entropy" not in page.text
        assert " 0 100.0 % 100.0 % 100.0 % " in text

    def test_of_a_large_model_a_part_is_shown_and_said(self, written, tmp_path):
        page = written(solution_of(random([20] * 300, 20)))
        text = numbers_in(page)
        assert page.tags.count("figure") < 40 + 41  # distributions of forty, profiles of fewer
        assert "variables that tell most and the 12 largest of 20 components" in text
        assert "The first 50 variables; summary(…).to_frame() has all." in text
        assert max(path.stat().st_size for path in tmp_path.iterdir()) < 5e6


def warnings(pmf, table=None, curve=None, subject=None, **about):
    tally = None
    if table is not None:
        tally = Tally(pmf, compared_pairs(pmf.domain))
        tally.add(jp.encode(table, pmf.domain))
    return findings_of(subject or Subject(pmf, about), tally, curve).warnings


class TestWarnings:
    @pytest.mark.parametrize(
        ("status", "said"),
        [
            (Status.MAX_ITER, "did not converge"),
            (Status.STOPPED, "was stopped before it converged"),
            (Status.ONE_PASS, "seen only once"),
        ],
    )
    def test_a_fit_that_is_not_done(self, status, said):
        pmf = random([4] * 4)
        assert said in warnings(pmf, subject=Subject(pmf, {}, status))[0]
        assert warnings(pmf, subject=Subject(pmf, {}, Status.CONVERGED)) == []

    def test_a_model_that_is_not_unique(self):
        pmf = random([3, 3, 3], 3)
        known = Subject(pmf, {"method": "marginals", "order": "2"})
        assert "not unique" in warnings(pmf, subject=known)[0]
        large = random([5] * 400, 3)
        told = Subject(large, {"method": "marginals"}, Status.NOT_UNIQUE)
        assert "not unique" in warnings(large, subject=told)[0]
        assert "Only combinations of more variables" in warnings(random([2] * 4, 9))[0]

    @pytest.mark.parametrize("sizes", [[3, 3], [2, 2, 2]])
    def test_rows_of_few_variables_hold_nothing_beyond_their_tables(self, written, sizes):
        page = written(solution_of(random(sizes, 4)))
        assert "others of this rank fit the same rows just as well" in page.text
        assert "No. From" in page.text
        assert "more variables" not in page.text
        assert "Not certainly" not in page.text

    def test_marginals_that_contradict_each_other(self):
        domain = jp.Domain.of_sizes([2, 2, 2])
        tables = [
            jp.Marginal(("x0", "x1"), [[0.3, 0.2], [0.1, 0.4]]),
            jp.Marginal(("x1", "x2"), [[0.3, 0.3], [0.2, 0.2]]),
        ]
        subject = Subject(random([2, 2, 2], 1), {}, marginals=jp.MarginalSet(domain, tables))
        said = [text for text in warnings(subject.pmf, subject=subject) if "contradict" in text]
        assert len(said) == 1
        assert "x0, x1 gives x1=1 probability 0.6, x1, x2 gives it 0.4" in said[0]

    def test_components_and_levels_that_hardly_are(self):
        domain = jp.Domain.of_sizes([3, 3, 3])
        column = np.array([[0.5, 0.4], [0.5, 0.6], [0.0, 0.0]])
        pmf = jp.JointPMF(domain, [0.999, 0.001], [column] * 3)
        text = " ".join(warnings(pmf))
        assert "hardly any rows" in text
        assert "component 1 (0.1 %)" in text
        assert "few (0.1 %)" in " ".join(warnings(pmf.reordered(names=["many", "few"])))
        assert (
            "According to the model, 3 levels cannot happen: “x0” = “2”, “x1” = “2”, “x2” = “2”."
            in text
        )
        rows = np.zeros((500, 3), int)
        rows[7] = 2
        text = " ".join(warnings(pmf, rows))
        assert "fewer than 10 rows each" in text
        assert "1 row cannot happen according to the model (the first is row 7" in text

    def test_holes(self):
        pmf = random([2, 2, 2, 1], 1)
        rows = np.array([[0, -1, -1, 0], [1, -1, -1, 0], [0, 1, -1, 0], [-1, -1, -1, -1]] * 50)
        text = " ".join(warnings(pmf, rows, rows="7"))
        assert "50 rows of 200 hold no observed cell" in text
        assert "No cell is observed of 1 variable: “x2”." in text
        assert "More cells are missing than observed of 1 variable: “x1” (75%)." in text
        assert "1 variable has a single level, which tells the model nothing: “x3”." in text
        assert "fitted to 7 rows, and this table has 200" in text

    def test_the_rows_that_were_fitted_are_not_those_of_another_table(self):
        pmf = jp.JointPMF(jp.Domain.of_sizes([2] * 4), [0.98, 0.02], [np.full((2, 2), 0.5)] * 4)
        few = np.zeros((20, 4), int)
        tally = Tally(pmf)
        tally.add(jp.encode(few, pmf.domain))
        found = findings_of(Subject(pmf, {"rows": "100000"}), tally)
        assert found.n_fitted == 100_000
        text = " ".join(found.warnings)
        assert "rows for each of the" not in text
        assert "too few to tell much" not in text
        assert findings_of(Subject(pmf, {}), tally).n_fitted == 20
        assert findings_of(Subject(pmf, {"rows": "20"}), tally).n_fitted == 20

    def test_rows_without_a_cell_are_not_fitted(self, written):
        rows = np.full((100, 2), -1)
        rows[:30] = np.arange(60).reshape(30, 2) % 2
        pmf = random([2, 2], 1)
        assert "fitted to 30 rows" in written(solution_of(pmf), rows).text
        said = " ".join(warnings(pmf, rows, rows="100"))
        assert "only 15 rows for each of the 2" not in said
        assert "70 rows of 100 hold no observed cell" in said
        found = warnings(random([2, 2, 2], 3), np.hstack([rows, rows[:, :1]]), rows="100")
        assert "only 2.7 rows for each of the 11 numbers" in " ".join(found)

    def test_numbers_in_a_file_that_no_fit_has_written(self):
        endless = "9" * 5000
        pmf = random([3, 3, 3])
        found = findings_of(
            Subject(pmf, {"method": "marginals", "rows": endless, "order": endless})
        )
        assert (found.n_fitted, found.identified) == (None, None)

    def test_few_rows_and_a_bad_fit(self):
        pmf = random([3, 3], 1)
        rows = np.array([[0, 0], [1, 1], [2, 2]] * 5)
        text = " ".join(warnings(pmf, rows))
        assert "only 3.8 rows for each of the 4 numbers" in text
        assert "1 marginal of 1 compared differs" in text
        held = Subject(pmf, {}, Status.VALIDATED)
        tally = Tally(pmf)
        tally.add(jp.encode(rows, pmf.domain))
        assert not [text for text in findings_of(held, tally).warnings if "numbers" in text]

    def test_the_rank_curve(self):
        pmf = random([4] * 4)
        best = scores((1, -9.0, 0.1), (2, -5.05, 0.1), (3, -5.0, 0.1), (4, -5.5, 0.1))
        assert warnings(pmf, curve=best) == []
        assert "rank 3 does better" in warnings(random([4] * 4, 4), curve=best)[0]
        rising = scores((2, -5.0, 0.1), (3, -4.0, 0.1))
        said = " ".join(warnings(pmf, curve=rising))
        assert "is the largest that was tried" in said
        assert "rank 3 does better" in said

    def test_the_box_is_a_short_list_however_many_are_concerned(self, written):
        domain = jp.Domain([jp.Variable("a long name " * 6 + str(n), ("a",)) for n in range(80)])
        pmf = jp.random_pmf(domain, 1, 0)
        page = written(solution_of(pmf))
        box = page.text.split("What to watch out for")[1].split("The components")[0]
        line = "80 variables have a single level, which tells the model nothing."
        assert line in box
        assert "; and 30 more" in box.split("Which?")[1]  # on a click
        assert page.tags.count("summary") == 2  # that, and the table of profiles
        said = warnings(pmf)
        assert max(map(len, said)) < 400

    def test_starts_that_failed(self):
        restarts = (
            Restart("a", 1.0, Status.CONVERGED),
            Restart("b", math.inf, None, error="no <b>"),
        )
        pmf = random([4] * 4)
        said = warnings(pmf, subject=Subject(pmf, {}, restarts=restarts))
        assert said == ["1 start of 2 failed: no <b>."]


class TestAverages:
    """An average has the components of all its fits: they are not starts, nor one rank."""

    @pytest.fixture
    def rows(self):
        return random([4] * 4).sample(300, random_state=0)

    def test_of_restarts(self, rows, written):
        fit = jp.fit_rows(rows, 2, search=jp.Search(n_average=3), random_state=0)
        assert (fit.n_averaged, fit.pmf.rank) == (3, 6)
        text = written(fit, rows, scores((2, -5.0, 0.1), (6, -9.0, 0.1), (7, -9.0, 0.1))).text
        assert "The model is an average of 3 fits, whose components stand side by side." in text
        assert "reached the lowest objective" not in text
        assert "not judged for an average of 3 fits" in text
        assert "identifiable" not in text
        assert "This model is an average of 3 fits." in text
        assert "rank 2 does better" not in text
        assert "penalty" not in text

    def test_the_rows_are_those_for_one_fit(self):
        domain = jp.Domain.of_sizes([3] * 4)
        pmf = jp.average([jp.random_pmf(domain, 2, seed) for seed in range(4)])
        about = {"rows": "100"}
        said = " ".join(findings_of(Subject(pmf, about, n_averaged=4)).warnings)
        assert "only 5.9 rows" not in said
        assert "rows for each" not in said
        about["rows"] = "34"
        assert "only 2 rows for each of the 17" in " ".join(
            findings_of(Subject(pmf, about, n_averaged=4)).warnings
        )

    def test_of_what_was_tried(self, rows, written):
        fit = jp.fit_rows(rows[:80], random_state=0)
        rest = len(fit.restarts) - fit.n_averaged
        text = written(fit, rows).text
        said = f"average of {fit.n_averaged} fits, whose components stand side by side; {rest}"
        assert said in text
        assert "starts;" not in text


class TestPlot:
    """The profile plot, against the plainest way to compute where its points lie."""

    @pytest.fixture
    def pmf(self):
        variables = [
            jp.Variable("yes", ("no", "yes")),
            jp.Variable("score", (1, 2, 3, 4)),
            jp.Variable("place", ("a", "b", "c")),
            jp.Variable("same", ("only",)),
        ]
        return jp.random_pmf(jp.Domain(variables), 3, 0)

    def test_points_are_shares_or_mean_positions(self, pmf):
        lanes = chosen_lanes(pmf, np.arange(3))
        names = [(lane.name, re.sub("<.*?>", "", lane.what)) for lane in lanes]
        levels = [("place", level) for level in "abc"]
        assert names == [("yes", "yes"), ("score", "1 to 4"), *levels]
        mean = (pmf.factors[1] * np.array([0, 1, 2, 3])[:, None]).sum(axis=0) / 3
        expected = [pmf.factors[0][1], mean, *pmf.factors[2]]
        np.testing.assert_allclose(positions(pmf, lanes), expected)

    def test_they_are_drawn_there(self, pmf, tmp_path):
        solution_of(pmf).report(tmp_path / "fit.html")
        content = (tmp_path / "fit.html").read_text()
        lanes = chosen_lanes(pmf, np.arange(3))
        for f in range(3):
            (path,) = re.findall(rf'<path class="course c{f}" d="M(.*?)"', content)
            found = np.array([corner.split() for corner in path.split("L")], float)
            np.testing.assert_allclose(found[:, 0], 100 * positions(pmf, lanes)[:, f], rtol=6e-3)
            np.testing.assert_allclose(found[:, 1], np.arange(len(lanes)) + 0.5)

    def test_of_many_the_telling_ones_and_the_largest_are_drawn(self, written):
        pmf = random([2] * 100, 12)
        lanes = chosen_lanes(pmf, np.arange(8))
        assert len(lanes) == 60
        told = component_information(pmf)
        assert {lane.variable for lane in lanes} == set(np.argsort(-told)[:60].tolist())
        text = written(solution_of(pmf)).text
        said = "the 60 of 100 variables that tell most and the 8 largest of 12 components"
        assert said in text


class TestJson:
    """JSON holds what the page does."""

    @pytest.fixture
    def facts(self, fit, table, sure, tmp_path):
        curve = scores((3, -15.1, 0.1), (4, -15.0, math.nan))
        fit.report(tmp_path / "r.json", table, curve, uncertainty=sure, title="A & B")
        return json.loads((tmp_path / "r.json").read_text())

    def test_the_numbers_are_those_of_the_model(self, facts, fit, table):
        told = jp.summary(fit, table)
        assert (facts["format"], facts["version"], facts["title"]) == (
            "jointpmf report",
            1,
            "A & B",
        )
        assert facts["likelihood"]["log_likelihood"] == pytest.approx(told.log_likelihood)
        assert list(facts["likelihood"]["criteria"]) == ["aic", "bic", "abic", "caic"]
        assert facts["rows"]["observed_cells"] == 9204
        assert [one["rank"] for one in facts["ranks"]["scores"]] == [3, 4]
        assert facts["ranks"]["scores"][1]["standard_error"] is None
        for f, component in enumerate(facts["components"]):
            assert component["weight"] == fit.pmf.weights[f]
            assert component["low"] <= component["weight"] <= component["high"]
        for variable, factor in zip(facts["variables"], fit.pmf.factors, strict=True):
            np.testing.assert_array_equal(variable["profiles"], factor)
            assert sum(variable["observed"]) == pytest.approx(1)
            low, high = (np.array(variable[f"profiles_{end}"]) for end in ("low", "high"))
            assert (low <= high).all()

    def test_names_are_text(self, tmp_path):
        pmf = hostile_pmf()
        solution_of(pmf).report(tmp_path / "r.json", title="<b>|*x*")
        facts = json.loads((tmp_path / "r.json").read_text())
        assert facts["title"] == "<b>|*x*"
        assert [one["name"] for one in facts["variables"]] == [*HOSTILE, "?"]

    def test_traits_and_averages(self, tmp_path):
        solution_of(pmf_of(planted())).report(tmp_path / "t.json")
        facts = json.loads((tmp_path / "t.json").read_text())
        assert facts["components"] is None
        assert len(facts["traits"]["loadings"][0]["loadings"]) == len(facts["traits"]["shares"])
        solution_of(random([2, 3], 4), n_averaged=2).report(tmp_path / "a.json")
        facts = json.loads((tmp_path / "a.json").read_text())
        assert (facts["components"], facts["model"]["parameters"]) == (None, None)
        assert facts["variables"][0]["profiles"] is None

    def test_what_is_not_finite_is_null(self, tmp_path):
        sure = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [0.5, 0.5], [np.eye(2)] * 2)
        rows = jp.Codes(sure.domain, [[0, 0], [1, 1], [0, 1]])
        solution_of(sure).report(tmp_path / "r.json", rows)
        facts = json.loads((tmp_path / "r.json").read_text())
        assert facts["goodness"]["g_squared"] is None
        assert facts["likelihood"]["log_likelihood"] is None


class TestWeights:
    def test_a_weighted_fit_is_compared_with_weighted_rows(self, written):
        rows = np.array([[0, 0], [1, 1], [0, 1], [1, 0], [-1, -1]] * 40)
        weights = np.array([5.0, 5.0, 0.5, 0.5, 2.0] * 40)
        fit = jp.fit_rows(rows, 2, sample_weight=weights, missing_code=-1, random_state=0)
        plain = written(fit, rows).text
        assert "differs from the model by more than chance explains" in plain
        assert "By their weights" not in plain
        text = written(fit, rows, sample_weight=weights).text
        assert "than chance explains" not in text
        assert "By their weights the rows count for 440." in text
        assert "200 rows of 2 variables: 320 cells are observed" in text
        assert "fitted to 440 weighted rows. 440 weighted rows 20.0 % cells missing" in text

    def test_weights_count_as_repeated_rows_do(self):
        pmf = random([3, 4, 2])
        array = pmf.sample(60, random_state=1, backend="codes").astype(int)
        array[np.random.default_rng(2).random(array.shape) < 0.3] = jp.MISSING
        weights = np.random.default_rng(3).integers(0, 4, 60)
        pairs = compared_pairs(pmf.domain)
        weighted, repeated = Tally(pmf, pairs), Tally(pmf, pairs)
        weighted.add(jp.Codes(pmf.domain, array), weights)
        repeated.add(jp.Codes(pmf.domain, np.repeat(array, weights, axis=0)))
        assert weighted.weight == repeated.weight
        assert weighted.log_likelihood == pytest.approx(repeated.log_likelihood)
        assert weighted.sharpness == pytest.approx(repeated.sharpness)
        np.testing.assert_allclose(
            weighted.components.by_posterior, repeated.components.by_posterior
        )
        np.testing.assert_allclose(
            weighted.components.by_component, repeated.components.by_component
        )
        assert weighted.typical_probability == pytest.approx(repeated.typical_probability)
        one, other = (comparison(Subject(pmf, {}), tally) for tally in (weighted, repeated))
        assert [m[:4] for m in one.misfits] == [m[:4] for m in other.misfits]

    def test_a_row_that_does_not_count_may_be_impossible(self):
        sure = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [0.5, 0.5], [np.eye(2)] * 2)
        tally = Tally(sure)
        tally.add(jp.Codes(sure.domain, np.array([[0, 1], [1, 1]])), [0.0, 1.0])
        assert tally.n_impossible == 0
        assert tally.typical_probability[0] == pytest.approx(math.sqrt(0.5))


class TestEdges:
    @pytest.mark.parametrize(
        ("sizes", "rank"), [([1], 1), ([3], 1), ([3], 2), ([1, 1], 2), ([2, 5], 1), ([2] * 60, 3)]
    )
    def test_small_models(self, written, sizes, rank):
        pmf = random(sizes, rank)
        page = written(solution_of(pmf), pmf.sample(9, random_state=0))
        assert f"{len(sizes)} variable" in page.text
        assert ("The only component" in page.text) == (rank == 1)

    def test_histories(self, written):
        pmf = random([3, 3])
        falling = [Step(k, 5 + 0.5**k, 0.1 * k, 0.0, 0.0) for k in range(999)]
        page = written(solution_of(pmf, history=falling))
        assert "polyline" not in page.tags  # of steps too small to see
        assert "In 998 iterations the objective went from 6 to 5." in page.text
        held = [Step(k, 5.0, 0.1, 0.0, 0.0, (k - 5.0) ** 2) for k in range(20)]
        page = written(solution_of(pmf, Status.VALIDATED, held, validation=0.0))
        assert page.tags.count("circle") == 1
        broken = [Step(k, n, 0.1, 0.0, 0.0) for k, n in enumerate([math.nan, math.inf, 1.0, 1.0])]
        assert "polyline" not in written(solution_of(pmf, history=broken)).tags
        for objective, said in ((math.nan, "–"), (math.inf, "∞"), (1.25, "1.25")):
            solution = Solution(pmf, Status.STOPPED, objective, broken, validation=objective)
            text = written(solution).text
            assert "In 3 iterations the objective went from 1 to 1." in text
            assert f"Objective {said} Objective, held out {said} Iterations 3" in text
            assert not {"nan", "inf"} & set(text.split())
        assert "course of the fit was not recorded" in written(solution_of(pmf)).text

    def test_a_large_model_takes_seconds_and_says_what_is_left_out(self, written):
        pmf = random([5] * 300, 20)
        page = written(solution_of(pmf), pmf.sample(50, random_state=0, backend="codes"))
        assert "40 of 300 variables are listed, those with most missing." in page.text
        assert "2,000 of 44,850 pairs" in page.text
        assert "This model is too large to tell." in page.text
        assert "The 12 largest are described; the other 8 have" in page.text

    def test_a_curve_with_impossible_ranks(self, written):
        curve = scores((1, -5.0, 0.1), (2, -math.inf, math.nan))
        text = written(solution_of(random([3, 3], 1)), curve=curve).text
        assert "−∞" in text
        assert "The best is rank 1." in text
        none = scores((1, -math.inf, math.nan), (2, -math.inf, math.nan))
        page = written(solution_of(random([3, 3], 1)), curve=none)
        assert "None is best: no rank has a finite score." in page.text
        assert "No rank is best: none that was tried has a finite score." in page.text
        assert not re.search("best [12]|The best is", page.text)
        assert "No rank has a finite score." in none._repr_html_()

    def test_one_of_a_thing_is_said_as_one(self, written):
        text = written(solution_of(random([3], 1)), [[0]]).text
        assert "A model of 1 variable, fitted to 1 row." in text
        assert "1 row 0.0 % cells missing 1 variable 1 component 1 to watch out for" in text
        assert "The one observed marginal, a single variable, beside the model's." in text
        pmf = random([2, 2], 1)
        said = " ".join(warnings(pmf, np.array([[0, -1], [-1, -1]]), rows="1"))
        assert "1 row of 2 holds no observed cell" in said
        assert "fitted to 1 row, and this table has 2" in said
        assert (
            "how 2 variables go together, fitted to 2 rows"
            in written(solution_of(pmf), [[0, 0], [1, 1]]).text
        )

    def test_where_nothing_can_be_compared_it_says_why(self, written):
        pmf = random([3, 3])
        apart = np.array([[0, -1], [-1, 1]])
        assert "No row observes two variables together" in written(solution_of(pmf), apart).text

        def said(cells, **fields):
            budget = Budget(cells=cells)
            tally = None
            if not fields:
                tally = Tally(pmf, compared_pairs(pmf.domain, budget))
                tally.add(jp.Codes(pmf.domain, np.array([[0, 1], [1, 1]])))
            found = findings_of(Subject(pmf, {}, **fields), tally, budget=budget)
            return shown(report_bytes(found, "title").decode()).text

        assert "The observed marginals (all 2 single variables)" in said(8)
        for text in (said(2), said(2, marginals=pmf.marginals(order=2))):
            assert "too many cells to be compared" in text
            assert "neither marginals nor rows" not in text

    def test_objectives_that_are_zero_to_rounding_are_alike(self, written):
        restarts = [Restart("a", number, Status.CONVERGED) for number in (1e-31, 2e-31, 3e-5)]
        text = written(solution_of(random([3, 3]), restarts=tuple(restarts))).text
        assert "from 3 starts; 2 of them reached the lowest objective, 1e−31." in text
        failed = (Restart("a", math.inf, None, error="no"), Restart("b", math.nan, None))
        text = written(solution_of(random([3, 3]), restarts=failed)).text
        assert "from 2 starts; none of them reached a finite objective." in text

    def test_the_objective_of_a_smoothed_fit_has_a_penalty(self, written):
        rows = random([3, 3]).sample(50, random_state=0)
        fit = jp.fit_rows(rows, 1, objective=jp.Likelihood(smoothing=5.0), random_state=0)
        mean = fit.pmf.log_probability(jp.encode(rows, fit.pmf.domain)).mean()
        assert fit.objective > -mean + 0.01
        said = "minus the mean log-likelihood of a row, with the penalty of any smoothing;"
        assert said in written(fit, rows).text

    def test_bad_input_is_one_sentence_and_nothing_is_written(self, tmp_path):
        path = tmp_path / "fit.html"
        fit = solution_of(random([2, 2]))
        with pytest.raises(jp.JointPMFError, match="curve must be what choose_rank returns"):
            fit.report(path, curve=[1, 2])
        with pytest.raises(jp.JointPMFError, match="title must be text, not 3"):
            fit.report(path, title=3)
        with pytest.raises(jp.JointPMFError, match="curve has no ranks"):
            fit.report(path, curve=scores())
        for none in (None, 3, b"fit.html"):
            with pytest.raises(jp.JointPMFError, match="named by a path, not by"):
                fit.report(none)
            with pytest.raises(jp.JointPMFError, match="named by a path, not by"):
                fit.pmf.explore(none)
        with pytest.raises(jp.JointPMFError, match="sample_weight belongs to a table"):
            fit.report(path, sample_weight=[1.0])
        with pytest.raises(jp.JointPMFError, match="2 sample weights for 1 rows"):
            fit.report(path, [[0, 0]], sample_weight=[1.0, 2.0])
        with pytest.raises(jp.JointPMFError, match="weights of all rows are 0"):
            fit.report(path, [[0, 0]], sample_weight=[0.0])
        with pytest.raises(jp.JointPMFError, match="no rows to report on"):
            fit.report(path, pl.DataFrame({"x0": [], "x1": []}, schema={"x0": int, "x1": int}))
        with pytest.raises(jp.JointPMFError, match="'x0' holds 7 in row 0"):
            fit.report(path, [[7, 0]])
        with pytest.raises(jp.JointPMFError, match="without variables"):
            solution_of(jp.JointPMF(jp.Domain([]), [1.0], [])).report(path)
        with pytest.raises(jp.JointPMFError, match=r"cannot write .*: No such"):
            fit.report(tmp_path / "nowhere" / "fit.html")
        assert list(tmp_path.iterdir()) == []


def hostile_pmf():
    names = [*HOSTILE, "\ud800"]
    variables = [jp.Variable(name, (name, name + "!", 3)) for name in names]
    return jp.random_pmf(jp.Domain(variables), 2, 0)


def results(pmf):
    """Return one of each of what a notebook shows."""
    rows = pmf.sample(30, random_state=0, backend="codes")
    marginals = jp.MarginalSet.from_table(jp.Codes(pmf.domain, rows), 1)
    solution = solution_of(
        pmf, history=[Step(0, 1.0, 0.1, 0, 0)], start=Start("<b>"), validation=2.0
    )
    return {
        "model": pmf,
        "solution": solution,
        "marginals": marginals,
        "identifiability": jp.identifiability(marginals, 2),
        "summary": jp.summary(pmf, jp.Codes(pmf.domain, rows)),
        "curve": scores((1, -3.0, 0.1), (2, -2.0, math.nan)),
        "bootstrap": BootstrapTest(2, 3.5, 0.25, np.zeros(3)),
        "goodness": jp.summary(pmf, jp.Codes(pmf.domain, rows)).goodness_of_fit(),
    }


class TestNotebooks:
    @pytest.mark.parametrize("kind", results(random([2, 3])))
    def test_names_are_text_and_colours_are_the_notebooks(self, kind):
        content = results(hostile_pmf())[kind]._repr_html_()
        page = shown(content)
        assert not {"script", "img", "link"} & set(page.tags)
        assert not re.search(r"(?<![-\w])(color|background)\s*:", content)
        assert len(content) < 60_000
        content.encode()

    def test_a_model(self):
        text = shown(random([3] * 20, 9)._repr_html_()).text
        assert "JointPMF: 20 variables, rank 9" in text
        assert "and 3 smaller" in text
        assert "and 12 more variables" in text
        certain = jp.JointPMF(jp.Domain.of_sizes([2]), [1.0], [[[0.25], [0.75]]])
        assert re.search("x0 ?2 ?1 ?75.0 %", shown(certain._repr_html_()).text)
        assert "0 variables" in jp.JointPMF(jp.Domain([]), [1.0], [])._repr_html_()

    def test_components_with_names_are_named(self):
        named = random([2, 3]).reordered(names=["<b>calm", "keen"])
        text = shown(named._repr_html_()).text
        weights = [f"{100 * weight:.1f} %" for weight in named.weights]
        assert f"Weights of the components: <b>calm {weights[0]}, keen {weights[1]}." in text
        fit = solution_of(named, n_starts=4, n_agreed=2)
        text = shown(jp.summary(fit, [[0, 1], [1, 1]])._repr_html_()).text
        assert "component <b>calm keen weight" in text
        assert "found by 2 of 4 starts" in text

    def test_of_a_large_model_little_is_shown(self):
        text = random([5] * 1000, 600)._repr_html_()
        assert len(text) < 10_000
        assert "and 992 more variables" in shown(text).text

    def test_the_others(self):
        found = {
            kind: shown(one._repr_html_()).text for kind, one in results(random([2, 3])).items()
        }
        assert "The objective stopped improving." in found["solution"]
        assert "2 marginals of order 1 over 2 variables" in found["marginals"]
        assert "Rank 2: not identifiable" in found["identifiability"]
        assert "table to ask for x0 by x1" in found["identifiability"]
        assert "relative entropy (entropy R²)" in found["summary"]
        assert "by posterior" in found["summary"]
        assert "Best rank: 2" in found["curve"]
        assert "p = 0.25" in found["bootstrap"]
        assert "x0, x1" in found["goodness"]
        assert "the χ² test is not defined" in found["goodness"]

    def test_disagreements_are_shown(self):
        domain = jp.Domain.of_sizes([2, 2])
        tables = [
            jp.Marginal(("x0",), [0.5, 0.5]),
            jp.Marginal(("x0", "x1"), [[0.1, 0.1], [0.2, 0.6]]),
        ]
        text = shown(jp.MarginalSet(domain, tables)._repr_html_()).text
        assert "1 disagreements" in text
        assert "x0 gives x0=1 probability 0.5, x0, x1 gives it 0.8" in text


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        pmf = random([3, 4, 2])
        table = pmf.sample(300, random_state=0)
        table = table.with_columns(pl.when(pl.col("x1") > 0).then("x0").alias("x0"))
        table.write_csv("rows.csv")
        about = {"method": "likelihood", "rows": "300", "status": Status.CONVERGED.value}
        write_model("m.safetensors", pmf.domain, pmf.weights, pmf.factors, about | {"by": "<i>"})
        return tmp_path

    def run(self, *arguments):
        with pytest.raises(SystemExit) as ended:
            main(["report", *map(str, arguments)])
        return ended.value.code

    def test_the_page_goes_beside_the_model(self, folder, capsys):
        assert self.run("m.safetensors", "rows.csv") == 0
        assert capsys.readouterr().out.startswith("Written to m-report.html; ")
        text = shown((folder / "m-report.html").read_text()).text
        assert "300 rows of 3 variables" in text
        assert "Yes. The objective stopped improving." in text
        assert "<i>" in text
        assert str(folder) not in (folder / "m-report.html").read_text()

    def test_a_title_and_json(self, folder, capsys):
        for ending, first in (("html", "<!doctype html>"), ("json", "{")):
            out = f"r.{ending}"
            assert self.run("m.safetensors", "rows.csv", "--title", "The 2nd", "-o", out) == 0
            content = (folder / out).read_text()
            assert content.startswith(first)
            assert "The 2nd" in content

    def test_for_machines_to_stdout_and_opened(self, folder, capfdbinary, monkeypatch):
        opened = []
        monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
        assert self.run("m.safetensors", "rows.csv", "-o", "r.html", "--json", "--open") == 0
        said = json.loads(capfdbinary.readouterr().out)
        assert (said["output"], said["rows"]) == ("r.html", 300)
        assert isinstance(said["warnings"], list)
        assert opened == [(folder / "r.html").as_uri()]
        assert self.run("m.safetensors", "rows.csv", "-o", "-") == 0
        assert capfdbinary.readouterr().out == (folder / "r.html").read_bytes()

    def page(self, folder, ranks=None, **sizes):
        """Return the page that the command writes, with other sizes of batches and samples."""
        subject = Subject.of_file(read_model_file(folder / "m.safetensors"))
        found = findings_in(subject, "rows.csv", [], "error", ranks, 0, False, **sizes)
        return report_bytes(found, "m")

    def test_batches_give_the_page_of_the_whole(self, folder, capsys):
        assert self.run("m.safetensors", "rows.csv", "-o", "whole.html") == 0
        assert self.page(folder, batch_bytes=200) == (folder / "whole.html").read_bytes()

    def test_ranks_are_tried_on_rows_that_fit(self, folder, capsys):
        kinds = {"x0": [0, 2], "x1": [0, 3], "x2": [0, 1]}  # so far apart that fits take no time
        pl.DataFrame({name: 150 * levels for name, levels in kinds.items()}).write_csv("rows.csv")
        assert self.run("m.safetensors", "rows.csv", "--ranks", "1-2") == 0
        text = shown((folder / "m-report.html").read_text()).text
        assert "The best is rank 2." in text
        assert "drawn at random" not in text
        text = shown(self.page(folder, [1], most_for_ranks=100).decode()).text
        assert "Tried on 100 of the 300 rows" in text

    def test_from_stdin_to_stdout(self, folder, capfdbinary, monkeypatch):
        model, rows = (folder / "m.safetensors").read_bytes(), (folder / "rows.csv").read_bytes()
        for content, arguments in (
            (model, ["report", "-", "rows.csv", "-o", "-"]),
            (rows, ["report", "m.safetensors", "-", "-o", "-"]),
            (model, ["explore", "-", "-o", "-"]),
        ):
            stream = io.TextIOWrapper(io.BytesIO(content))
            monkeypatch.setattr("sys.stdin", stream)
            with pytest.raises(SystemExit) as ended:
                main(arguments)
            said = capfdbinary.readouterr()
            assert (ended.value.code, said.err) == (0, b"")
            assert said.out.startswith(b"<!doctype html>")

    def test_unknown_levels_are_counted(self, folder, capsys):
        (folder / "odd.csv").write_text("x0,x1,x2,more\n9,0,0,1\n1,,1,1\n1,7,8,1\nNA,1,1,1\n")
        assert self.run("m.safetensors", "odd.csv", "--unknown", "missing", "-o", "r.html") == 0
        text = shown((folder / "r.html").read_text()).text
        assert "7 cells are observed, and 5 are missing (41.7 %, 3 of them of unknown" in text
        assert "3 cells of a level that the model does not know count as missing here." in text
        assert self.run("m.safetensors", "rows.csv", "--unknown", "missing", "-o", "r.html") == 0
        assert "does not know" not in shown((folder / "r.html").read_text()).text

    def test_a_model_file_with_endless_numbers(self, folder, capsys):
        pmf = random([3, 4, 2])
        about = {"method": "marginals", "rows": "9" * 5000, "order": "9" * 5000}
        write_model("m.safetensors", pmf.domain, pmf.weights, pmf.factors, about)
        assert self.run("m.safetensors", "rows.csv") == 0

    def test_a_model_file_that_says_nothing(self, folder, capsys):
        random([3, 4, 2]).save("bare.safetensors")
        assert self.run("bare.safetensors", "rows.csv", "-o", "r.html") == 0
        text = shown((folder / "r.html").read_text()).text
        assert "How it was fitted is not in the model's file." in text
        assert "How the fit ended is not in the model's file." in text
        assert "The course of the fit is not kept in a model's file." in text

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["no.safetensors", "rows.csv"], "cannot read no.safetensors"),
            (["m.safetensors", "no.csv"], "no.csv"),
            (["-", "-"], "cannot both come from stdin"),
            (["m.safetensors", "rows.csv", "-o", "nowhere/r.html"], "cannot write nowhere/r.html"),
            (["m.safetensors", "rows.csv", "-o", "m.safetensors"], "would replace the model"),
            (["m.safetensors", "rows.csv", "-o", "rows.csv"], "would replace the data"),
            (["m.safetensors", "rows.csv", "-o", "-", "--open"], "--open needs a file"),
            (["m.safetensors", "rows.csv", "--ranks", "6-1"], "ranks are whole numbers"),
            (["m.safetensors", "rows.csv", "--unknown", "what"], "--unknown must be"),
            (["m.safetensors", "other.csv"], "'x0' holds '9' in row 0"),
            (["m.safetensors", "empty.csv"], "empty.csv has no rows"),
        ],
    )
    def test_bad_input_is_one_sentence(self, folder, capsys, arguments, said):
        (folder / "other.csv").write_text("x0\n9\n")
        (folder / "empty.csv").write_text("x0,x1\n")
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert self.run(*arguments) == 2
        captured = capsys.readouterr()
        assert said in captured.err.replace("\n", " ")
        assert captured.out == ""
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("text", ["", "0", "3-1", "a", "1-2-3", "1,,2", "-1", "1e3"])
def test_ranks_that_are_none(text):
    with pytest.raises(jp.JointPMFError, match="ranks are whole numbers such as 1-6"):
        ranks_of(text)


@pytest.fixture(scope="module")
def pages(fit, table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    curve = scores(*((rank, -15 - (rank - 3) ** 2 / 10, 0.05) for rank in range(1, 7)))
    fit.report(folder / "survey.html", table, curve)
    pmf = hostile_pmf()
    history = [Step(k, 5 + 0.5**k, 0.1 * k, 0.0, 0.0) for k in range(40)]
    rows = jp.Codes(pmf.domain, pmf.sample(40, random_state=0, backend="codes"))
    solution_of(pmf, Status.MAX_ITER, history).report(folder / "hostile.html", rows)
    return folder


class TestInABrowser:
    @pytest.mark.parametrize("name", ["survey", "hostile"])
    def test_everyone_can_read_it(self, browser, pages, name):
        if not AXE.exists():
            skip_or_fail("axe-core is not installed; `make test` installs it where npm is")
        page = browser.new_page()
        asked, complaints = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.goto((pages / f"{name}.html").as_uri())
        assert page.evaluate("window.hacked") is None
        LEFT.mkdir(parents=True, exist_ok=True)
        for (device, (width, height)), scheme in itertools.product(DEVICES.items(), SCHEMES):
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            page.screenshot(path=LEFT / f"report_{name}_{device}_{scheme}.png", full_page=True)
            assert (asked, complaints) == ([(pages / f"{name}.html").as_uri()], [])
            assert faults_for_axe(page, scheme) == [], (device, scheme)
        page.close()

    def test_sections_fold_on_a_phone_only(self, browser, pages):
        page = browser.new_page(viewport={"width": 375, "height": 800})
        page.goto((pages / "survey.html").as_uri())
        told = page.get_by_text("Log-likelihood", exact=True)
        assert page.locator(".plot").is_visible()
        assert not told.is_visible()
        page.get_by_label("How well does it fit?").press("Space")
        assert told.is_visible()
        page.reload()
        page.set_viewport_size({"width": 1280, "height": 900})
        assert told.is_visible()
        assert page.locator(".fold").first.is_hidden()
        page.close()

    def test_labels_of_a_chart_are_not_cut(self, browser, fit, table, tmp_path):
        large = [RankScore(k, 3e6 + 1e4 * k, math.nan, -5.0, 9 * k, 0.1) for k in (1, 2, 3)]
        curve = RankCurve("bic", tuple(large), np.zeros((3, 1)))
        fit.report(tmp_path / "r.html", table, curve)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto((tmp_path / "r.html").as_uri())
        begin = page.locator(".chart").bounding_box()["x"]
        labels = page.locator(".chart text").all()
        assert "3,010,000" in [label.text_content() for label in labels]
        assert min(label.bounding_box()["x"] for label in labels) >= begin
        page.close()

    def test_a_phone_shows_what_tables_are_ordered_by_and_the_best_rank(self, browser, pages):
        page = browser.new_page(viewport={"width": 375, "height": 800})
        page.goto((pages / "survey.html").as_uri())
        for heading in ("How well does it fit?", "How many components?"):
            page.get_by_label(heading).check()
        columns = page.locator("[aria-label='Worst fitted marginals'] thead th")
        assert columns.all_inner_texts()[1:3] == ["χ²/df", "Distance"]
        mark = page.locator("[aria-label='Rank curve'] tbody .choice")
        assert mark.all_inner_texts() == ["best"]
        for found in (columns.nth(1), columns.nth(2), mark):
            box = found.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 375
        page.close()


class TestTraits:
    """Components at points are not read one by one: the traits are."""

    def shown(self, pmf, tmp_path, rows=None):
        fit = jp.Solution(pmf, Status.CONVERGED, 1.0, [])
        fit.report(tmp_path / "r.html", rows)
        return " ".join("".join(_Reader((tmp_path / "r.html").read_text()).parts).split())

    def test_traits_stand_in_the_place_of_components(self, tmp_path):
        pmf = pmf_of(planted())
        text = self.shown(pmf, tmp_path, pmf.sample(200, random_state=0))
        assert "The traits" in text
        assert " The components " not in text
        assert "too few to tell much" not in text
        assert "numbers that were fitted" not in text
        assert "at each of 128 points along them" in text
        assert "average" not in text
        (slope,) = pmf.loadings().filter(variable="member")["trait 0"]
        assert f"member = true ({slope:+.2f})".replace("-", "−") in text

    def test_an_average_says_whose_traits_these_are(self, tmp_path):
        text = self.shown(pmf_of(planted(), planted(seed=1)), tmp_path)
        assert "The model is the average of 2 such fits" in text

    def test_a_file_tells_the_same(self, tmp_path):
        pmf_of(planted()).save(tmp_path / "m")
        subject = Subject.of_file(read_model_file(tmp_path / "m"))
        found = findings_of(subject)
        assert "The traits" in report_bytes(found, "m").decode()

    def test_one_point_has_components(self, tmp_path):
        text = self.shown(pmf_of(planted(n_points=1)), tmp_path)
        assert " The components The only component" in text

    def test_names_are_text(self, tmp_path):
        names = [name for name in HOSTILE if name]
        domain = jp.Domain([jp.Variable(name, (name, "a", "b")) for name in names if name != "a"])
        text = self.shown(pmf_of(planted(domain, 32)), tmp_path)
        assert "</script>" in text
