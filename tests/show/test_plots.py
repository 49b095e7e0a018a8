"""What the plots draw: their numbers, labels and marks, hostile names, edges, and the style."""

import inspect
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import jointpmf as jp
from jointpmf.fit.solution import Restart
from jointpmf.judge.curve import RankCurve, RankScore
from jointpmf.show import plots
from jointpmf.solvers.loop import Step
from support.traits import MIXED, planted, pmf_of

HOSTILE = [
    "</script><script>alert(1)</script>",
    "$x^2$ and $\\frac{",
    "\"quoted\" 'twice'",
    "two\nlines\t\u202ebackwards",
    "x" * 10_000,
    "_begins 😀",
    "\ud800 is no text",
    "",
]


@pytest.fixture(autouse=True)
def _closed():
    before = plt.get_backend()
    plt.switch_backend("Agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.fixture
def pmf():
    return jp.random_pmf(jp.Domain.of_sizes([2, 3, 4]), 3, 0)


def solution(objectives, validations=None, **fields):
    """Return a solution with this history."""
    validations = validations or [None] * len(objectives)
    history = [
        Step(k, objective, 0.1 * k, 0.0, 0.0, held_out)
        for k, (objective, held_out) in enumerate(zip(objectives, validations, strict=True))
    ]
    model = jp.random_pmf(jp.Domain.of_sizes([2, 2]), 1, 0)
    return jp.Solution(model, jp.Status.CONVERGED, 1.0, history, **fields)


def drawn(ax):
    """Draw for real, which is when matplotlib finds faults, and return the Axes."""
    ax.figure.canvas.draw()
    return ax


def lines(ax):
    """Return x and y of everything that has a name in the legend."""
    return {
        line.get_label(): np.array(line.get_data())
        for line in ax.get_lines()
        if not line.get_label().startswith("_")
    }


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def ticks(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


DRAW = {
    "convergence": lambda ax: plots.convergence(solution([3.0, 2.0]), ax),
    "marginal_fit": lambda ax: plots.marginal_fit(model(), model().marginals(2), ax),
    "factors": lambda ax: plots.factors(model(), ax=ax),
    "rank_curve": lambda ax: plots.rank_curve(rank_curve([1.0, 2.0]), ax),
    "dependencies": lambda ax: plots.dependencies(model(), ax=ax),
    "calibration": lambda ax: plots.calibration(model(), model().sample(50, random_state=0), ax=ax),
    "error_by_rank": lambda ax: plots.error_by_rank([1, 2], [0.5, 0.4], ax=ax),
    "traits": lambda ax: plots.traits(pmf_of(planted()), ax=ax),
}


def model():
    return jp.random_pmf(jp.Domain.of_sizes([2, 3, 4]), 3, 0)


def rank_curve(scores, errors=None, criterion="validation", ranks=None):
    errors = errors or [np.nan] * len(scores)
    ranks = ranks or range(1, len(scores) + 1)
    found = [RankScore(r, s, e, s, 5, 0.1) for r, s, e in zip(ranks, scores, errors, strict=True)]
    return RankCurve(criterion, tuple(found), np.zeros((len(scores), 0)))


class TestAll:
    def test_these_are_all(self):
        public = {name for name, thing in vars(plots).items() if inspect.isfunction(thing)}
        assert public - {"style", "profiles"} == set(DRAW)  # profiles draw on a whole figure

    @pytest.mark.parametrize("name", DRAW)
    def test_it_returns_the_axes_that_it_was_given_with_labels(self, name):
        ax = Figure().subplots()
        assert DRAW[name](ax) is ax
        drawn(ax)
        if name != "dependencies":  # whose ticks are names
            assert ax.get_xlabel()
        if name not in ("dependencies", "factors"):
            assert ax.get_ylabel()
        assert not plt.get_fignums()

    @pytest.mark.parametrize("name", DRAW)
    def test_without_axes_there_is_a_new_figure_each_time(self, name):
        first, second = DRAW[name](None), DRAW[name](None)
        assert first.figure is not second.figure
        assert plt.get_fignums() == [1, 2]

    @pytest.mark.parametrize("name", DRAW)
    def test_the_users_settings_stay(self, name):
        before = dict(mpl.rcParams)
        DRAW[name](None)
        assert dict(mpl.rcParams) == before

    @pytest.mark.parametrize("name", DRAW)
    def test_several_axes_at_once_are_refused(self, name):
        with pytest.raises(jp.JointPMFError, match="ax must be one Axes"):
            DRAW[name](Figure().subplots(2))

    @pytest.mark.parametrize("name", DRAW)
    @pytest.mark.parametrize("projection", ["3d", "polar"])
    def test_axes_that_are_not_straight_are_refused(self, name, projection):
        ax = Figure().add_subplot(projection=projection)
        with pytest.raises(jp.JointPMFError, match=f"two straight axes; this one is '{projection}"):
            DRAW[name](ax)

    @pytest.mark.parametrize(
        "name", ["convergence", "rank_curve", "factors", "dependencies", "profiles", "traits"]
    )
    def test_something_else_is_refused_by_name(self, name):
        with pytest.raises(jp.JointPMFError, match=rf"plots.{name} draws a \w+, not 'nothing'"):
            getattr(plots, name)("nothing")
        assert not plt.get_fignums()

    @pytest.mark.parametrize("name", ["factors", "dependencies", "marginal_fit"])
    def test_hostile_names_are_drawn_as_text(self, name):
        levels = ["$\\bad{$", "b" * 500]
        domain = jp.Domain([jp.Variable(text, (text, *levels)) for text in HOSTILE])
        bad = jp.random_pmf(domain, 1, 1)
        true = jp.random_pmf(domain, 3, 0)
        ax = Figure().subplots()
        if name == "marginal_fit":
            texts = legend(drawn(plots.marginal_fit(bad, true.marginals(order=2), ax)))
        else:
            texts = ticks(drawn(getattr(plots, name)(true, ax=ax)).yaxis)
        assert texts
        assert name == "marginal_fit" or "_begins 😀" in texts
        assert max(len(line) for text in texts for line in text.split("\n")) < 45
        assert not any(mpl.cbook.is_math_text(text) for text in texts)

    @pytest.mark.parametrize("text", HOSTILE)
    def test_hostile_names_are_in_the_legend(self, text):
        domain = jp.Domain([jp.Variable(text, ("a", "b"))])
        fair = jp.JointPMF(domain, [1.0], [[[0.5], [0.5]]])
        observed = jp.MarginalSet(domain, [jp.Marginal((text,), [0.1, 0.9])])
        ax = drawn(plots.marginal_fit(fair, observed, Figure().subplots()))
        start = " ".join(text.replace("\u202e", " ").replace("\ud800", "").split())[:15]
        seen = [entry.removeprefix("\u200b").replace("\\$", "$") for entry in legend(ax)]
        assert len(seen) == 3
        assert all(entry.startswith(start) for entry in seen[1:])
        other = plots.error_by_rank([1], [0.5], label="_" + text, references={"_mean": 0.4})
        assert "\u200b_mean" in legend(other)
        assert len(legend(other)) == 2

    def test_what_the_font_lacks_is_for_matplotlib_to_say(self):
        domain = jp.Domain([jp.Variable("日本", ("a", "b")), jp.Variable("plain", ("a", "b"))])
        ax = plots.dependencies(jp.random_pmf(domain, 2, 0))
        assert ticks(ax.xaxis) == ["日本", "plain"]
        with pytest.warns(UserWarning, match="missing from font"):
            drawn(ax)


class TestHouse:
    def test_neither_the_library_nor_the_module_imports_matplotlib(self):
        code = "import sys, jointpmf as jp; jp.plots.COLOURS; print('matplotlib' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert done.stdout.split() == [b"False"]

    def test_without_matplotlib_a_sentence_says_what_to_do(self, pmf, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(jp.JointPMFError, match=r"pip install 'jointpmf\[plots\]'"):
            plots.factors(pmf)

    def test_matplotlib_is_known_to_one_folder_only(self):
        source = Path(jp.__file__).parent
        known = r"^\s*(import|from) matplotlib\b"
        users = [f for f in source.rglob("*.py") if re.search(known, f.read_text(), re.MULTILINE)]
        assert {file.parent for file in users} == {Path(plots.__file__).parent}

    def test_the_name_is_listed(self):
        assert "plots" in dir(jp)
        assert jp.plots is plots


class TestStyle:
    def test_it_ends_with_its_context_also_after_an_error(self):
        before = dict(mpl.rcParams)
        with plots.style():
            assert mpl.rcParams["axes.spines.top"] is False
        with pytest.raises(ZeroDivisionError), plots.style():
            _ = 1 / 0
        assert dict(mpl.rcParams) == before

    def test_steps_of_heat_look_equally_large(self):
        lightness = np.array([lab_lightness(colour) for colour in plots.HEAT])
        steps = -np.diff(lightness)
        assert steps.min() > 0.8 * steps.max()

    def test_a_dark_background_has_light_marks(self):
        with plt.style.context("dark_background"):
            ax = plots.convergence(solution([3.0, 2.0]))
        (best,) = (line for line in ax.get_lines() if "best" in line.get_label())
        assert best.get_color() == "white"


def lab_lightness(colour):
    """Return L* of CIELAB, by its definition."""
    srgb = np.array(mpl.colors.to_rgb(colour))
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return 116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16


class TestConvergence:
    def test_the_objective_is_drawn_and_the_best_is_marked(self):
        ax = drawn(plots.convergence(solution([5.0, 3.0, 2.0, 2.5])))
        assert lines(ax)["objective"].tolist() == [[0, 1, 2, 3], [5.0, 3.0, 2.0, 2.5]]
        assert lines(ax)["best: iteration 2"].tolist() == [[2], [2.0]]

    def test_the_last_of_equals_is_the_best(self):
        assert "best: iteration 2" in lines(plots.convergence(solution([5.0, 3.0, 3.0])))

    def test_with_a_validation_part_that_says_which_is_best(self):
        ax = drawn(plots.convergence(solution([5.0, 4.0, 3.0], [6.0, 4.5, 5.0])))
        assert lines(ax)["best: iteration 1"].tolist() == [[1], [4.5]]
        assert ax.figure.axes == [ax]

    def test_a_validation_part_of_another_size_has_its_own_scale(self):
        ax = drawn(plots.convergence(solution([50.0, 49.0, 48.0], [1.5, 1.2, 1.3])))
        left, right = ax.figure.axes
        assert left is ax
        assert lines(right)["best: iteration 1"].tolist() == [[1], [1.2]]
        assert legend(right) == ["objective", "validation part", "best: iteration 1"]

    def test_decades_where_it_falls_by_some(self):
        fast = plots.convergence(solution([10.0**-k for k in range(9)]))
        slow = plots.convergence(solution([3.0, 2.9, 2.8]))
        to_zero = plots.convergence(solution([3.0, 1.0, 0.0]))
        assert [a.get_yscale() for a in (fast, slow, to_zero)] == ["log", "linear", "linear"]

    def test_iterations_by_decades_where_it_falls_early(self):
        early = plots.convergence(solution([10 + 5.0 * 0.1**k for k in range(200)]))
        evenly = plots.convergence(solution([10 + 0.01 * (200 - k) for k in range(200)]))
        assert (early.get_xscale(), evenly.get_xscale()) == ("symlog", "linear")

    def test_rounding_is_no_fall(self):
        low, high = plots.convergence(solution([15.0 + 1e-12, 15.0])).get_ylim()
        assert high - low > 0.01

    def test_other_starts_are_marked_where_they_ended(self):
        restarts = (
            Restart("random", 2.0, jp.Status.CONVERGED),
            Restart("random", 2.5, jp.Status.MAX_ITER),
            Restart("number 3", np.inf, None, error="it failed"),
        )
        ax = drawn(plots.convergence(solution([5.0, 2.0], restarts=restarts)))
        assert lines(ax)["ends of 2 starts"].tolist() == [[1, 1], [2.0, 2.5]]

    @pytest.mark.parametrize("objectives", [[], [np.inf], [np.nan, np.inf]])
    def test_nothing_to_draw_is_said(self, objectives):
        ax = drawn(plots.convergence(solution(objectives)))
        assert [text.get_text() for text in ax.texts] == ["There is no iteration to draw."]

    def test_what_is_not_finite_is_left_out(self):
        ax = drawn(plots.convergence(solution([np.inf, 3.0, 2.0, np.nan])))
        assert lines(ax)["best: iteration 2"].tolist() == [[2], [2.0]]
        assert np.isnan(lines(ax)["objective"][1]).tolist() == [True, False, False, True]

    def test_one_iterate_is_enough(self):
        assert "best: iteration 0" in lines(drawn(plots.convergence(solution([3.0]))))

    def test_the_unit_is_that_of_the_fit(self, pmf):
        coupled = jp.fit_marginals(pmf.marginals(order=2), 2, random_state=0, max_iter=3)
        assert "marginals" in plots.convergence(coupled).get_ylabel()
        rows = jp.fit_rows(pmf.sample(50, random_state=0), 2, random_state=0)
        assert "nats" in plots.convergence(rows).get_ylabel()


class TestMarginalFit:
    def test_every_cell_is_a_point(self, pmf):
        other = jp.random_pmf(pmf.domain, 2, 5)
        ax = drawn(plots.marginal_fit(pmf, other.marginals(order=2)))
        fitted, observed = lines(ax)["26 cells"]
        tables = [(0, 1), (0, 2), (1, 2)]
        names = pmf.domain.names
        for found, source in ((fitted, pmf), (observed, other)):
            expected = [source.marginal([names[a], names[b]]).table().ravel() for a, b in tables]
            np.testing.assert_allclose(found, np.concatenate(expected), atol=1e-14)

    def test_variables_may_come_in_another_order(self, pmf):
        moved = pmf.marginal(["x2", "x0", "x1"])
        ax = plots.marginal_fit(pmf, moved.marginals(order=2))
        fitted, observed = lines(ax)["26 cells"]
        np.testing.assert_allclose(fitted, observed, atol=1e-14)
        assert legend(ax) == ["26 cells"]  # no cell is worth a name

    def test_a_coupled_fit_knows_its_marginals(self, pmf):
        fit = jp.fit_marginals(pmf.marginals(order=2), 2, random_state=0, max_iter=5)
        assert "26 cells" in lines(plots.marginal_fit(fit))
        with pytest.raises(jp.JointPMFError, match="give the marginals"):
            plots.marginal_fit(replace(fit, marginals=None))
        with pytest.raises(jp.JointPMFError, match="give the marginals"):
            plots.marginal_fit(pmf)

    def test_the_worst_cell_is_named_with_both_probabilities(self):
        domain = jp.Domain(
            [jp.Variable("sky", ("sun", "rain")), jp.Variable("day", ("Mon", "Tue"))]
        )
        fair = jp.JointPMF(domain, [1.0], [[[0.5], [0.5]], [[0.5], [0.5]]])
        table = [[0.25, 0.25], [0.05, 0.45]]
        observed = jp.MarginalSet(domain, [jp.Marginal(("sky", "day"), table)])
        ax = drawn(plots.marginal_fit(fair, observed))
        name = "sky = rain\nday = Mon\n0.05, fitted 0.25"
        assert lines(ax)[name].ravel().tolist() == [0.25, 0.05]
        assert legend(ax)[1] == name

    def test_a_band_shows_the_noise_of_counting(self, pmf):
        counted = jp.MarginalSet.from_table(pmf.sample(400, random_state=0), order=2)
        ax = drawn(plots.marginal_fit(pmf, counted))
        assert legend(ax)[:2] == ["26 cells", "two standard errors"]
        (band,) = ax.collections
        x, y = band.get_paths()[0].vertices.T
        middle = (x > 0.01) & (x < x.max())
        np.testing.assert_allclose(np.abs(np.sqrt(y) - np.sqrt(x))[middle], 0.05, atol=1e-12)
        fitted, observed = lines(ax)["26 cells"]
        inside = np.abs(np.sqrt(fitted) - np.sqrt(observed)) < 0.05
        assert inside.mean() > 0.9

    def test_few_rows_are_no_misfit_beside_many(self):
        domain = jp.Domain.of_sizes([2, 2])
        fair = jp.JointPMF(domain, [1.0], [[[0.5], [0.5]]] * 2)
        tables = [
            jp.Marginal(("x0",), [0.35, 0.65], n_obs=20),
            jp.Marginal(("x1",), [0.45, 0.55], n_obs=1e6),
        ]
        ax = drawn(plots.marginal_fit(fair, jp.MarginalSet(domain, tables)))
        names = legend(ax)
        assert names[:2] == ["4 cells", "two standard errors of 20 observations"]
        assert sorted(name.split("\n")[0] for name in names[2:]) == ["x1 = 0", "x1 = 1"]

    def test_thousands_of_cells_become_a_density(self):
        many = jp.random_pmf(jp.Domain.of_sizes([20] * 5), 2, 0)
        ax = drawn(plots.marginal_fit(many, many.marginals(order=2)))
        (mesh,) = ax.collections
        assert mesh.get_array().sum() == 4000
        assert ax.get_legend() is None

    def test_other_levels_are_refused(self, pmf):
        other = jp.random_pmf(jp.Domain.of_sizes([2, 3, 5]), 3, 0)
        with pytest.raises(jp.JointPMFError, match="'x2' has other levels"):
            plots.marginal_fit(pmf, other.marginals(order=2))

    def test_one_level_is_enough(self):
        sure = jp.random_pmf(jp.Domain.of_sizes([1]), 1, 0)
        assert "1 cells" in lines(drawn(plots.marginal_fit(sure, sure.marginals(order=1))))


class TestFactors:
    def test_levels_are_rows_and_components_are_columns_by_weight(self):
        domain = jp.Domain([jp.Variable("sky", ("sun", "rain"))])
        pmf = jp.JointPMF(domain, [0.25, 0.75], [[[0.1, 0.6], [0.9, 0.4]]])
        ax = drawn(plots.factors(pmf))
        assert ticks(ax.yaxis) == ["sky", "sun", "rain"]
        assert ticks(ax.xaxis) == ["1\n75.0%", "0\n25.0%"]
        rows = ax.collections[0].get_array()
        assert rows.mask[0].all()
        assert rows[1:].tolist() == [[0.6, 0.1], [0.4, 0.9]]
        assert [text.get_text() for text in ax.texts] == ["0.60", "0.10", "0.40", "0.90"]
        bold = [text.get_fontweight() for text in ax.get_yticklabels()]
        assert bold == ["bold", "normal", "normal"]

    def test_names_choose_and_order(self, pmf):
        ax = plots.factors(pmf, ["x2", "x0"])
        assert ticks(ax.yaxis) == ["x2", "0", "1", "2", "3", "x0", "0", "1"]
        with pytest.raises(jp.JointPMFError, match="no variable 'x9'"):
            plots.factors(pmf, ["x9"])
        with pytest.raises(jp.JointPMFError, match="no variable to draw"):
            plots.factors(pmf, [])

    def test_of_a_large_model_the_most_telling_part_is_shown(self):
        domain = jp.Domain.of_sizes([4] * 50)
        generator = np.random.default_rng(0)
        columns = [np.full((4, 60), 0.25)] * 50
        columns[37] = generator.dirichlet(np.ones(4), 60).T
        pmf = jp.JointPMF(domain, generator.dirichlet(np.ones(60)), columns)
        ax = drawn(plots.factors(pmf))
        assert "x37" in ticks(ax.yaxis)
        assert ax.get_title("left").startswith(
            "16 of 50 variables (those that tell most), 30 of 60"
        )
        assert len(ax.get_xticks()) == 30
        assert f"{np.sort(pmf.weights)[-30:].sum():.0%} of the weight" in ax.get_title("left")

    def test_a_title_stays_where_nothing_has_to_be_said(self, pmf):
        ax = Figure().subplots()
        ax.set_title("mine", loc="left")
        assert plots.factors(pmf, ax=ax).get_title("left") == "mine"

    def test_low_rows_have_the_names_of_variables_only(self, pmf):
        ax = Figure(figsize=(2, 0.5)).subplots()
        assert ticks(plots.factors(pmf, ax=ax).yaxis) == ["x0", "x1", "x2"]

    def test_one_variable_with_one_level_of_rank_one(self):
        ax = drawn(plots.factors(jp.random_pmf(jp.Domain.of_sizes([1]), 1, 0)))
        assert (ticks(ax.yaxis), ticks(ax.xaxis)) == (["x0", "0"], ["0\n100.0%"])


class TestRankCurve:
    def test_scores_errors_and_both_choices(self):
        curve = rank_curve([-5.0, -4.1, -4.0, -4.3], [0.1, 0.2, 0.2, 0.1])
        ax = drawn(plots.rank_curve(curve))
        assert ax.containers[0][0].get_xydata()[:, 1].tolist() == [-5.0, -4.1, -4.0, -4.3]
        (bars,) = ax.containers[0][2]
        assert bars.get_segments()[1][:, 1] == pytest.approx([-4.3, -3.9])
        found = lines(ax)
        assert found["rank 3: best"].ravel().tolist() == [3, -4.0]
        assert found["rank 2: simplest within one standard error"].ravel().tolist() == [2, -4.1]
        assert ticks(ax.xaxis) == ["1", "2", "3", "4"]
        assert ax.get_ylabel() == "held-out log-likelihood\nper row (nats)"

    def test_a_criterion_has_no_errors_and_one_choice(self):
        ax = drawn(plots.rank_curve(rank_curve([90.0, 80.0, 85.0], criterion="bic")))
        assert legend(ax) == ["rank 2: best"]
        assert ax.get_ylabel() == "BIC"

    def test_ranks_whose_steps_grow_are_by_octaves(self):
        curve = rank_curve([5.0, 4.0, 3.0, 4.0, 5.0], criterion="bic", ranks=[1, 2, 4, 8, 16])
        ax = drawn(plots.rank_curve(curve))
        assert (ax.get_xscale(), ticks(ax.xaxis)) == ("log", ["1", "2", "4", "8", "16"])
        evenly = rank_curve([float(k) for k in range(20)], criterion="bic")
        many = drawn(plots.rank_curve(evenly))
        assert many.get_xscale() == "linear"
        assert all(tick == int(tick) for tick in many.get_xticks())

    def test_impossible_ranks_are_left_out(self):
        ax = drawn(plots.rank_curve(rank_curve([-np.inf, -4.0], [np.nan, 0.1])))
        assert legend(ax) == ["rank 2: best"]
        nothing = drawn(plots.rank_curve(rank_curve([-np.inf])))
        assert [text.get_text() for text in nothing.texts] == ["No rank has a finite score."]

    def test_the_elbow_is_marked_and_the_smallest_components_are_below(self):
        curve = rank_curve([9.0, 5.0, 4.0, 3.9], criterion="bic")
        heights = [-9.0, -6.0, -3.0, -2.9]
        shares = [1.0, 0.4, 0.2, 0.01]
        scores = [
            score._replace(log_likelihood=height, smallest=share)
            for score, height, share in zip(curve.scores, heights, shares, strict=True)
        ]
        ax = drawn(plots.rank_curve(replace(curve, scores=tuple(scores))))
        assert lines(ax)["rank 3: elbow"].ravel().tolist() == [3, 4.0]
        own, panel = ax.figure.axes
        assert own is ax
        ends = [segment[1, 1] for segment in panel.collections[0].get_segments()]
        assert ends == pytest.approx([100, 40, 20, 1])
        assert panel.get_ylim()[1] < 50  # the only component of rank 1 does not set the scale
        assert panel.get_position().y1 < ax.get_position().y0

    def test_an_axes_outside_of_a_grid_keeps_its_place(self):
        curve = rank_curve([9.0, 5.0], criterion="bic")
        scores = tuple(score._replace(smallest=0.5) for score in curve.scores)
        ax = Figure().add_axes((0.2, 0.2, 0.6, 0.6))
        plots.rank_curve(replace(curve, scores=scores), ax)
        assert ax.figure.axes == [ax]
        assert ax.get_position().bounds == pytest.approx((0.2, 0.2, 0.6, 0.6))


class TestDependencies:
    def test_it_shows_mutual_information_without_the_diagonal(self, pmf):
        ax = drawn(plots.dependencies(pmf, ["x2", "x0", "x1"]))
        shown = ax.collections[0].get_array()
        expected = jp.mutual_information(pmf.marginal(["x2", "x0", "x1"]))
        apart = ~np.eye(3, dtype=bool)
        assert (shown.mask == ~apart).all()
        np.testing.assert_allclose(shown[apart], expected[apart])
        assert ticks(ax.xaxis) == ticks(ax.yaxis) == ["x2", "x0", "x1"]
        assert ax.yaxis_inverted()

    def test_independent_variables_are_drawn_too(self):
        ax = drawn(plots.dependencies(jp.random_pmf(jp.Domain.of_sizes([2, 2]), 1, 0)))
        assert ax.collections[0].get_array().max() < 1e-14

    def test_of_many_variables_the_most_telling_are_shown(self):
        pmf = jp.random_pmf(jp.Domain.of_sizes([3] * 60), 4, 0)
        ax = drawn(plots.dependencies(pmf))
        assert ax.get_title("left") == "40 of 60 variables (those that tell most)"
        assert ax.collections[0].get_array().shape == (40, 40)
        everything = plots.dependencies(pmf, pmf.domain.names)
        assert everything.collections[0].get_array().shape == (60, 60)

    def test_names_without_room_are_left_out(self):
        pmf = jp.random_pmf(jp.Domain.of_sizes([2] * 60), 2, 0)
        ax = plots.dependencies(pmf, pmf.domain.names, Figure(figsize=(3, 3)).subplots())
        assert ticks(ax.xaxis)[:2] == ["x0", "x4"]

    def test_one_variable_depends_on_nothing(self, pmf):
        with pytest.raises(jp.JointPMFError, match="at least two variables"):
            plots.dependencies(pmf, ["x0"])


class TestCalibration:
    def test_points_are_means_of_cases(self, pmf):
        rows = np.array(pmf.sample(300, random_state=0, backend="codes"))
        rows[::7, 1] = jp.MISSING
        codes = jp.Codes(pmf.domain, rows)
        ax = drawn(plots.calibration(pmf, codes))
        cases = []
        for n, name in enumerate(pmf.domain.names):
            for chances, truth in zip(pmf.predict_proba(codes, name), rows[:, n], strict=True):
                cases += [(p, level == truth) for level, p in enumerate(chances) if truth >= 0]
        predicted, happened = np.array(cases).T
        group = np.minimum(np.floor(10 * predicted), 9)
        expected = [
            (predicted[group == g].mean(), happened[group == g].mean()) for g in np.unique(group)
        ]
        (curve,) = (c for c in ax.containers if hasattr(c, "has_yerr"))
        np.testing.assert_allclose(curve[0].get_xydata(), expected, atol=1e-12)
        assert legend(ax)[0] == f"{len(cases):,} cases (log scale)"
        sizes = [(group == g).mean() for g in np.unique(group)]
        distance = sum(n * abs(p - h) for n, (p, h) in zip(sizes, expected, strict=True))
        assert legend(ax)[1] == f"mean distance {distance:.3f}"

    def test_a_true_model_is_calibrated_and_a_sharpened_one_is_not(self):
        true = jp.random_pmf(jp.Domain.of_sizes([3] * 6), 3, 0)
        factors = [f**6 / (f**6).sum(axis=0) for f in true.factors]
        sharp = jp.JointPMF(true.domain, true.weights, factors)
        rows = true.sample(4000, random_state=0)
        distances = [
            float(legend(plots.calibration(pmf, rows))[1].split()[-1]) for pmf in (true, sharp)
        ]
        assert distances[0] < 0.01
        assert distances[1] > 0.1

    def test_one_target_and_a_large_table(self, pmf):
        rows = pmf.sample(500, random_state=0)
        ax = plots.calibration(pmf, rows, "x1", max_cells=100)
        assert legend(ax)[0] == "300 cases (log scale)"
        assert legend(plots.calibration(pmf, rows, max_cells=100))[0] == "297 cases (log scale)"

    def test_surely_right_is_on_the_diagonal(self):
        sure = jp.JointPMF(jp.Domain.of_sizes([2, 2]), [0.5, 0.5], [np.eye(2), np.eye(2)])
        ax = drawn(plots.calibration(sure, [[0, 0], [1, 1]]))
        assert legend(ax) == ["8 cases (log scale)", "mean distance 0.000"]

    def test_nothing_to_predict_is_refused(self, pmf):
        with pytest.raises(jp.JointPMFError, match="no observed cell"):
            plots.calibration(pmf, [[None, 1, 1]], "x0")
        with pytest.raises(jp.JointPMFError, match="no variable 'x9'"):
            plots.calibration(pmf, [[0, 1, 1]], "x9")


class TestErrorByRank:
    def test_means_and_standard_errors_of_splits(self):
        errors = [[0.9, 0.7], [1.0, 0.8], [1.1, 0.6]]
        ax = drawn(plots.error_by_rank([5, 10], errors, label="EM"))
        (curve,) = ax.containers
        np.testing.assert_allclose(curve[0].get_xydata(), [[5, 1.0], [10, 0.7]])
        (bars,) = curve[2]
        half = 0.1 / np.sqrt(3)
        assert bars.get_segments()[0][:, 1] == pytest.approx([1 - half, 1 + half])
        assert legend(ax) == ["EM"]

    def test_other_methods_get_other_colours_and_marks(self):
        ax = None
        for k in range(7):
            ax = plots.error_by_rank([5, 10], [0.9, 0.8], label=str(k), ax=ax)
        looks = [(c[0].get_color(), c[0].get_marker()) for c in ax.containers]
        assert len(set(looks[:6])) == len({colour for colour, _ in looks[:6]}) == 6
        assert looks[6] == looks[0]

    def test_references_are_lines_across_within_the_limits(self):
        levels = {f"${k}$": 0.1 * k for k in range(5)}
        ax = drawn(plots.error_by_rank([5, 10], [0.9, 0.8], references=levels, measure="MAE"))
        found = {label: y for label, (_, y) in lines(ax).items()}
        assert [y[0] for y in found.values()] == pytest.approx(list(levels.values()))
        assert ax.get_ylim()[0] < 0
        assert ax.get_ylabel() == "MAE"
        assert not any(mpl.cbook.is_math_text(text) for text in legend(ax))

    def test_without_names_there_is_no_legend(self):
        assert drawn(plots.error_by_rank([5], [0.9])).get_legend() is None

    def test_what_is_not_finite_is_left_out(self):
        ax = drawn(plots.error_by_rank([5, 10], [[0.9, np.inf], [0.9, 0.8]]))
        assert np.isnan(ax.containers[0][0].get_ydata()).tolist() == [False, True]

    @pytest.mark.parametrize(
        ("ranks", "errors", "message"),
        [
            ([5, 10], [0.9], r"shape \(2,\) or \(splits, 2\), one for each rank, not \(1,\)"),
            ([5], [[[0.9]]], "one for each rank"),
            ([], [], "one for each rank"),
            (["five"], [0.9], "must be numbers"),
            ([5], ["low"], "must be numbers"),
        ],
    )
    def test_bad_errors(self, ranks, errors, message):
        with pytest.raises(jp.JointPMFError, match=message):
            plots.error_by_rank(ranks, errors)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"label": 5}, "label must be text, not 5"),
            ({"measure": None}, "measure must be text, not None"),
            ({"references": {5: 0.1}}, "the name of a reference must be text, not 5"),
            ({"references": [0.1]}, r"references must map names to errors, not \[0.1\]"),
            ({"references": 0.1}, "references must map names"),
        ],
    )
    def test_bad_options(self, options, message):
        with pytest.raises(jp.JointPMFError, match=message):
            plots.error_by_rank([5], [0.9], **options)
        assert not plt.get_fignums()

    @pytest.mark.parametrize("level", [np.nan, "low", None])
    def test_bad_references(self, level):
        with pytest.raises(jp.JointPMFError, match="the error of 'BMF' must be a number"):
            plots.error_by_rank([5], [0.9], references={"BMF": level})


