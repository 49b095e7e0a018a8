"""Intervals where people see them: the explorer, the report, notebooks, plots and the command.

Every number on a page is compared with what `Uncertainty` answers in Python.
"""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt

import jointpmf as jp
from jointpmf import plots
from jointpmf.command.main import main
from jointpmf.judge.replicate_file import replicates_path
from jointpmf.judge.uncertainty import Uncertainty
from jointpmf.show.explorer.packing import packed
from jointpmf.show.notebook import uncertainty_html
from jointpmf.show.text import range_text
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

PART_OF_WIDTH = 0.05
"""How far from Python's the ends of an interval may be in the page, by its width: replicates that
are as stored on the other side of the estimate move both ends by as much."""

COMMAND = Path(sys.executable).with_name("jointpmf")

DOMAIN = jp.Domain([jp.Variable("a", ("x", "y", "z")), jp.Variable("b", (1, 2, 3, 4))])


def uncertainty_of(pmf, models, reference=None):
    """Return an uncertainty of these replicates; the reference differs from the model too."""
    return Uncertainty(
        pmf,
        np.array([one.weights for one in models]),
        np.array([np.concatenate(one.factors) for one in models]),
        np.full(len(models), models[0].rank == pmf.rank),
        reference or models[0],
        "bayesian",
    )


def made_up(n, rank=2, own_rank=2, domain=DOMAIN):
    models = [jp.random_pmf(domain, rank, seed) for seed in range(1, n + 2)]
    return uncertainty_of(jp.random_pmf(domain, own_rank, 0), models[1:], models[0])


def ends_in(frame):
    return frame.select("low", "high").to_numpy().clip(0, 1)


def check_ends(found, expected):
    """Compare intervals with those of Python; what moves them is how replicates are stored."""
    width = expected[:, 1:] - expected[:, :1]
    assert (np.abs(np.array(found) - expected) <= PART_OF_WIDTH * width + 1e-7).all()


def numbers_in(text):
    return [float(one) for one in re.findall(r"\d+(?:\.\d+)?", text)]


def percents(*shares):
    """Return what numbers of a text must be near: the last digit may be rounded either way."""
    return pytest.approx([100 * float(share) for share in shares], abs=0.06)


