"""`jointpmf fit`: weights of rows, how many starts, and a rank that is chosen for reading."""

import json
import re

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.command.report import findings_in
from jointpmf.fit import memory
from jointpmf.judge import rank
from jointpmf.model_file import read_about, read_model_file
from jointpmf.show.report.subject import Subject
from jointpmf.show.report.tally import Tally

DOMAIN = jp.Domain.of_sizes([3, 3, 2, 3, 2], names=list("abcde"))
TRUTH = jp.random_pmf(DOMAIN, 2, random_state=3)
TABLE = TRUTH.sample(500, random_state=0)
WEIGHTS = np.random.default_rng(1).gamma(2.0, size=len(TABLE))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("fitting") / "rows.csv"
    TABLE.with_columns(w=pl.Series(WEIGHTS)).write_csv(path)
    return path


@pytest.fixture
def fitted(data, tmp_path, inside):
    """Fit with some options; return the model, what is said of it, and what is printed."""

    def call(*options):
        code, out, err = inside("fit", data, "-o", tmp_path / "m", *options)
        assert code == 0, err
        return jp.load(tmp_path / "m"), read_about(tmp_path / "m"), out

    return call


def assert_same(found, expected):
    assert found.domain == expected.domain
    np.testing.assert_array_equal(found.weights, expected.weights)
    for one, other in zip(found.factors, expected.factors, strict=True):
        np.testing.assert_array_equal(one, other)


class TestWeights:
    def test_the_model_is_that_of_the_weighted_table(self, fitted):
        found, about, _ = fitted("--weights", "w", "--rank", 2)
        options = {"sample_weight": WEIGHTS, "random_state": 0}
        assert_same(found, jp.fit_rows(TABLE, 2, **options).pmf)
        assert about["rows"] == "500"

    def test_also_where_rows_do_not_fit_into_memory(self, data, fitted, monkeypatch, caplog):
        caplog.set_level("INFO", "jointpmf")
        monkeypatch.setattr(memory.Room, "n_rows", lambda self, *asked: 100)
        _, about, _ = fitted("--weights", "w", "--rank", 2, "--memory", "8GB", "--tol", 1e-12)
        assert "the codes of 500 rows are on disk" in caplog.text
        options = {"sample_weight": WEIGHTS, "random_state": 0, "tol": 1e-12}
        expected = jp.fit_rows(TABLE, 2, **options).objective
        assert float(about["objective"]) == pytest.approx(expected, abs=1e-7)
        assert about["rows"] == "500"

    def test_the_rank_can_be_chosen_by_weight(self, fitted):
        found, _, _ = fitted("--weights", "w", "--max-iter", 20)
        options = {"sample_weight": WEIGHTS, "random_state": 0, "max_iter": 20}
        assert_same(found, jp.fit_rows(TABLE, **options).pmf)

    def test_a_report_weighs_rows(self, data, fitted, inside, tmp_path):
        pmf, _, _ = fitted("--weights", "w", "--rank", 2)
        subject = Subject.of_file(read_model_file(tmp_path / "m"))
        for sizes in ({}, {"batch_bytes": 900}):
            options = {"weights": "w", "most_for_ranks": 300, **sizes}
            found = findings_in(subject, str(data), [], "error", [1, 2], 0, False, **options)
            expected = Tally.of_table(pmf, TABLE, WEIGHTS, counts_pairs=True)
            assert found.tally.is_weighted
            assert found.tally.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)
            assert [score.rank for score in found.curve.scores] == [1, 2]
        page = tmp_path / "page.html"
        arguments = ("report", tmp_path / "m", data, "-o", page, "--ranks", "1-2")
        assert inside(*arguments, "--weights", "w")[0] == 0
        weighted = page.read_text()
        assert inside(*arguments)[0] == 0
        assert page.read_text() != weighted
        code, _, err = inside(*arguments, "--weights", "a")
        assert (code, "'a' is a variable of the model" in err) == (2, True)


class TestStarts:
    def test_how_many_found_the_best_is_said(self, fitted):
        found, about, out = fitted("--drop", "w", "--rank", 2, "--starts", 3)
        search = jp.Search(n_starts=3)
        expected = jp.fit_rows(TABLE, 2, search=search, random_state=0)
        assert_same(found, expected.pmf)
        assert about["starts"] == "3"
        assert f"The optimum was {expected.replication}." in out

    def test_for_machines(self, data, tmp_path, inside):
        options = ("--drop", "w", "--rank", 2, "--starts", 3, "--json")
        said = json.loads(inside("fit", data, "-o", tmp_path / "m", *options)[1])
        assert said["starts"] == 3
        assert 1 <= said["agreed"] <= 3
        assert said["curve"] is None


