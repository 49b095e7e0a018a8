"""What the explorer's page looks like: cards, the strip of components, stacked bars, the map.

Screenshots are left in build/explorer.
"""

import ast
import contextlib
import csv
import io
import json
import math
import re
import shlex

import numpy as np
import pandas as pd
import pytest

import jointpmf as jp
from jointpmf.command.main import main
from jointpmf.judge.pairs import pairs_of
from jointpmf.judge.uncertainty import Uncertainty
from support.browser import AXE, DESKTOP, HOSTILE, LEFT, SCHEMES, faults_for_axe, skip_or_fail

VIEWS = ["variables", "dependencies", "components", "rows", "code"]
WIDE, PHONE, SMALL_PHONE = (1440, 900), (390, 844), (375, 740)
TOUCH = {"has_touch": True, "is_mobile": True}

ITEMS = [
    f"I see myself as someone who {what}"
    for what in (
        "tries to remember what others have told me",
        "tries to remember where things are kept at home",
        "talks a lot",
        "worries",
    )
]


@pytest.fixture(scope="module")
def questionnaire():
    """Return a model of 24 items with long names and an ordered scale each."""
    names = [f"{ITEMS[k % 4]}, question {k}" for k in range(24)]
    domain = jp.Domain([jp.Variable(name, (1, 2, 3, 4, 5, 6)) for name in names])
    return jp.random_pmf(domain, 4, 0)


@pytest.fixture(scope="module")
def small():
    domain = jp.Domain(
        [
            jp.Variable("party", ("left", "middle", "right")),
            jp.Variable("rating", (1, 2, 3, 4, 5)),
            jp.Variable("answer", ("I strongly agree with it", "I am not quite sure", "no")),
        ]
    )
    return jp.random_pmf(domain, 3, 0)


def boxes(page, selector):
    """Return where all elements of a kind are."""
    return page.ask(
        "[...document.querySelectorAll(a[0])].map((e) => e.getBoundingClientRect().toJSON())",
        selector,
    )


def check_distributions(page, pmf, evidence):
    """Compare what the page says of all variables that are not given with Python."""
    conditioned = pmf.condition(evidence)
    for name in conditioned.domain.names:
        expected = conditioned.marginal([name]).table()
        found = page.ask("jointpmf.distribution(a[0])", name)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


class TestCards:
    @pytest.mark.parametrize(("size", "touch"), [(WIDE, {}), (PHONE, TOUCH)])
    def test_bars_fill_the_card_and_differences_take_room_only_with_evidence(
        self, explore, small, size, touch
    ):
        page = explore(small, size=size, **touch)
        assert page.page.locator(".moved-by:visible").count() == 0
        card = page.card("rating").bounding_box()["width"]
        before = page.bar("rating", 0).locator(".bars").bounding_box()["width"]
        assert before > 0.6 * card
        long = page.bar("answer", 0).locator(".bars").bounding_box()["width"]
        assert long > 0.9 * page.card("answer").bounding_box()["width"]
        page.bar("party", 0).click()
        assert page.page.locator(".moved-by:visible").count() == 11
        after = page.bar("rating", 0).locator(".bars").bounding_box()["width"]
        assert 0.45 * card < after < before
        assert page.bar("answer", 0).locator(".bars").bounding_box()["width"] == long

    def test_long_names_take_two_lines_and_are_whole(self, explore, questionnaire):
        page = explore(questionnaire, size=WIDE)
        heights = {True: set(), False: set()}
        for name in questionnaire.domain.names[:4]:
            text = page.card(name).locator(".card-name bdi")
            assert text.text_content() == name
            is_whole = text.evaluate("e => e.scrollHeight <= e.clientHeight + 1")
            assert is_whole or len(name) > 75
            heights["talks" in name or "worries" in name].add(text.bounding_box()["height"])
        assert max(heights[False]) > 30

    def test_levels_of_any_length_stay_inside_of_their_card(self, explore):
        levels = ("yes", "a level whose text is so long that it takes a second line", "x" * 300)
        pmf = jp.random_pmf(jp.Domain([jp.Variable("a", levels), jp.Variable("b", (1, 2))]), 2, 0)
        page = explore(pmf, "given=b:1")
        card = page.card("a").bounding_box()
        for level in boxes(page, ".card[data-position='0'] .level > *"):
            assert card["x"] <= level["left"]
            assert level["right"] <= card["x"] + card["width"]
        rows = [page.bar("a", k).bounding_box() for k in range(3)]
        assert rows[0]["y"] + rows[0]["height"] <= rows[1]["y"] + 0.01
        names = boxes(page, ".card[data-position='0'] .level-name")
        assert names[1]["height"] > 1.6 * names[0]["height"]

    def test_how_much_a_card_moved_has_a_unit_and_an_explanation(self, explore, small):
        page = explore(small)
        moved = page.card("rating").locator(".moved")
        assert moved.text_content() == ""
        page.bar("party", 1).click()
        assert re.fullmatch(r"moved \d\.\d{3} nats", moved.text_content())
        assert "Kullback–Leibler" in moved.get_attribute("title")
        by = page.bar("rating", 0).locator(".moved-by")
        assert by.get_attribute("title") == "Percentage points more or fewer than without evidence"