class TestExplorer:
    @pytest.mark.parametrize(
        ("fragment", "given"),
        [
            ("", {}),
            ("given=vote:Dole", {"vote": "Dole"}),
            (
                "given=party:weak%20Republican,strong%20Republican;own%20view:4,5,6;age:<31",
                {
                    "party": {"weak Republican", "strong Republican"},
                    "own view": {4, 5, 6},
                    "age": 25,
                },
            ),
            (  # very rare, so that small numbers matter
                "given=party:independent;own%20view:1;education:PhD;vote:Dole",
                {"party": "independent", "own view": 1, "education": "PhD", "vote": "Dole"},
            ),
        ],
    )
    def test_they_are_those_of_python_under_any_evidence(self, explore, sure, fragment, given):
        page = explore(sure.pmf, fragment, sure=sure)
        for name in sure.pmf.domain.names:
            if name not in given:
                expected = ends_in(sure.marginal([name], given))
                assert (expected[:, 1] > expected[:, 0]).all()
                check_ends(page.ask("jointpmf.interval(a[0])", name), expected)

    @pytest.mark.parametrize("n", [2, 3, 19, 40])
    def test_of_few_replicates_too(self, explore, n):
        sure = made_up(n)
        page = explore(sure.pmf, "given=a:x,z", sure=sure)
        expected = ends_in(sure.marginal(["b"], {"a": {"x", "z"}}))
        check_ends(page.ask("jointpmf.interval('b')"), expected)
        within = sure.interval(
            lambda pmf: pmf.marginal(["a"]).table() / pmf.marginal(["a"]).table()[[0, 2]].sum()
        )
        found = page.ask("jointpmf.interval('a')")
        check_ends([found[0], found[2]], ends_in(within)[[0, 2]])
        assert found[1] == [0, 0]

    def test_replicates_of_an_average_may_have_another_rank(self, explore):
        sure = made_up(20, rank=2, own_rank=4)
        page = explore(sure.pmf, "given=a:y", sure=sure)
        expected = ends_in(sure.marginal(["b"], {"a": "y"}))
        check_ends(page.ask("jointpmf.interval('b')"), expected)
        page.page.locator("#tab-components").click()
        assert page.page.locator("#components .of-level").count() == 7
        assert page.page.locator("#components .between").count() == 0

    def test_whiskers_are_where_the_intervals_are_and_the_text_says_them(self, explore, sure):
        page = explore(sure.pmf, "given=party:independent", sure=sure)
        frame = sure.marginal(["education"], {"party": "independent"})
        bars = page.card("education").locator(".level")
        assert bars.count() == 7
        for k, (low, high) in enumerate(ends_in(frame)):
            title = bars.nth(k).get_attribute("title").removeprefix("90 % interval: ")
            assert numbers_in(title) == percents(low, high)
            whisker = bars.nth(k).locator(".whisker").bounding_box()
            ground = bars.nth(k).locator(".bars").bounding_box()
            share = float(bars.nth(k).get_attribute("data-probability"))
            length = bars.nth(k).locator(".now").bounding_box()["width"]
            unit = length / share
            assert whisker["width"] == pytest.approx(unit * (high - low), abs=3.5)
            assert whisker["x"] - ground["x"] - 1 == pytest.approx(unit * low, abs=1.5)
        mean = sure.interval(
            lambda pmf: float(
                pmf.condition({"party": "independent"}).marginal(["own view"]).table()
                @ pmf.domain["own view"].values
            )
        )
        low, high = mean["low"][0], mean["high"][0]
        text = page.card("own view").locator(".mean").text_content()
        assert numbers_in(text)[:3] == pytest.approx([mean["estimate"][0], low, high], abs=0.002)
        assert re.fullmatch(r"mean [\d.]+ \([\d.]+–[\d.]+\), was [\d.]+", text)
        low, high = ends_in(sure.marginal(["party"]))[3]
        assert numbers_in(page.text("probability-interval")) == percents(low, high)

    def test_what_is_certain_has_no_whisker(self, explore):
        sure = made_up(9)
        page = explore(sure.pmf, "given=a:y", sure=sure)
        assert page.card("a").locator(".whisker:visible").count() == 0
        assert page.card("b").locator(".whisker:visible").count() == 4

    def test_a_box_hides_them_and_that_is_remembered(self, explore, sure):
        page = explore(sure.pmf, "given=vote:Dole", sure=sure)
        box = page.page.get_by_label("intervals")
        assert box.is_checked()
        assert page.page.locator(".whisker:visible").count() > 20
        before = page.bar("age", 0).get_attribute("title")
        assert before.startswith("90 % interval: ")
        box.uncheck()
        assert page.page.locator(".whisker:visible").count() == 0
        assert page.bar("age", 0).get_attribute("title") == ""
        assert page.text("probability-interval") == ""
        assert "(" not in page.card("own view").locator(".mean").text_content()
        page.go("given=vote:Dole")
        assert not box.is_checked()
        assert page.page.locator(".whisker:visible").count() == 0
        box.check()
        assert page.bar("age", 0).get_attribute("title") == before
        page.go()
        assert page.page.locator(".whisker:visible").count() > 20

    def test_components_have_theirs(self, explore, sure):
        page = explore(sure.pmf, "view=components", sure=sure)
        lines = page.page.locator("#components tr").all()
        cells = [line.locator("th, td").all_text_contents() for line in lines[:6]]
        for line, frame in ((1, sure.sizes()), (5, sure.profiles(["party"]).head(4))):
            for text, (one, low, high) in zip(
                cells[line][1:], frame.select("estimate", "low", "high").rows(), strict=True
            ):
                assert re.fullmatch(r"[\d.]+ % \([\d.]+–[\d.]+\)", text)
                assert numbers_in(text) == percents(one, max(low, 0), high)
        n_unclear = len(sure) - int(sure.is_clear.sum())
        said = f"Of {n_unclear} of 200 replicates it is not clear which component is which."
        assert (said in page.text("components-about")) == (n_unclear > 0)
        page.page.get_by_label("intervals").uncheck()
        assert page.page.locator("#components .between").count() == 0

    def test_files_hold_them(self, explore):
        sure = made_up(9)
        page = explore(sure.pmf, "given=a:y&view=code", sure=sure)
        with page.page.expect_download() as download:
            page.page.locator("#tables-csv").click()
        rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
        found = [[float(row["low"]), float(row["high"])] for row in rows if row["variable"] == "b"]
        check_ends(found, ends_in(sure.marginal(["b"], {"a": "y"})))

    def test_where_a_replicate_finds_the_evidence_impossible_it_is_said(self, explore):
        sure = made_up(9)
        factors = sure.factors.copy()
        factors[2, :3] = [[0, 0], [0.5, 0.5], [0.5, 0.5]]  # a is never x
        other = Uncertainty(
            sure.pmf, sure.weights, factors, sure.is_clear, sure.reference, "bayesian"
        )
        page = explore(sure.pmf, "given=a:x", sure=other)
        assert "No intervals: in 1 of 9 replicates these never occur together." in page.text(
            "chips"
        )
        assert page.page.locator(".whisker:visible").count() == 0
        assert page.ask("jointpmf.interval('b')") == [None] * 4
        page.page.locator("#clear").click()
        assert page.page.locator(".whisker:visible").count() == 7

    def test_names_stay_text(self, explore):
        domain = jp.Domain([jp.Variable(name, tuple(HOSTILE)) for name in HOSTILE[:3]])
        sure = made_up(5, domain=domain)
        page = explore(sure.pmf, sure=sure)
        assert page.page.locator(".whisker:visible").count() > 20

    def test_without_replicates_there_is_nothing_of_it(self, explore, sure):
        page = explore(sure.pmf, "given=vote:Dole")
        assert page.page.locator("#intervals-label").is_hidden()
        assert page.page.locator(".whisker:visible").count() == 0
        assert page.bar("age", 0).get_attribute("title") in (None, "")
        assert page.ask("jointpmf.interval('age')") == [None] * 6
        text = page.path.read_text()
        assert len(re.findall("<script", text)) == 3
        described = json.loads(re.search(r'id="description">(.*?)</script>', text, re.DOTALL)[1])
        assert "replicates" not in described

    def test_the_survey_with_200_replicates_is_below_a_megabyte(self, sure, tmp_path):
        assert len(sure) == 200
        sure.pmf.explore(tmp_path / "survey.html", uncertainty=sure)
        assert (tmp_path / "survey.html").stat().st_size < 500_000

    @pytest.mark.parametrize(("device", "size"), [("desktop", DESKTOP), ("phone", PHONE)])
    def test_everyone_can_use_it(self, explore, sure, device, size):
        LEFT.mkdir(parents=True, exist_ok=True)
        phone = {"has_touch": True, "is_mobile": True} if device == "phone" else {}
        given = "given=party:weak%20Republican,strong%20Republican;own%20view:4,5,6&sort=moved"
        page = explore(sure.pmf, given, size=size, name="survey", sure=sure, **phone)
        for view in ("components", "variables"):
            page.page.locator(f"#tab-{view}").click()
            for scheme in SCHEMES:
                page.page.emulate_media(color_scheme=scheme)
                page.settle()
                assert page.ask("document.documentElement.scrollWidth <= innerWidth")
                page.page.screenshot(path=LEFT / f"intervals_{device}_{scheme}_{view}.png")
                if AXE.exists():
                    assert faults_for_axe(page.page, scheme) == [], (view, scheme)
        for control in ("sort", "several", "intervals", "theme", "clear"):
            box = page.page.locator(f"#{control}").bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= size[0]
        if not AXE.exists():
            skip_or_fail("axe-core is not installed; `make test` installs it where npm is")

    @pytest.mark.parametrize("kind", ["explorer", "report", "plot"])
    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ("sure", "must be what Solution.uncertainty returns, not 'sure'"),
            (made_up(2), "the uncertainty is that of another model"),
            (made_up(2, domain=jp.Domain.of_sizes([2])), "is that of another model"),
        ],
    )
    def test_what_is_no_uncertainty_of_the_model_is_said(self, tmp_path, kind, given, said):
        pmf = jp.random_pmf(DOMAIN, 2, 99)
        fit = jp.Solution(pmf, jp.Status.CONVERGED, 1.0, [])
        asked = {
            "explorer": lambda: pmf.explore(tmp_path / "page.html", uncertainty=given),
            "report": lambda: fit.report(tmp_path / "page.html", uncertainty=given),
            "plot": lambda: plots.profiles(pmf, uncertainty=given),
        }
        with pytest.raises(jp.JointPMFError, match=re.escape(said)):
            asked[kind]()
        assert not list(tmp_path.iterdir())