class TestCriterion:
    @pytest.mark.parametrize("criterion", ["bic", "aic", "abic", "caic", "validation"])
    def test_the_best_rank_is_marked_and_written(self, fitted, criterion):
        found, about, out = fitted(
            "--weights", "w", "--criterion", criterion, "--rank", "1-3", "--max-iter", 50
        )
        options = {"sample_weight": WEIGHTS, "random_state": 0, "max_iter": 50}
        curve = jp.choose_rank(TABLE, [found.rank], criterion, **options)
        assert_same(found, curve[found.rank].pmf.reordered())
        assert (np.diff(found.weights) <= 0).all()
        assert (about["criterion"], about["rows"]) == (criterion, "500")
        lines = [line.split() for line in out.splitlines()[:4]]
        assert [line[0] for line in lines] == ["rank", "1", "2", "3"]
        assert [line[0] for line in lines if line[-1] == "←"] == [str(found.rank)]
        scores = [float(line[1]) for line in lines[1:]]
        best = max(scores) if criterion == "validation" else min(scores)
        assert scores.index(best) + 1 == found.rank

    def test_it_goes_up_until_two_ranks_are_no_better(self, fitted):
        found, about, out = fitted("--drop", "w", "--classes")
        assert about["criterion"] == "bic"
        tried = re.findall(r"^ +(\d+) +\d", out, re.MULTILINE)
        assert tried == [str(one) for one in range(1, found.rank + 3)]
        assert found.rank == jp.choose_rank(TABLE, range(1, 5), "bic", random_state=0).rank

    def test_it_has_the_curve_for_machines(self, data, tmp_path, inside):
        options = ("--drop", "w", "--bins", "a=2", "--classes", "--rank", "1,3", "--json")
        code, out, err = inside("fit", data, "-o", tmp_path / "m", *options)
        assert (code, err) == (0, "")
        said = json.loads(out)
        assert [score["rank"] for score in said["curve"]] == [1, 3]
        assert said["rank"] == min(said["curve"], key=lambda score: score["score"])["rank"]

    def test_an_interrupt_writes_the_best_rank_so_far(self, data, tmp_path, inside, monkeypatch):
        choose = rank.choose_rank

        def interrupted(codes, ranks, *args, **options):
            if ranks == [3]:
                raise KeyboardInterrupt
            return choose(codes, ranks, *args, **options)

        monkeypatch.setattr(rank, "choose_rank", interrupted)
        code, out, _ = inside("fit", data, "-o", tmp_path / "m", "--drop", "w", "--classes")
        assert code == 3
        assert "The fit was stopped" in out
        assert jp.load(tmp_path / "m").rank == 2

    def test_all_rows_must_be_in_memory(self, data, tmp_path, inside, monkeypatch):
        monkeypatch.setattr(memory.Room, "n_rows", lambda self, *asked: 100)
        options = ("--drop", "w", "--classes", "--memory", "8GB")
        code, _, err = inside("fit", data, "-o", tmp_path / "m", *options)
        assert code == 2
        assert "are too many for memory 8GB, and --criterion needs all of them there" in err
        assert not (tmp_path / "m").exists()


class TestHint:
    """A rank that was found by itself is for prediction, which is said."""

    HINT = "The rank is for prediction; to read the components, choose it with --classes."

    def test_it_is_said_where_no_rank_was_asked_for(self, fitted, data, tmp_path, inside):
        options = ("--drop", "w", "--max-iter", 2)
        assert self.HINT in fitted(*options)[2]
        for more in (["--rank", "auto"], ["--rank", 1], ["--classes"]):
            code, out, err = inside("fit", data, "-o", tmp_path / "m", *options, *more)
            assert code in (0, 3)
            assert self.HINT not in out + err
        _, out, err = inside("fit", data, "-o", tmp_path / "m", *options, "--json")
        assert "prediction" not in out + err

    def test_the_help_says_it(self, inside):
        text = " ".join(re.sub("[│\n]", " ", inside("fit", "--help")[1]).split())
        assert "Without --rank the model is the best for prediction" in text
        assert "to read its components, use --classes" in text