class TestStrip:
    def tile(self, page, component):
        return page.page.locator(".tile").nth(component)

    def test_components_are_evidence(self, explore, small):
        page = explore(small)
        shares = page.page.locator(".tile .share").all_text_contents()
        assert [float(one.removesuffix(" %")) for one in shares] == pytest.approx(
            100 * small.weights, abs=0.051
        )
        self.tile(page, 1).locator(".tile-give").click()
        check_distributions(page, small, {"component": 1})
        assert page.ask("jointpmf.logProbability()") == pytest.approx(math.log(small.weights[1]))
        assert page.page.locator(".chip").all_text_contents() == ["Remove component is 1×"]
        assert "component is 1" in page.text("said")
        self.tile(page, 2).locator(".tile-give").click(modifiers=["Shift"])
        page.bar("party", 0).click()
        check_distributions(page, small, {"component": {1, 2}, "party": "left"})
        rows = page.ask("jointpmf.completion().codes")
        given = small.condition({"component": {1, 2}})
        same = given.most_likely(given={"party": "left"})
        assert jp.encode(same, small.domain).array.tolist() == [rows]
        page.page.locator(".chip").first.click()
        check_distributions(page, small, {"party": "left"})

    def test_they_are_in_the_address_and_in_the_code(
        self, explore, small, tmp_path, monkeypatch, capsys
    ):
        small.save(tmp_path / "model.safetensors")
        monkeypatch.chdir(tmp_path)
        page = explore(small, "given=component:0,2&of=rating&view=code")
        assert page.page.locator("#notice").is_hidden()
        expected = small.condition({"component": {0, 2}}).marginal(["rating"]).table()
        np.testing.assert_allclose(page.ask("jointpmf.distribution('rating')"), expected, atol=1e-9)
        np.testing.assert_allclose(self.printed(page), expected, rtol=0, atol=1e-9)
        with pytest.raises(SystemExit):
            main([*shlex.split(page.text("shell"))[1:], "--json"])
        said = json.loads(capsys.readouterr().out)["distribution"]
        found = [one["probability"] for one in said]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        assert "given=component:0,2" in page.fragment()

    def printed(self, page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(page.text("python"), {})
        return list(ast.literal_eval(printed.getvalue()).values())

    def test_they_can_be_named(self, explore, small, tmp_path, monkeypatch):
        page = explore(small)
        self.name(page, 0, "calm, mostly")
        self.name(page, 2, "<img src=x onerror='window.hacked=1'>")
        names = page.page.locator(".tile .level-name").all_text_contents()
        assert names == ["calm, mostly", "component 1", "<img src=x onerror='window.hacked=1'>"]
        self.tile(page, 0).locator(".tile-give").click()
        assert page.page.locator(".chip").text_content() == "Remove component is calm, mostly×"
        page.go(page.fragment())
        assert page.page.locator(".tile .level-name").all_text_contents() == names
        page.page.locator("#tab-components").click()
        heads = page.page.locator("#components thead tr").first.locator("th").all_text_contents()
        assert heads == ["component", names[0], "1", names[2]]
        page.page.locator("#tab-code").click()
        small.save(tmp_path / "model.safetensors")
        monkeypatch.chdir(tmp_path)
        expected = small.condition({"component": 0}).marginal(["party"]).table()
        np.testing.assert_allclose(self.printed(page), expected, rtol=0, atol=1e-9)
        assert 'names=["calm, mostly", "1", "<img' in page.text("python")

    def name(self, page, component, text, key="Enter"):
        tile = self.tile(page, component)
        tile.locator(".tile-rename").click()
        tile.locator("input").fill(text)
        page.page.keyboard.press(key)
        assert tile.locator("input").is_hidden()
        assert tile.locator(".tile-rename").evaluate("e => e === document.activeElement")

    def test_a_name_can_be_given_up_and_is_nobody_elses(self, explore, small):
        page = explore(small)
        names = page.page.locator(".tile .level-name")
        self.name(page, 0, "calm", "Escape")
        assert names.first.text_content() == "component 0"
        self.name(page, 0, "calm")
        self.name(page, 1, "calm")
        assert names.nth(1).text_content() == "component 1"
        assert page.page.locator("#notice").text_content().startswith("Another component has")
        self.name(page, 1, "0")  # which is free now
        assert names.nth(1).text_content() == "0"
        self.name(page, 0, " ")
        assert names.first.text_content() == "calm"  # its number is another's name
        page.go("names=0:a,7:b,x")
        assert names.first.text_content() == "a"
        assert "“7:b” names no component" in page.text("notice")

    def test_names_of_the_model_are_used(self, explore, small, tmp_path, monkeypatch, capsys):
        named = small.reordered([2, 1, 0], names=["calm", "=x|y", "k" * 500])
        named.save(tmp_path / "model.safetensors")
        monkeypatch.chdir(tmp_path)
        page = explore(named, "view=code&of=party&given=component:calm")
        expected = named.condition({"component": "calm"}).marginal(["party"]).table()
        np.testing.assert_allclose(self.printed(page), expected, rtol=0, atol=1e-9)
        with pytest.raises(SystemExit):
            main([*shlex.split(page.text("shell"))[1:], "--json"])
        said = json.loads(capsys.readouterr().out)["distribution"]
        np.testing.assert_allclose([one["probability"] for one in said], expected, atol=1e-9)
        page.page.locator("#tab-variables").click()
        self.name(page, 0, "tense")
        page.page.locator("#tab-code").click()
        np.testing.assert_allclose(self.printed(page), expected, rtol=0, atol=1e-9)

    def test_a_variable_may_have_the_name_of_the_component(self, explore):
        domain = jp.Domain.of_sizes([2, 3], names=["component", "b"])
        pmf = jp.random_pmf(domain, 2, 0)
        page = explore(pmf, "given=component:1")
        np.testing.assert_allclose(
            page.ask("jointpmf.distribution('b')"), pmf.condition({"component": 1}).table()
        )
        self.tile(page, 0).locator(".tile-give").click()
        page.page.locator(".chip").first.click()
        np.testing.assert_allclose(page.ask("jointpmf.distribution('b')"), pmf.factors[1][:, 0])
        page.go(page.fragment() + "&view=code")
        np.testing.assert_allclose(page.ask("jointpmf.distribution('b')"), pmf.factors[1][:, 0])
        assert page.text("python") == page.text("shell") == ""
        assert "A variable is called “component”" in page.text("code-about")

    def test_heads_of_the_table_of_components_give_them_too(self, explore, small):
        page = explore(small, "view=components")
        page.page.locator("#components thead button").nth(1).press("Enter")
        check_distributions(page, small, {"component": 1})
        assert page.ask("document.activeElement.dataset.component") == "1"
        assert page.ask("document.activeElement.getAttribute('aria-pressed')") == "true"

    @pytest.mark.parametrize("rank", [1, 25])
    def test_one_component_and_many_have_no_strip(self, explore, rank):
        page = explore(jp.random_pmf(jp.Domain.of_sizes([2, 3]), rank, 0))
        assert page.page.locator("#strip").is_hidden()

    def test_intervals_are_those_of_the_component(self, explore, sure):
        page = explore(sure.pmf, "given=component:1", sure=sure)
        frame = sure.interval(
            lambda pmf: pmf.condition({"component": 1}).marginal(["vote"]).table()
        )
        expected = frame.select("low", "high").to_numpy().clip(0, 1)
        found = np.array(page.ask("jointpmf.interval('vote')"))
        assert np.abs(found - expected).max() <= 0.05 * (expected[:, 1] - expected[:, 0]).max()
        assert page.page.locator(".whisker:visible").count() > 20

    def test_replicates_with_other_components_have_no_answer(self, explore):
        domain = jp.Domain.of_sizes([3, 4])
        models = [jp.random_pmf(domain, 2, seed) for seed in range(1, 7)]
        pmf = jp.random_pmf(domain, 4, 0)
        factors = np.array([np.concatenate(one.factors) for one in models])
        weights = np.array([one.weights for one in models])
        sure = Uncertainty(pmf, weights, factors, np.zeros(6, bool), models[0], "bayesian")
        page = explore(pmf, "given=component:3", sure=sure)
        assert page.page.locator(".whisker:visible").count() == 0
        assert "No intervals: the replicates have other components." in page.text("chips")
        check_distributions(page, pmf, {"component": 3})


class TestCompact:
    @pytest.mark.parametrize("size", [WIDE, (1280, 800)])
    def test_24_items_fit_the_screen(self, explore, questionnaire, size):
        page = explore(questionnaire, "layout=bars", size=size)
        assert page.page.locator(".card").count() == 24
        assert max(box["bottom"] for box in boxes(page, ".card")) <= size[1]
        names = page.page.locator(".card-name bdi").all_text_contents()
        assert tuple(names) == questionnaire.domain.names

    def test_parts_are_as_wide_as_they_are_probable(self, explore, small):
        page = explore(small, "layout=bars&given=party:left")
        for name in ("rating", "answer"):
            shares = small.condition({"party": "left"}).marginal([name]).table()
            widths = [
                part.bounding_box()["width"] for part in page.card(name).locator(".part").all()
            ]
            np.testing.assert_allclose(np.array(widths) / sum(widths), shares, atol=0.005)
            before = page.card(name).locator(".befores i").all()
            thin = np.array([one.bounding_box()["width"] for one in before])
            np.testing.assert_allclose(
                thin / thin.sum(), small.marginal([name]).table(), atol=0.005
            )
        part = page.bar("rating", 4)
        shares_of_rating = small.condition({"party": "left"}).marginal(["rating"]).table()
        now = 100 * shares_of_rating[4]
        assert float(re.match(r"5: ([\d.]+) %, was", part.get_attribute("title"))[1]) == (
            pytest.approx(now, abs=0.051)
        )
        mean = shares_of_rating @ small.domain["rating"].values
        assert float(page.card("rating").locator(".side").text_content().split()[0]) == (
            pytest.approx(mean, abs=0.001)
        )

    def test_it_answers_clicks_drags_and_keys(self, explore, small):
        page = explore(small)
        page.page.locator("#layout").check()
        assert "layout=bars" in page.fragment()
        page.bar("party", 0).click()
        check_distributions(page, small, {"party": "left"})
        assert page.card("party").locator(".side").text_content() == "given"
        page.bar("party", 1).click()  # what is given can still be changed
        check_distributions(page, small, {"party": "middle"})
        page.bar("rating", 0).focus()
        for key in ("ArrowRight", "ArrowRight", "Enter", "ArrowLeft", "Shift+Enter"):
            page.page.keyboard.press(key)
        check_distributions(page, small, {"party": "middle", "rating": {2, 3}})
        page.page.locator("#clear").click()
        ends = [page.bar("rating", code).bounding_box() for code in (1, 3)]
        page.page.mouse.move(ends[0]["x"] + 4, ends[0]["y"] + 8)
        page.page.mouse.down()
        page.page.mouse.move(ends[1]["x"] + 4, ends[1]["y"] + 8, steps=12)
        page.page.mouse.up()
        assert page.page.locator(".chip").count() == 1
        codes = page.ask("[...state.evidence.get(1)]")
        assert codes[0] == 1
        assert codes == list(range(1, 1 + len(codes)))
        page.page.locator("#layout").uncheck()
        assert page.page.locator(".card .levels").count() == 3

    def test_impossible_evidence_and_long_variables(self, explore):
        domain = jp.Domain.of_sizes([2, 31, 400])
        pmf = jp.random_pmf(domain, 2, 0)
        factors = [np.array([[1.0, 1.0], [0.0, 0.0]]), *pmf.factors[1:]]
        page = explore(jp.JointPMF(domain, pmf.weights, factors), "layout=bars")
        assert page.page.locator(".part").count() == 2
        assert re.fullmatch(
            r"400 levels; most likely \d+, [\d.]+ %",
            page.card("x2").locator(".likeliest").text_content(),
        )
        page.page.locator(".part").nth(1).press("Enter")
        assert page.text("probability") == "0"
        assert not re.search("NaN|Infinity|undefined", page.page.inner_text("body"))

    def test_hostile_text_stays_text(self, explore):
        variables = [jp.Variable(name, tuple(HOSTILE[:8])) for name in HOSTILE]
        pmf = jp.random_pmf(jp.Domain(variables), 2, 0)
        for size, touch in ((DESKTOP, {}), (PHONE, TOUCH)):
            page = explore(pmf, "layout=bars", size=size, **touch)
            page.bar(HOSTILE[0], 1).click()
            assert page.ask("document.querySelectorAll('img, b, main script').length") == 0
            assert page.ask("document.documentElement.scrollWidth <= innerWidth")


class TestPhone:
    @pytest.mark.parametrize("size", [PHONE, SMALL_PHONE])
    @pytest.mark.parametrize("fragment", ["", "given=x0:1;x1:0;x2:1"])
    def test_the_header_is_low_and_no_tab_is_cut(self, explore, size, fragment):
        page = explore(jp.random_pmf(jp.Domain.of_sizes([3] * 9), 6, 0), fragment, size, **TOUCH)
        for view in VIEWS:
            page.page.locator(f"#tab-{view}").click()
            (sticky,) = boxes(page, ".sticky")
            assert sticky["bottom"] <= 0.15 * size[1]
            for tab in boxes(page, ".tabs button"):
                assert tab["left"] >= 0
                assert tab["right"] <= size[0]
            assert page.ask(
                "[...document.querySelectorAll('.tabs, .tabs button')].every("
                "(e) => e.scrollWidth <= e.clientWidth)"
            )
            assert page.ask("document.documentElement.scrollWidth <= innerWidth")

    def test_components_scroll(self, explore):
        pmf = jp.random_pmf(jp.Domain.of_sizes([3] * 9), 6, 0)
        page = explore(pmf, size=PHONE, **TOUCH)
        last = page.page.locator(".tile").last
        assert last.bounding_box()["x"] > PHONE[0]
        page.scroll("strip", 1e6, 0)
        box = last.bounding_box()
        assert box["x"] + box["width"] <= PHONE[0]
        page.page.locator("#tab-components").click()
        page.settle()
        first = "document.querySelector('#components .of-variable')"
        page.ask(f"void (window.first = {first})")
        page.scroll("components", 1e6, 40)
        assert page.ask(f"window.first === {first}")  # the lines in sight are not drawn anew
        head = page.page.locator("#components thead th").nth(6).bounding_box()
        assert head["x"] + head["width"] <= PHONE[0]
        name = page.page.locator("#components .of-variable bdi").first
        assert 0 <= name.bounding_box()["x"] < 60


class TestControls:
    def test_each_is_only_where_it_acts(self, explore, sure):
        page = explore(sure.pmf, sure=sure)
        everywhere = {"variables", "dependencies", "components", "rows"}
        acts = {
            "search": everywhere,
            "sort": everywhere,
            "layout": {"variables"},
            "several": {"variables"},
            "intervals": {"variables", "components"},
        }
        for view in VIEWS:
            page.page.locator(f"#tab-{view}").click()
            for control, views in acts.items():
                assert page.page.locator(f"#{control}").is_visible() == (view in views)
        assert page.page.locator(".controls").is_hidden()
        assert page.page.locator("#clear").is_hidden()
        page.page.locator("#tab-rows").press("/")
        assert page.ask("document.activeElement.id") == "tab-rows"  # there is nothing to search
        page.page.locator("#tab-variables").click()
        page.bar("vote", 0).click()
        assert page.page.locator("#clear").is_visible()


@pytest.fixture(scope="module")
def rows_of_small(small):
    """Return rows with holes that are not quite from the model: two variables agree too often."""
    rows = small.sample(400, random_state=0, backend="pandas").astype(object)
    rows.loc[:150, "party"] = "left"
    rows.loc[:150, "answer"] = "no"
    rows.loc[::7, "rating"] = None
    return rows


def residual(pmf, rows, first, second):
    """Return χ²/df of a pair, by its definition."""
    both = rows[[first, second]].dropna()
    levels = [pmf.domain[name].levels for name in (first, second)]
    observed = np.array(
        [[((both[first] == a) & (both[second] == b)).sum() for b in levels[1]] for a in levels[0]]
    )
    expected = len(both) * pmf.marginal([first, second]).table()
    return float(((observed - expected) ** 2 / expected).sum()) / math.prod(
        len(one) - 1 for one in levels
    )


class TestMap:
    def numbers(self, page):
        return {
            (one, other): value
            for one, other, value in page.page.locator("#pairs td[data-information]").evaluate_all(
                "cells => cells.map(c => [+c.dataset.position, +c.dataset.other, "
                "+c.dataset.information])"
            )
        }

    def test_the_legend_says_what_colours_mean(self, explore, small):
        page = explore(small, "view=dependencies&given=party:left")
        page.settle()
        values = self.numbers(page)
        assert list(values) == [(1, 2), (2, 1)]
        most = max(values.values())
        labels = page.page.locator("#pairs-legend span").all_text_contents()
        assert labels == ["0", f"{most / 4:.3f}", f"{most:.3f} nats"]
        assert page.page.locator("#measure").is_hidden()
        page.page.locator(".chip").click()
        page.settle()
        most = max(self.numbers(page).values())
        assert page.page.locator("#pairs-legend span").last.text_content() == f"{most:.3f} nats"
        page.page.locator("#search").fill("party")
        page.settle()
        assert page.page.locator("#pairs-legend").is_hidden()

    def test_given_a_component_there_is_no_dependence_to_colour(self, explore, small):
        page = explore(small, "view=dependencies&given=component:1")
        page.settle()
        assert set(self.numbers(page).values()) == {0}
        assert page.page.locator("#pairs-legend").is_hidden()
        assert page.text("pairs-about").startswith("Only one component is left")
        colours = page.page.locator("#pairs .heat").evaluate_all(
            "cells => cells.map(c => getComputedStyle(c).getPropertyValue('--t').trim())"
        )
        assert set(colours) == {"0"}

    def test_where_rows_were_given_it_shows_residual_dependence(
        self, explore, small, rows_of_small
    ):
        page = explore(small, "view=dependencies", rows=rows_of_small)
        page.page.locator("#measure").select_option("residual")
        page.settle()
        names = small.domain.names
        for (one, other), value in self.numbers(page).items():
            expected = residual(small, rows_of_small, names[one], names[other])
            assert value == pytest.approx(expected, rel=1e-6)
        found = self.numbers(page)
        assert max(found, key=found.get) in [(0, 2), (2, 0)]
        assert len(found) == 6
        assert "χ²/df" in page.text("pairs-about")
        assert page.page.locator("#strongest button").first.text_content() == "answer"
        page.go(page.fragment() + "&given=party:left")  # evidence changes none of them
        page.settle()
        assert self.numbers(page) == found

    def test_pairs_that_no_row_observes_have_none(self, explore, small, rows_of_small):
        rows = rows_of_small.copy()
        rows.loc[::2, "party"] = None
        rows.loc[1::2, "rating"] = None
        page = explore(small, "view=dependencies&measure=residual&of=party", rows=rows)
        page.settle()
        cells = page.page.locator("#pairs td[data-position='0']").all_text_contents()
        assert cells[0] == "–"
        assert float(cells[1]) > 0
        assert page.page.locator("#strongest li").count() == 1
        assert "NaN" not in page.page.inner_text("body")

    def test_of_many_variables_those_that_fit_worst_are_shown(self, explore):
        pmf = jp.random_pmf(jp.Domain.of_sizes([2] * 60), 2, 0)
        rows = pmf.sample(300, random_state=0, backend="pandas")
        rows["x7"] = rows["x55"]
        page = explore(pmf, "view=dependencies&measure=residual", rows=rows)
        page.settle()
        found = self.numbers(page)
        pairs = pairs_of(pmf, jp.encode(rows, pmf.domain), np.ones(300))
        table = np.zeros((60, 60))
        table[pairs.first, pairs.second] = table[pairs.second, pairs.first] = pairs.residual
        worst = set(np.argsort(-table.max(axis=1))[:40].tolist())
        assert {one for one, _ in found} == worst
        for place, value in found.items():
            assert value == pytest.approx(table[place], rel=1e-6)

    def test_bad_rows_are_one_sentence_and_nothing_is_written(self, small, tmp_path):
        rows = pd.DataFrame({"party": ["up"], "rating": [1], "answer": ["no"]})
        with pytest.raises(jp.JointPMFError, match="'up'"):
            small.explore(tmp_path / "page.html", rows=rows)
        assert not list(tmp_path.iterdir())

    def test_the_command_takes_rows(self, small, rows_of_small, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        small.save("m.safetensors")
        rows_of_small.to_csv("rows.csv", index=False)
        assert self.run("m.safetensors", "--rows", "rows.csv") == 0
        small.explore("other.html", "m.safetensors", rows=rows_of_small)
        assert (tmp_path / "m.html").read_bytes() == (tmp_path / "other.html").read_bytes()
        (tmp_path / "empty.csv").write_text("party,rating,answer\n")
        for rows, output, said in (
            ("rows.csv", "rows.csv", "would replace"),
            ("empty.csv", "x.html", "no rows"),
            ("nowhere.csv", "x.html", "nowhere.csv"),
        ):
            assert self.run("m.safetensors", "--rows", rows, "-o", output) == 2
            assert said in " ".join(capsys.readouterr().err.split())
        assert (tmp_path / "rows.csv").read_text().startswith("party")

    def run(self, *arguments):
        with pytest.raises(SystemExit) as ended:
            main(["explore", *arguments])
        return ended.value.code


class TestSpreadsheets:
    NAMES = ("=1+1", "plain", "-x", "@a", "+b, c")
    LEVELS = ("=cmd|' /C calc'!A0", "-3", "+4", "@SUM(1)", "plain", "-1e5", "'", "- a", "\tt")

    def cells(self, page, button):
        with page.page.expect_download() as download:
            page.page.locator(button).click()
        with download.value.path().open(newline="") as file:
            return list(csv.reader(file))

    def test_formulas_are_escaped_if_asked(self, explore):
        domain = jp.Domain([jp.Variable(name, self.LEVELS) for name in self.NAMES])
        pmf = jp.random_pmf(domain, 2, 0)
        page = explore(pmf, "view=code")
        plain = self.cells(page, "#tables-csv")
        assert [row[1] for row in plain[1:10]] == list(self.LEVELS)
        assert "A spreadsheet computes a cell that begins with" in page.text("view-code")
        page.page.locator("#view-code .escapes").check()
        safe = self.cells(page, "#tables-csv")
        escaped = {one: f"'{one}" for one in ("=1+1", "-x", "@a", "+b, c")}
        escaped |= {one: f"'{one}" for one in self.LEVELS if one[0] in "=@\t" or one == "- a"}
        assert safe == [[escaped.get(cell, cell) for cell in row] for row in plain]
        page.page.locator("#tab-rows").click()
        assert page.page.locator("#view-rows .escapes").is_checked()
        drawn = self.cells(page, "#drawn-csv")
        assert drawn[0] == [escaped.get(name, name) for name in self.NAMES]
        page.page.locator("#view-rows .escapes").uncheck()
        assert self.cells(page, "#drawn-csv")[0] == list(self.NAMES)


class Counted:
    """A level that counts how often its text is asked for."""

    asked = 0

    def __init__(self, number):
        self.number = number

    def __str__(self):
        Counted.asked += 1
        return f"level {self.number}"

    __repr__ = __str__


class TestManyLevels:
    @pytest.mark.parametrize("name", ["a", "a=b"])
    def test_each_level_is_looked_at_a_few_times(self, tmp_path, name):
        levels = tuple(map(Counted, range(500)))
        pmf = jp.random_pmf(jp.Domain([jp.Variable(name, levels), jp.Variable("b", (1, 2))]), 2, 0)
        Counted.asked = 0
        pmf.explore(tmp_path / "page.html")
        assert 500 <= Counted.asked <= 5 * 500

    def test_a_variable_of_16000_levels_can_be_asked(self, explore):
        levels = tuple(range(16_000))
        pmf = jp.random_pmf(jp.Domain([jp.Variable("n", levels), jp.Variable("b", (1, 2))]), 3, 0)
        page = explore(pmf, "given=n:15999")
        expected = pmf.condition({"n": 15_999}).table()
        np.testing.assert_allclose(page.ask("jointpmf.distribution('b')"), expected, atol=1e-9)
        assert page.bar("n", 15_999).is_visible()
        page.page.locator("#layout").check()
        assert page.card("n").locator(".side").text_content() == "given"


class TestLooks:
    @pytest.mark.parametrize(
        ("device", "size", "touch"), [("wide", WIDE, {}), ("phone390", PHONE, TOUCH)]
    )
    def test_everyone_can_use_every_view(self, explore, questionnaire, device, size, touch):
        """As far as a machine can tell; the pictures are for people to look at."""
        LEFT.mkdir(parents=True, exist_ok=True)
        rows = questionnaire.sample(500, random_state=0)
        page = explore(questionnaire, size=size, name="questionnaire", rows=rows, **touch)
        given = f"given=component:1;{ITEMS[2].replace(' ', '%20')}%2C%20question%202:5,6"
        looked_at = {
            "cards": given,
            "compact": f"layout=bars&names=0:calm&{given}",
            "residual": "view=dependencies&measure=residual",
            **{view: f"view={view}&{given}" for view in VIEWS[1:]},
        }
        for what, fragment in looked_at.items():
            page.edit(fragment)
            for scheme in SCHEMES:
                page.page.emulate_media(color_scheme=scheme)
                page.settle()
                assert page.ask("document.documentElement.scrollWidth <= innerWidth")
                page.page.screenshot(path=LEFT / f"{device}_{scheme}_{what}.png")
                if AXE.exists():
                    assert faults_for_axe(page.page, scheme) == [], (what, scheme)
        if not AXE.exists():
            skip_or_fail("axe-core is not installed; `make test` installs it where npm is")