class TestPacking:
    @pytest.mark.parametrize(("least", "most"), [(1 / 3, 3e-5), (1e-6, 2e-4), (1e-40, 6e-4)])
    def test_a_number_is_moved_by_little_of_itself(self, least, most):
        generator = np.random.default_rng(0)
        sure = made_up(50)
        factors = least ** generator.random(sure.factors.shape)
        factors[::3, 1] = 0
        own = Uncertainty(
            sure.pmf, sure.weights, factors, sure.is_clear, sure.reference, "bayesian"
        )
        numbers = np.concatenate([sure.weights, factors.reshape(50, -1)], axis=1)
        size = numbers.shape[1]
        content = packed(own)
        around, low, high = np.frombuffer(content[: 24 * size], "<f8").reshape(3, size)
        places = np.frombuffer(content[24 * size :], "<u2").reshape(50, size).astype(float)
        found = np.exp(low + (places - 1) / 65534 * (high - low))
        found[places == 0] = 0
        np.testing.assert_array_equal(found == 0, numbers == 0)
        kept = numbers[:, 2:].clip(np.where(numbers[:, 2:] > 0, 1e-30, 0))
        assert (np.abs(found[:, 2:] - kept) <= most * kept).all()
        assert np.abs(found - numbers).max() > 1e-12  # it is packed
        np.testing.assert_array_equal(around[:2], sure.reference.weights)

    def test_what_never_varies_is_exact_but_for_rounding(self):
        sure = uncertainty_of(jp.random_pmf(DOMAIN, 1, 0), [jp.random_pmf(DOMAIN, 1, 0)] * 2)
        content = packed(sure)
        _, low, high = np.frombuffer(content[: 24 * 8], "<f8").reshape(3, 8)
        np.testing.assert_array_equal(low, high)
        np.testing.assert_allclose(np.exp(low[1:]), np.concatenate(sure.pmf.factors)[:, 0])


