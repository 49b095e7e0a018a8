"""The documentation: its code and commands run, its links lead somewhere, nothing is fetched."""

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import jointpmf as jp
from jointpmf.data.datasets import anes96
from jointpmf.model_file import read_about
from support.browser import opened
from support.prose import ROOT, broken_links, check_code, check_commands

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
RATINGS = Path(os.environ.get("JOINTPMF_DATA", "nowhere"), "ratings")
RATINGS_PAGE = pytest.param(
    DOCS / "ratings.md",
    marks=pytest.mark.skipif(not RATINGS.is_dir(), reason="JOINTPMF_DATA has no ratings"),
)


def pages_with(block):
    found = [page for page in PAGES if f"```{block}\n" in page.read_text()]
    return [RATINGS_PAGE if page.name == "ratings.md" else page for page in found]


def name(page):
    return str(page.relative_to(DOCS))


@pytest.mark.parametrize("page", pages_with("python"), ids=name)
def test_the_code_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.name == "ratings.md":
        release = tmp_path / "ml-latest-small"
        release.mkdir()
        for table in ("ratings.csv", "movies.csv"):
            (release / table).symlink_to(RATINGS / release.name / f"{table}.gz")
    check_code(page.read_text())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with what the pages' commands read."""
    folder = tmp_path_factory.mktemp("files")
    table = anes96()
    table.loc[::4, "vote"] = None
    table.to_csv(folder / "survey.csv", index=False)
    bins = {"age": 6, "income": 6, "town size": 5}
    jp.fit_rows(table, 4, bins=bins, random_state=0).pmf.save(folder / "survey.safetensors")
    rows = jp.random_pmf(jp.Domain.of_sizes([3] * 6), 3, random_state=0).sample(300, random_state=0)
    (folder / "folder-of-parquet-files").mkdir()
    for path in ("rows.parquet", "big.parquet", "folder-of-parquet-files/0.parquet"):
        rows.write_parquet(folder / path)
    page = (DOCS / "published_tables.md").read_text()
    for name, content in re.findall(r'```\w+ title="([^"]+)"\n(.*?)```', page, re.DOTALL):
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize("page", [p for p in PAGES if "```console\n" in p.read_text()], ids=name)
def test_the_commands_print_what_they_say(page, files, tmp_path, monkeypatch):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda address: True)
    monkeypatch.setattr("jointpmf.fit.memory.used_bytes", lambda: 2 * 10**8)  # not what tests hold
    check_commands(page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    assert broken_links(page) == []


SURVEY = r"```console\n[^`]*\bsurvey\."
"""Commands on the survey's files."""


@pytest.mark.parametrize("page", [p for p in PAGES if re.search(SURVEY, p.read_text())], ids=name)
def test_a_page_says_where_its_files_are_made(page):
    before = page.read_text()[: re.search(SURVEY, page.read_text()).start()]
    is_made = re.search(r'(to_csv|save)\("survey\.', before)
    assert is_made or "](command.md)" in before.strip().rpartition("\n\n")[2]


def test_what_is_claimed_of_ratings_is_in_the_results():
    results = (ROOT / "paper/results/ratings.md").read_text().split("### BMF\n")[1]
    rows = re.findall(r"^\| likelihood, averaged \|.*$", results, re.MULTILINE)[:4]
    ratios = [row.split("|")[3].strip() for row in rows]
    larger = re.findall(
        r"^\| fit_rows\(ratings\) \|[^|]*\| ([\d.]+) \|",
        (ROOT / "paper/results/larger.md").read_text(),
        re.MULTILINE,
    )
    for page in ("paper.md", "ratings.md"):
        text = (DOCS / page).read_text()
        assert all(ratio in text for ratio in [*ratios, *larger]), page
    assert len(larger) == 2
    rows = re.findall(r"^\| CP \(triples\), likelihood.*$", results, re.MULTILINE)[:8]
    text = (DOCS / "paper.md").read_text()
    assert len(rows) == 8
    assert all(row.split("|")[3].strip() in text for row in rows)


def test_what_is_claimed_of_tables_is_in_the_results():
    results = (ROOT / "benchmarks/results/tables.md").read_text()
    score = re.compile(r"−\d+\.\d{3}(?: \([\d.]+% zero\))?")
    section = (DOCS / "benchmarks.md").read_text().split("## From tables alone")[1]
    for text, least in (((DOCS / "tables_or_rows.md").read_text(), 40), (section, 9)):
        claimed = score.findall(text)
        assert len(claimed) >= least
        assert set(claimed) <= set(score.findall(results))


def test_what_is_claimed_of_starts_is_in_the_results():
    results = (ROOT / "benchmarks/results/starts.md").read_text()
    text = (DOCS / "how_many_starts.md").read_text()
    (runs,) = re.findall(r"\*\*(\d+ of \d+ runs)", results)
    (warned,) = re.findall(r"(\d+) warned", results)
    assert runs in text
    assert f"{warned} of the" in text
    lines = re.findall(
        r"^\| (\w[^|]*) \| (\d+) \| (\d+) \| ([\d.]+ of [\d.]+) \|$", text, re.MULTILINE
    )
    assert len(lines) == 7
    for table, rank, found, agreed in lines:
        line = rf"^\| {table} \| {rank} \|.*\| {agreed} \| {found} of 100 \|"
        assert re.search(line, results, re.MULTILINE | re.IGNORECASE), (table, rank)


def test_the_file_format_names_all_that_the_command_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jp.random_pmf(jp.Domain.of_sizes([2] * 4), 2, 0).sample(50, random_state=0).write_csv("t.csv")
    check_commands("```console\n$ jointpmf fit t.csv -o m.safetensors --rank 2\n```")
    text = (DOCS / "format.md").read_text()
    for key in read_about("m.safetensors"):
        assert f"`{key}`" in text


def test_the_reference_has_every_public_name_once():
    text = "\n".join(page.read_text() for page in sorted((DOCS / "api").glob("*.md")))
    named = re.findall(r"^\.\. auto\w+:: jointpmf\.(\w+)$", text, re.MULTILINE)
    assert sorted(named) == sorted(jp.__all__)


def test_the_table_of_the_reference_names_only_what_is_there():
    index = (DOCS / "api" / "index.md").read_text()
    for page, names in re.findall(r"^\| \[[^]]+\]\((\w+\.md)\) \| (.*) \|$", index, re.MULTILINE):
        text = (DOCS / "api" / page).read_text()
        for named in re.findall(r"`([\w.]+)`", names):
            assert f":: {named}" in text or f":: jointpmf.{named}\n" in text, (page, named)


class Page(HTMLParser):
    """What a built page refers to: links, anchors, and what is loaded without a click."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.loaded = [], set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given.get("id"), given.get("name")}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") != "canonical":
            self.loaded.append(given["href"])
        elif given.get("src"):
            self.loaded.append(given["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the pages of the site by path; building it must not warn."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--quiet", "--conf-dir", "docs", "--doctree-dir"]
    made = [sys.executable, "-m", "sphinx", *options, folder / "doctrees", ".", folder / "site"]
    subprocess.run(made, cwd=ROOT, check=True)
    return {path: Page(path) for path in folder.rglob("*.html")}


def is_elsewhere(link):
    return re.match(r"(https?:)?//|mailto:", link)


def test_links_of_the_site_lead_somewhere(site):
    for path, page in site.items():
        if path.name == "404.html":  # its links are absolute
            continue
        for link in page.links + page.loaded:
            target, _, anchor = unquote(link).partition("#")
            target = target.partition("?")[0]  # of which version a file is
            if is_elsewhere(link) or link.startswith(("data:", "javascript:")):
                continue
            file = (path.parent / target).resolve() if target else path
            assert file.exists(), (path, link)
            assert not anchor or file not in site or anchor in site[file].anchors, (path, link)


def test_the_site_loads_nothing_from_elsewhere(site):
    for path, page in site.items():
        assert not [address for address in page.loaded if is_elsewhere(address)], path
        for style in path.parent.rglob("*.css"):
            assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", style.read_text()), style


def test_every_public_name_can_be_linked_to(site):
    anchors = set().union(*(page.anchors for page in site.values()))
    assert {f"jointpmf.{public}" for public in jp.__all__} <= anchors


def test_results_are_shown_as_they_are(site):
    (page,) = (path for path in site if path.parts[-3:] == ("paper", "results", "table1.html"))
    for number in re.findall(r"\d\.\d\de-\d\d", (ROOT / "paper/results/table1.md").read_text()):
        assert number in page.read_text()


CUT = """() => [...document.querySelectorAll("table")]
    .map((table) => table.closest(".table-wrapper") ?? table.parentElement)
    .filter((box) => box.scrollWidth > box.clientWidth + 1).length"""
"""How many tables of a page have columns out of sight."""


def test_no_table_loses_a_column_on_a_desktop(site):
    with opened() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        for path in site.keys() - {path for path in site if path.parent.name == "site"}:
            page.goto(path.as_uri())
            assert page.evaluate(CUT) == 0, path
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


def test_the_diagram_is_a_picture():
    for path in (ROOT / "README.md", DOCS / "index.md"):
        assert "──►" not in path.read_text()
        assert "two_ways.svg)" in path.read_text()


def test_studies_have_a_shelf_of_their_own(site):
    (home,) = (path for path in site if path.parts[-2:] == ("docs", "index.html"))
    shelf = home.read_text().split('class="caption-text">Studies<')[1].split("caption-text")[0]
    for page in ("studies", "tables_or_rows", "averaging_or_traits", "how_many_starts"):
        assert f'href="{page}.html"' in shelf


def keys(facts, path=""):
    """Yield the path of every field of some facts; criteria and topics have names of their own."""
    if isinstance(facts, list):
        for one in facts:
            yield from keys(one, path)
    elif isinstance(facts, dict):
        for key, one in facts.items():
            yield key
            if key not in ("criteria", "fit"):
                yield from keys(one, key)


def test_the_schema_of_the_report_names_every_field(tmp_path):
    pmf = jp.random_pmf(jp.Domain.of_sizes([3, 3, 3, 3]), 2, 0)
    rows = pmf.sample(200, random_state=0)
    fit = jp.fit_rows(rows, 2, random_state=0)
    curve = jp.choose_rank(rows, [1, 2], criterion="bic", random_state=0)
    fit.report(tmp_path / "r.json", rows, curve, uncertainty=fit.uncertainty(3, random_state=0))
    facts = json.loads((tmp_path / "r.json").read_text())
    schema = (DOCS / "report.md").read_text().split("## As JSON")[1]
    assert {key for key in keys(facts) if f"`{key}`" not in schema} == set()
    assert {"components", "variables", "ranks", "goodness", "marginals"} <= set(facts)