def panels(figure):
    """Return, for each panel, its title and a row of shares for each of its bars."""
    figure.canvas.draw()
    found = {}
    for ax in figure.axes:
        parts = [[bar.get_width() for bar in level] for level in ax.containers]
        found[ax.get_title("left")] = np.array(parts).T
    return found


def texts_of(figure):
    """Return all texts of legends, of the figure and of its panels."""
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    return [text.get_text() for legend in legends for text in legend.get_texts()]


class TestProfiles:
    def test_every_bar_is_a_distribution_and_the_first_is_that_of_all_rows(self, pmf):
        figure = plots.profiles(pmf)
        assert plt.get_fignums() == [1]
        found = panels(figure)
        assert list(found) == list(pmf.domain.names)
        for (_, shares), factor in zip(found.items(), pmf.factors, strict=True):
            np.testing.assert_allclose(shares[0], factor @ pmf.weights)
            np.testing.assert_allclose(shares[1:], factor.T)

    def test_parts_of_a_bar_follow_each_other(self, pmf):
        for ax in plots.profiles(pmf).axes:
            begins = np.array([[bar.get_x() for bar in level] for level in ax.containers])
            widths = np.array([[bar.get_width() for bar in level] for level in ax.containers])
            np.testing.assert_allclose(begins[0], 0)
            np.testing.assert_allclose(begins[1:], (begins + widths)[:-1])

    def test_bars_have_the_names_and_sizes_of_components(self, pmf):
        named = pmf.reordered(names=["many", "some", "f" * 90])
        figure = plots.profiles(named)
        labels = ticks(figure.axes[0].yaxis)
        sizes = [f"{weight:.1%}" for weight in named.weights]
        assert labels[:3] == ["all rows", f"many  {sizes[0]}", f"some  {sizes[1]}"]
        assert labels[3].startswith("fff")
        assert labels[3].endswith(f"…  {sizes[2]}")
        assert ticks(plots.profiles(pmf).axes[0].yaxis)[1] == f"0  {pmf.weights[0]:.1%}"

    def test_levels_are_named_once_if_all_variables_share_them(self, pmf):
        assert texts_of(plots.profiles(pmf)) == ["0", "1", "0", "1", "2", "0", "1", "2", "3"]
        same = jp.random_pmf(jp.Domain.of_sizes([3] * 7), 2, 0)
        assert texts_of(plots.profiles(same)) == ["0", "1", "2"]

    def test_of_many_levels_some_are_named_with_the_ends(self):
        wide = jp.random_pmf(jp.Domain.of_sizes([100]), 2, 0)
        texts = texts_of(plots.profiles(wide))
        assert (texts[0], texts[-1]) == ("0", "99")
        assert len(texts) == 8

    def test_a_large_model_is_cut_and_says_so(self):
        large = jp.random_pmf(jp.Domain.of_sizes([2] * 40), 15, 0)
        figure = plots.profiles(large)
        assert len(panels(figure)) == 30
        said = figure.get_suptitle()
        assert "30 of 40 variables (those that tell most)" in said
        assert "12 of 15 components" in said
        shares = panels(plots.profiles(large, ["x7"]))["x7"]
        heaviest = np.sort(np.argsort(-large.weights)[:12])
        np.testing.assert_allclose(shares[1:], large.factors[7].T[heaviest])

    def test_the_variables_asked_for_are_drawn_in_their_order(self, pmf):
        assert list(panels(plots.profiles(pmf, ["x2", "x0"]))) == ["x2", "x0"]
        with pytest.raises(jp.JointPMFError, match="no variable 'x9'"):
            plots.profiles(pmf, ["x9"])
        with pytest.raises(jp.JointPMFError, match="no variable to draw"):
            plots.profiles(pmf, [])

    def test_it_draws_where_it_is_told_to(self, pmf):
        figure = Figure()
        assert plots.profiles(pmf, figure=figure) is figure
        part = Figure(layout="constrained").subfigures(1, 2)[1]
        assert plots.profiles(pmf, figure=part) is part
        assert not plt.get_fignums()
        with pytest.raises(jp.JointPMFError, match="figure must be a Figure"):
            plots.profiles(pmf, figure=figure.axes[0])

    def test_hostile_names_are_drawn_as_text(self):
        domain = jp.Domain([jp.Variable(text, (text, "b" * 500)) for text in HOSTILE])
        names = [text for text in HOSTILE if text][:3]
        bad = jp.random_pmf(domain, 3, 0).reordered(names=names)
        titles = list(panels(plots.profiles(bad)))
        assert len(titles) == len(HOSTILE)
        assert max(map(len, titles)) < 40

    def test_the_users_settings_stay(self, pmf):
        before = dict(mpl.rcParams)
        plots.profiles(pmf)
        assert dict(mpl.rcParams) == before

    def test_one_component_of_one_level(self):
        found = panels(plots.profiles(jp.random_pmf(jp.Domain.of_sizes([1]), 1, 0)))
        np.testing.assert_allclose(found["x0"], [[1], [1]])


