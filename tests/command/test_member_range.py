"""What `jointpmf query` says of the members of an average of fits."""

import json

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.model_file import read_about, write_model

NAMES = ["age", "vote", "sex"]
DOMAIN = jp.Domain.of_sizes([3, 2, 2], NAMES)
QUERY = ("--of", "vote", "--given", "age=1", "--given", "sex=0")


def planted():
    rng = np.random.default_rng(4)
    factors = [rng.dirichlet(np.full(size, 0.5), 3).T for size in DOMAIN.sizes]
    return jp.JointPMF(DOMAIN, rng.dirichlet(np.ones(3)), factors)


@pytest.fixture(scope="module")
def solution():
    """Return the average of models that meet pairs, which leave the model open."""
    return jp.fit_marginals(planted().marginals(order=2), 5, random_state=0)


@pytest.fixture(scope="module")
def pairs(solution, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "pairs.safetensors"
    solution.save(path)
    return path


def changed(path, to, **topics):
    """Write a model again with other texts about it; None leaves a topic out."""
    pmf, about = jp.load(path), read_about(path) | topics
    kept = {topic: text for topic, text in about.items() if text is not None}
    write_model(to, pmf.domain, pmf.weights, pmf.factors, kept)
    return to


def test_each_level_has_a_range(inside, pairs):
    code, out, _ = inside("query", pairs, *QUERY)
    heading = " ".join(" ".join(out.splitlines()[1:3]).split())
    assert code == 0
    assert "members of this" in heading
    assert "average range from" in heading
    assert all(line.count("%") == 3 and " to " in line for line in out.splitlines()[3:5])
    assert "interval" not in out
    assert "bound" not in out


def test_the_range_as_json_is_that_of_the_library(inside, pairs, solution):
    code, out, _ = inside("query", pairs, *QUERY, "--json")
    cells = json.loads(out)["distribution"]
    frame = solution.member_range(["vote"], {"age": 1, "sex": 0})
    assert code == 0
    found = [(c["probability"], c["lowest_member"], c["highest_member"]) for c in cells]
    np.testing.assert_allclose(found, frame.select("average", "lowest", "highest").rows())
    assert found[0][1] < found[0][0] < found[0][2]


def test_two_variables_are_listed_with_the_range_of_each_cell(inside, pairs, solution):
    code, out, _ = inside("query", pairs, "--of", "age", "--of", "sex", "--top", 2)
    frame = solution.member_range(["age", "sex"]).sort("average", descending=True)
    assert code == 0
    rows = zip(out.splitlines()[3:5], frame.rows()[:2], strict=True)
    for line, (age, sex, _, lowest, highest) in rows:
        words = line.replace(" %", "").split()
        assert words[:2] == [str(age), str(sex)]
        assert words[3:6] == [f"{100 * lowest:.1f}", "to", f"{100 * highest:.1f}"]


def test_a_single_fit_has_none(inside, tmp_path):
    path = tmp_path / "single.safetensors"
    jp.fit_rows(planted().sample(500, random_state=0), 2, random_state=0).save(path)
    code, out, _ = inside("query", path, "--of", "vote", "--json")
    answer = json.loads(out)
    assert code == 0
    assert "note" not in answer
    assert set(answer["distribution"][0]) == {"levels", "probability"}


@pytest.mark.parametrize(
    "query", [["--of", "component"], ["--of", "vote", "--given", "component=1"]]
)
def test_components_have_none(inside, pairs, query):
    code, out, _ = inside("query", pairs, *query, "--json")
    answer = json.loads(out)
    assert code == 0
    assert "has components of its own" in answer["note"]
    assert "lowest_member" not in answer["distribution"][0]


def test_a_file_that_holds_another_average(inside, pairs, tmp_path):
    other = changed(pairs, tmp_path / "other.safetensors", averaged="7")
    code, out, _ = inside("query", other, *QUERY)
    assert code == 0
    said = "The range over members is not shown: the 7 members of this average cannot"
    assert said in " ".join(out.split())


def test_topics_that_are_not_known_are_only_texts(inside, pairs, tmp_path):
    topics = {"shown": '[{"of": ["age"], "hidden": [5]}]', "impossible": "2"}
    file = changed(pairs, tmp_path / "more.safetensors", **topics)
    for command in (["query", file, *QUERY], ["identify", file], ["info", file]):
        code, _, err = inside(*command)
        assert (code, err) == (0, "")


@pytest.mark.parametrize(
    "topics", [{"subsets": "["}, {"subsets": '[["nobody"]]'}, {"partial": "x"}]
)
def test_tables_that_cannot_be_read_are_refused_where_they_matter(inside, pairs, tmp_path, topics):
    broken = changed(pairs, tmp_path / "broken.safetensors", **topics)
    code, _, err = inside("identify", broken)
    assert code != 0
    assert "which tables the model was learned from cannot be read" in " ".join(err.split())
    assert inside("query", broken, *QUERY)[0] == 0
