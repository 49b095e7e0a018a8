"""What `jointpmf query` says where other models fit as well."""

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
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def pairs(folder):
    """Return the file of a model that pairs leave open."""
    path = folder / "pairs.safetensors"
    jp.fit_marginals(planted().marginals(order=2), 5, random_state=0).save(path)
    return path


def changed(path, to, **topics):
    """Write a model again with other texts about it; None leaves a topic out."""
    pmf, about = jp.load(path), read_about(path) | topics
    kept = {topic: text for topic, text in about.items() if text is not None}
    write_model(to, pmf.domain, pmf.weights, pmf.factors, kept)
    return to


def test_each_level_has_a_range(inside, pairs):
    code, out, _ = inside("query", pairs, *QUERY)
    assert code == 0
    assert "between" in out.splitlines()[1]
    assert all(line.count("%") == 3 and " and " in line for line in out.splitlines()[2:4])
    assert "Other models of this rank fit the tables as well" in out


def test_the_range_as_json_is_that_of_the_library(inside, pairs):
    code, out, _ = inside("query", pairs, *QUERY, "--json")
    answer = json.loads(out)
    no, yes = answer["distribution"]
    assert code == 0
    assert no["least"] < no["probability"] < no["most"]
    assert no["least"] == pytest.approx(1 - yes["most"], abs=1e-3)
    assert "fit the tables as well" in answer["note"]
    solution = jp.fit_marginals(planted().marginals(order=2), 5, random_state=0)
    found = solution.spread({"vote": 0}, given={"age": 1, "sex": 0}, random_state=0)
    assert [no["least"], no["most"]] == pytest.approx(list(found), abs=5e-3)


def test_some_answers_only(inside, pairs):
    code, out, _ = inside("query", pairs, "--of", "age", "--of", "vote", "--ranges", 2, "--json")
    answer = json.loads(out)
    with_range = [cell for cell in answer["distribution"] if "least" in cell]
    least = min(cell["probability"] for cell in with_range)
    rest = [cell["probability"] for cell in answer["distribution"] if "least" not in cell]
    assert code == 0
    assert len(with_range) == 2
    assert max(rest) <= least
    assert "The range of the 2 most likely is shown." in answer["note"]


def test_no_range_is_sought_on_request(inside, pairs):
    code, out, _ = inside("query", pairs, *QUERY, "--ranges", 0)
    assert code == 0
    assert "between" not in out
    assert "Other models" not in out


def test_a_model_that_is_unique_has_none(inside, folder):
    path = folder / "unique.safetensors"
    jp.fit_rows(planted().sample(500, random_state=0), 2, random_state=0).save(path)
    code, out, _ = inside("query", path, "--of", "vote", "--json")
    answer = json.loads(out)
    assert code == 0
    assert "note" not in answer
    assert set(answer["distribution"][0]) == {"levels", "probability"}


def test_components_have_none(inside, pairs):
    code, out, _ = inside("query", pairs, "--of", "component", "--given", "age=1", "--json")
    assert code == 0
    assert "their components are others" in json.loads(out)["note"]


def partial_tables():
    """Return tables with bands, of part of the people, in percent, and with a hidden cell."""
    joint = planted().table()
    banded = np.stack([joint[0], joint[1:].sum(axis=0)]).sum(axis=2)
    within = joint.sum(axis=0) / joint.sum(axis=(0, 2))[:, None]
    by_age = np.round(10_000 * joint.sum(axis=1))
    total = by_age.sum()
    by_age[2, 1] = np.nan
    return [
        jp.Marginal(("age", "vote"), banded, levels={"age": [0, (1, 2)]}),
        jp.Marginal(("age",), joint[:, :, 1].sum(axis=1), where={"sex": 1}),
        jp.Marginal(("vote", "sex"), 100 * within, given=["vote"]),
        jp.Marginal(("age", "sex"), by_age, n_obs=total),
    ]


def test_tables_that_are_not_whole_are_known_from_the_file(inside, folder):
    solution = jp.fit_marginals(jp.MarginalSet(DOMAIN, partial_tables()), 5, random_state=0)
    path = folder / "partial.safetensors"
    solution.save(path)
    shown = json.loads(read_about(path)["shown"])
    assert shown[0] == {"of": ["age", "vote"], "sets": {"age": [[0], [1, 2]]}}
    assert shown[1] == {"of": ["age"], "where": {"sex": [1]}}
    assert shown[2] == {"of": ["vote", "sex"], "given": ["vote"]}
    assert shown[3] == {"of": ["age", "sex"], "hidden": [5]}
    code, out, _ = inside("query", path, *QUERY, "--json")
    no = json.loads(out)["distribution"][0]
    found = solution.spread({"vote": 0}, given={"age": 1, "sex": 0}, random_state=0)
    assert code == 0
    assert [no["least"], no["most"]] == pytest.approx(list(found), abs=5e-3)


def test_a_file_that_does_not_say_what_was_known(inside, pairs, folder):
    for topics in ({"order": None}, {"partial": "1"}):
        old = changed(pairs, folder / "old.safetensors", **topics)
        code, out, _ = inside("query", old, *QUERY)
        assert code == 0
        assert "the file does not say which, so that the range is not known" in " ".join(
            out.split()
        )
        assert "between" not in out


def test_a_file_that_holds_another_average(inside, pairs, folder):
    other = changed(pairs, folder / "other.safetensors", averaged="7")
    code, out, _ = inside("query", other, *QUERY)
    assert code == 0
    assert "the file does not hold them" in out


@pytest.mark.parametrize(
    "text", ["[", '[{"of": ["nobody"]}]', '[{"of": ["age"], "hidden": [9]}]', "[1]"]
)
def test_a_text_that_cannot_be_read(inside, pairs, folder, text):
    broken = changed(pairs, folder / "broken.safetensors", shown=text)
    code, _, err = inside("query", broken, *QUERY)
    assert code != 0
    assert "which tables the model was learned from cannot be read" in " ".join(err.split())


@pytest.mark.parametrize(("sizes", "rank"), [([60, 60, 60], 40), ([2] * 300, 1)])
def test_a_model_that_is_too_large(inside, folder, sizes, rank):
    """Too many parameters, or too many pairs."""
    domain = jp.Domain.of_sizes(sizes)
    pmf = jp.random_pmf(domain, rank, random_state=0)
    about = {"status": jp.Status.NOT_UNIQUE.value, "order": "2"}
    write_model(folder / "large", domain, pmf.weights, pmf.factors, about)
    code, out, _ = inside("query", folder / "large", "--of", "x0", "--top", 1)
    assert code == 0
    assert "too large for the range" in " ".join(out.split())