@pytest.fixture(scope="module")
def report(fit, table, sure, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "fit.html"
    fit.report(path, table, uncertainty=sure)
    return path


def whiskers_in(content, kind):
    """Return the ends of the whiskers of each bar of a kind, in percent of its length."""
    return [
        [[float(one) for one in pair] for pair in re.findall(r"M([\d.e-]+) [\d.]+H([\d.e-]+)", bar)]
        for bar in re.findall(rf'<svg class="{kind}".*?</svg>', content, re.DOTALL)
    ]


class TestReport:
    def test_whiskers_are_where_parts_may_end(self, report, sure):
        content = report.read_text()
        drawn = whiskers_in(content, "stacked")
        pmf = sure.pmf
        assert len(drawn) == len(pmf.domain) * (1 + pmf.rank)
        frame = sure.interval(
            lambda one: np.concatenate(
                [
                    np.column_stack([f @ one.weights, f]).cumsum(axis=0)[:-1].T.ravel()
                    for f in one.factors
                ]
            )
        )
        found = np.concatenate([np.reshape(bar, (-1, 2)) for bar in drawn])
        expected = np.clip(ends_in(frame), 0, 1)
        np.testing.assert_allclose(found, 100 * expected, rtol=1e-3, atol=1e-3)

    def test_sizes_have_errors_and_intervals(self, report, sure):
        content = report.read_text()
        for _, weight, se, low, high in sure.sizes().rows():
            text = f" ± {100 * se:.1f} ({range_text(low, high)})"
            cell = f'{100 * weight:.1f} %<span class="interval">{text}</span>'
            assert content.count(cell) == 1  # in the table
            assert content.count(f'<span class="interval">{text}</span>') == 2
        drawn = [ends for ends in whiskers_in(content, "bar") if ends]
        order = sure.sizes().sort("estimate", descending=True)
        expected = 100 * ends_in(order) / order["high"].max()
        np.testing.assert_allclose(np.concatenate(drawn), expected, rtol=1e-3)

    def test_the_table_of_profiles_has_them(self, report, sure):
        content = report.read_text()
        for _, variable, level, one, _, low, high in sure.profiles(["vote", "education"]).rows():
            cell = f'{100 * one:.1f} % <span class="interval">({range_text(low, high)})</span>'
            line = next(
                part for part in content.split("<tr>") if f"<bdi>{level}</bdi></th>" in part
            )
            assert variable in line
            assert cell in line

    def test_it_says_where_they_come_from(self, report):
        content = report.read_text()
        assert "are 90 % intervals" in content
        assert "from 200 fits to the same rows with random weights (Bayesian bootstrap)" in content
        assert len(content) < 1_000_000

    def test_a_box_hides_them_without_a_script(self, browser, report):
        page = browser.new_page()
        page.goto(report.as_uri())
        seen = ":is(.whisker, .interval):visible"
        n_seen = page.locator(seen).count()
        assert n_seen > 50
        box = page.get_by_label("Show intervals")
        box.uncheck()
        assert page.locator(seen).count() == 0
        assert page.locator(".stacked").first.is_visible()
        box.check()
        assert page.locator(seen).count() == n_seen
        page.close()

    def test_everyone_can_read_it(self, browser, report):
        if not AXE.exists():
            skip_or_fail("axe-core is not installed; `make test` installs it where npm is")
        page = browser.new_page()
        page.goto(report.as_uri())
        page.locator("summary").click()
        LEFT.mkdir(parents=True, exist_ok=True)
        for device, (width, height) in (("desktop", DESKTOP), ("phone", PHONE)):
            for scheme in SCHEMES:
                page.set_viewport_size({"width": width, "height": height})
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                path = LEFT / f"report_intervals_{device}_{scheme}.png"
                page.screenshot(path=path, full_page=True)
                assert faults_for_axe(page, scheme) == [], (device, scheme)
        page.close()

    def test_without_them_there_is_nothing_of_it(self, fit, table, tmp_path):
        fit.report(tmp_path / "fit.html", table)
        content = (tmp_path / "fit.html").read_text()
        body = content.split("</style>")[1]
        assert "whisker" not in body
        assert "interval" not in body
        assert 'id="intervals"' not in body

    def test_bars_of_many_levels_have_none_but_the_table_does(self, tmp_path):
        sure = made_up(5, domain=jp.Domain.of_sizes([8, 9]))
        fit = jp.Solution(sure.pmf, jp.Status.CONVERGED, 1.0, [])
        fit.report(tmp_path / "fit.html", uncertainty=sure)
        content = (tmp_path / "fit.html").read_text()
        assert [len(one) for one in whiskers_in(content, "stacked")] == [7, 7, 7, 0, 0, 0]
        low, high = ends_in(sure.profiles(["x1"]))[-1]
        assert f'<span class="interval">({range_text(low, high)})</span>' in content
        figure = plots.profiles(sure.pmf, uncertainty=sure)
        assert [len(ax.collections) for ax in figure.axes] == [14, 0]
        plt.close("all")

    def test_an_average_says_why_it_has_none(self, tmp_path):
        sure = made_up(5, rank=2, own_rank=4)
        fit = jp.Solution(sure.pmf, jp.Status.CONVERGED, 1.0, [], n_averaged=2)
        fit.report(tmp_path / "fit.html", uncertainty=sure)
        body = (tmp_path / "fit.html").read_text().split("</style>")[1]
        assert "an average has others than its replicates" in body
        assert "whisker" not in body


class TestOthers:
    def test_a_notebook_shows_the_first_variables(self, sure):
        text = re.sub("<[^>]*>", " ", uncertainty_html(sure))
        text = " ".join(text.split())
        assert "Uncertainty: 200 replicates" in text
        assert "Bayesian bootstrap" in text
        for name in sure.pmf.domain.names[:8]:
            best = sure.marginal([name]).sort("estimate").row(-1)
            level, one, se, low, high = best
            cells = f"{100 * one:.1f} % {100 * se:.1f} {range_text(low, high)}"
            assert f"{name} {level} {cells}".replace("'", "&#x27;") in text
        assert "and 2 more variables" in text

    def test_a_notebook_shows_names_as_text(self):
        domain = jp.Domain([jp.Variable(name, tuple(HOSTILE)) for name in HOSTILE[:5]])
        content = uncertainty_html(made_up(5, domain=domain))
        assert "<script" not in content
        assert "<img" not in content

    def test_profiles_are_drawn_with_error_bars(self, sure):
        names = ["education", "vote"]
        figure = plots.profiles(sure.pmf, names, uncertainty=sure)
        frame = sure.interval(
            lambda pmf: np.concatenate(
                [
                    np.column_stack([f @ pmf.weights, f]).cumsum(axis=0)[:-1].ravel()
                    for f in pmf.marginal(names).factors
                ]
            )
        )
        drawn = np.concatenate(
            [
                np.array(bar.get_segments())[:, :, 0]
                for ax in figure.axes
                for bar in ax.collections[::2]  # each on top of one that is white
            ]
        )
        np.testing.assert_allclose(drawn, ends_in(frame), atol=1e-12)
        assert "90 % intervals" in figure.get_suptitle()
        plain = plots.profiles(sure.pmf, names)
        assert not any(ax.collections for ax in plain.axes)
        plt.close("all")

    def test_profiles_of_an_average_cannot_be(self):
        sure = made_up(5, rank=2, own_rank=4)
        with pytest.raises(jp.JointPMFError, match="have other components than the model"):
            plots.profiles(sure.pmf, uncertainty=sure)


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        sure = made_up(9)
        sure.pmf.save("m.safetensors")
        sure.save(replicates_path("m.safetensors"))
        sure.pmf.sample(50, random_state=0).write_csv("rows.csv")
        return tmp_path

    def run(self, *arguments):
        with pytest.raises(SystemExit) as ended:
            main([*arguments])
        return ended.value.code

    def test_replicates_beside_the_model_are_used(self, folder, capsys):
        assert self.run("explore", "m.safetensors") == 0
        assert self.run("report", "m.safetensors", "rows.csv") == 0
        assert capsys.readouterr().err == ""
        sure = Uncertainty.load(replicates_path("m.safetensors"))
        sure.pmf.explore("other.html", "m.safetensors", uncertainty=sure)
        assert (folder / "m.html").read_bytes() == (folder / "other.html").read_bytes()
        assert 'id="replicates"' in (folder / "m.html").read_text()
        assert "Show intervals" in (folder / "m-report.html").read_text()

    def test_without_them_there_are_none(self, folder):
        replicates_path("m.safetensors").unlink()
        assert self.run("explore", "m.safetensors") == 0
        assert self.run("report", "m.safetensors", "rows.csv") == 0
        assert 'id="replicates"' not in (folder / "m.html").read_text()
        assert "Show intervals" not in (folder / "m-report.html").read_text()

    @pytest.mark.parametrize("damage", ["other", "broken"])
    def test_those_of_no_use_are_a_warning(self, folder, capsys, damage):
        if damage == "other":
            jp.random_pmf(DOMAIN, 2, 77).save("m.safetensors")
        else:
            replicates_path("m.safetensors").write_bytes(b"nothing")
        for arguments in (["explore", "m.safetensors"], ["report", "m.safetensors", "rows.csv"]):
            assert self.run(*arguments) == 0
            said = " ".join(capsys.readouterr().err.split())
            assert "m.replicates.safetensors" in said
            assert said.endswith("no intervals are shown")
        assert 'id="replicates"' not in (folder / "m.html").read_text()

    def test_a_model_from_stdin_has_none(self, folder):
        with open("m.safetensors", "rb") as model:
            done = subprocess.run(
                [COMMAND, "explore", "-", "-o", "-"], stdin=model, capture_output=True
            )
        assert done.returncode == 0
        assert b'id="replicates"' not in done.stdout