def test_heads_of_factors_are_names_of_components(pmf):
    ax = drawn(plots.factors(pmf.reordered(names=["many", "some", "few"])))
    assert [text.split("\n")[0] for text in ticks(ax.xaxis)] == ["many", "some", "few"]


class TestTraits:
    def arrows(self, ax):
        """Return how far each arrow goes, in the order in which they were drawn."""
        (quiver,) = (one for one in ax.collections if isinstance(one, mpl.quiver.Quiver))
        return np.column_stack([quiver.U, quiver.V])

    def texts(self, ax):
        return {text.get_text(): text for text in ax.texts}

    def test_arrows_are_loadings(self):
        pmf = pmf_of(planted())
        ax = drawn(plots.traits(pmf))
        labels = ["mood", "party: left", "party: middle", "party: right", "member: true", "age"]
        texts = self.texts(ax)
        assert set(texts) == set(labels)
        tips = np.array([texts[label].xy for label in labels])
        slopes = pmf.loadings().select("trait 0", "trait 1").to_numpy()
        longest = np.hypot(*slopes.T).max()
        np.testing.assert_allclose(tips, slopes * np.hypot(*tips.T).max() / longest)
        np.testing.assert_allclose(np.sort(self.arrows(ax), axis=0), np.sort(tips, axis=0))
        assert f"longest arrow: {longest:.2g} log-odds per sd" in ax.get_title(loc="left")

    def test_dots_are_rows(self):
        pmf = pmf_of(planted())
        rows = pmf.sample(50, random_state=0)
        ax = drawn(plots.traits(pmf, rows))
        dots = ax.collections[0].get_offsets()
        np.testing.assert_allclose(dots, pmf.traits(rows).select("trait 0", "trait 1").to_numpy())
        assert "% of what the traits move" in ax.get_xlabel()

    def test_many_rows_are_a_density(self):
        pmf = pmf_of(planted())
        ax = drawn(plots.traits(pmf, pmf.sample(2500, random_state=0)))
        assert ax.collections[0].get_array().sum() == 2500

    def test_some_variables_can_be_asked_for(self):
        ax = plots.traits(pmf_of(planted()), names=["age", "member"])
        assert set(self.texts(ax)) == {"age", "member: true"}
        with pytest.raises(jp.JointPMFError, match="no variable to draw"):
            plots.traits(pmf_of(planted()), names=["only"])
        with pytest.raises(jp.JointPMFError, match="weather"):
            plots.traits(pmf_of(planted()), names=["weather"])

    def test_of_many_arrows_the_longest_are_drawn(self):
        pmf = pmf_of(planted(jp.Domain.of_sizes([2] * 80), 64))
        ax = drawn(plots.traits(pmf))
        assert len(ax.texts) == 50
        assert "50 of 80 arrows (the longest)" in ax.get_title(loc="left")
        assert len(plots.traits(pmf, names=pmf.domain.names).texts) == 80

    @pytest.mark.parametrize("count", [5, 25, 50])
    def test_no_name_is_on_another_or_outside(self, count):
        names = [f"a statement that people agree with, number {k}" for k in range(count)]
        domain = jp.Domain([jp.Variable(name, (1, 2, 3, 4, 5, 6)) for name in names])
        ax = drawn(plots.traits(pmf_of(planted(domain, 64, seed=count))))
        texts = [mpl.text.Text.get_window_extent(text) for text in ax.texts]  # without their lines
        assert len(texts) == count
        for k, one in enumerate(texts):
            assert ax.figure.bbox.x0 <= one.x0
            assert one.x1 <= ax.figure.bbox.x1
            assert not any(one.overlaps(other) for other in texts[:k])

    def test_one_trait_has_a_picture_too(self):
        pmf = pmf_of(planted(n_traits=1))
        ax = drawn(plots.traits(pmf, pmf.sample(30, random_state=0)))
        assert (self.arrows(ax)[:, 1] == 0).all()
        assert len({round(text.xy[1], 6) for text in ax.texts}) == 6
        assert ax.get_ylabel() == "heights mean nothing"

    def test_a_model_in_which_nothing_moves_can_be_drawn(self):
        model = planted()
        flat = replace(model, coefficients=np.zeros_like(model.coefficients))
        drawn(plots.traits(pmf_of(flat)))

    def test_hostile_names_are_drawn_as_text(self):
        domain = jp.Domain([jp.Variable(text, (text, "$\\bad{$", "c")) for text in HOSTILE])
        ax = drawn(plots.traits(pmf_of(planted(domain, 32)), ax=Figure().subplots()))
        assert max(map(len, self.texts(ax))) < 50
        assert not any(mpl.cbook.is_math_text(text) for text in self.texts(ax))

    def test_free_components_have_no_map(self):
        with pytest.raises(jp.JointPMFError, match="components of this model are free"):
            plots.traits(jp.random_pmf(MIXED, 2, 0))
        assert not plt.get_fignums()
