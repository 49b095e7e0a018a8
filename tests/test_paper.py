"""The rating experiment on small made-up ratings: splits, methods, the log and the report."""

import json

import numpy as np
import pytest
from paper import factorization, ratings, ratings_report

import jointpmf as jp
from jointpmf.solvers.loop import Step


@pytest.fixture
def small(monkeypatch):
    """Ratings of 150 users by one taste, in place of every real set."""
    generator = np.random.default_rng(0)
    taste = generator.normal(size=(150, 1))
    liking = 2 + taste * np.linspace(-1, 1, 6) + generator.normal(scale=0.5, size=(150, 6))
    codes = liking.round().clip(0, 4).astype(int)
    codes[generator.random(codes.shape) < 0.3] = jp.MISSING
    domain = jp.Domain([jp.Variable(f"item {n}", (1, 2, 3, 4, 5)) for n in range(6)])
    made = jp.Ratings(np.arange(150), jp.Codes(domain, codes))
    monkeypatch.setattr(ratings, "ratings_of", lambda name, release: made)
    return made


@pytest.fixture
def split(small):
    return ratings.Split.of("action", 0, "pooled")


def test_a_split_hides_what_it_should(small, split):
    assert len(split.test.row) == pytest.approx(0.2 * small.n_ratings, abs=1)
    assert len(split.validation.row) == pytest.approx(0.1 * small.n_ratings, abs=1)
    hidden = np.zeros((150, 6), int)
    for part in (split.test, split.validation):
        hidden[part.row, part.item] += 1
    assert hidden.max() == 1
    assert (split.train.codes.array[hidden == 1] == jp.MISSING).all()
    assert (split.train.codes.array == small.codes.array)[hidden == 0].all()
    again = ratings.Split.of("action", 0, "pooled")
    assert (again.test.row == split.test.row).all()
    assert (ratings.Split.of("action", 1, "pooled").test.row[:9] != split.test.row[:9]).any()


def test_what_a_model_says_is_what_the_library_says(split):
    pmf = jp.random_pmf(split.train.codes.domain, 3, random_state=0)
    chances = split.test.probabilities(pmf)
    for n, name in enumerate(split.train.items):
        cells = split.test.item == n
        rows = split.test.row[cells]
        every = pmf.predict_proba(split.train.codes, name)[rows]
        np.testing.assert_allclose(chances[cells], every, atol=1e-12)
        expected = pmf.expectation(split.train.codes, name)[rows]
        np.testing.assert_allclose(split.test.expected(pmf)[cells], expected, atol=1e-12)


def test_averages(split):
    known = np.append(split.test.values, np.nan)[split.train.codes.array]
    truth = split.test.truth
    (found,) = ratings.averages("item", split)
    expected = np.nanmean(known, axis=0)[split.test.item]
    assert found.rmse == pytest.approx(np.sqrt(((expected - truth) ** 2).mean()))
    (found,) = ratings.averages("global", split)
    assert found.mae == pytest.approx(np.abs(np.nanmean(known) - truth).mean())
    (found,) = ratings.averages("user", split)
    means = [np.nanmean(known if np.isnan(row).all() else row) for row in known]
    assert found.mae == pytest.approx(np.abs(np.array(means)[split.test.row] - truth).mean())


def test_factorization_is_the_librarys_own(split):
    setting = {"n_epochs": 10, "reg_all": 0.05, "n_factors": 2}
    trainset = factorization.trainset_of(split.train)
    table = factorization.factorized(trainset, (150, 6), setting)
    model = factorization.SVD(random_state=0, **setting).fit(trainset)
    for user, item in zip(split.test.row[:50], split.test.item[:50], strict=True):
        assert table[user, item] == pytest.approx(model.predict(user, item).est)


def test_the_search_ends_where_no_step_helps(split, monkeypatch):
    monkeypatch.setattr(factorization, "GRID", {"n_epochs": (5, 10, 20), "reg_all": (0.02, 0.1)})
    monkeypatch.setattr(factorization, "FIRST", (({"n_epochs": 5, "reg_all": 0.1}, 10),))
    tried = list(factorization.tuned_factorization(split.train, split.validation))
    costs = {
        tuple(setting.values()): split.validation.rmse(
            table[split.validation.row, split.validation.item]
        )
        for setting, _, table in tried
    }
    assert len(costs) == len(tried)  # nothing is tried twice
    assert all(epochs <= 10 for epochs, _ in costs)
    epochs, reg = min(costs, key=costs.get)
    assert ({5: 10, 10: 5}[epochs], reg) in costs
    assert (epochs, {0.02: 0.1, 0.1: 0.02}[reg]) in costs


def test_a_cut_off_line_of_the_log_is_left_out(tmp_path):
    log = tmp_path / "log.jsonl"
    record = {"release": "pooled", "set": "action", "split": 0, "method": "BMF", "tried": []}
    record["how"] = ratings.how(ratings.METHODS["BMF"])
    others = [{"release": "25m"}, {"method": "no longer there"}, {"how": "otherwise"}]
    log.write_text(json.dumps(record)[:30])  # killed while it wrote
    for change in ({}, *others, {"split": 1}):
        ratings.append_to_log(log, record | change)
    assert list(ratings.finished(log, "pooled")) == [("action", 0, "BMF"), ("action", 1, "BMF")]
    assert ratings.finished(tmp_path / "none", "pooled") == {}


def test_settings_tell_records_apart():
    texts = {ratings.how(method) for method in ratings.METHODS.values()}
    assert len(texts) == len(ratings.METHODS)
    assert not any(" at 0x" in text for text in texts)


def test_the_report_chooses_on_validation(tmp_path):
    generator = np.random.default_rng(0)
    records = []
    for name in ratings.SETS:
        for method in ratings.METHODS:
            for number in range(2):
                tried = [
                    {
                        "setting": {"rank": rank, "n_epochs": 2 * rank},
                        "validation": abs(rank - 10) + 1.0,
                        "rmse": 0.9 + 0.01 * rank + generator.random() / 1e6,
                        "mae": 0.5,
                        "mae_of_level": 0.4,
                        "seconds": 1.0,
                        "coverage": ratings_report.LEVELS.tolist(),
                    }
                    for rank in (5, 10, 20)
                ]
                records.append({"set": name, "split": number, "method": method, "tried": tried})
    sizes = dict.fromkeys(ratings.SETS, "made up")
    text = ratings_report.write(records, "Made up", sizes, tmp_path / "ratings")
    assert "1.0000 ± 0.0000" in text  # rank 10, best on the validation part
    assert "+0.0000 (-0.0000, +0.0000)" in text or "-0.0000 (-0.0000, +0.0000)" in text
    assert "| likelihood, averaged | 80.0% | 80.0% | 80.0% | 80.0% |" in text
    assert {path.name for path in tmp_path.iterdir()} == {
        "ratings.md",
        "ratings.csv",
        "ratings_rank.png",
        "ratings_rank.svg",
        "ratings_reliability.png",
        "ratings_reliability.svg",
    }


def test_what_is_tried_ends_after_the_first_that_is_no_better():
    def tried(cost):
        return ratings.Tried({}, cost, 0.0, 0.0, 0.0, 0.0)

    def costs(found):
        return [one.validation for one in found]

    four = [tried(cost) for cost in (3.0, 2.0, 2.5, 1.0)]
    assert costs(ratings.while_better(four)) == [3.0, 2.0, 2.5]
    assert costs(ratings.while_better(four, 2.5)) == [3.0]


def test_the_best_iterate_is_kept(split):
    part = split.validation
    models = [jp.random_pmf(split.train.codes.domain, 2, random_state=k) for k in range(2)]
    best, worse = sorted(models, key=lambda pmf: part.rmse(part.expected(pmf)))
    kept = ratings.Kept(part)
    found = [
        kept(Step(number, 0.0, 0.0, 0.0, 0.0), pmf)
        for number, pmf in enumerate([worse, best, *[worse] * ratings.PATIENCE])
    ]
    assert found == [False] * (ratings.PATIENCE + 1) + [True]
    assert kept.pmf is best


COUNTED = "CP (triples), likelihood, averaged"


@pytest.mark.parametrize("method", ["CP (pairs)", "maximum likelihood", "+ averaging", COUNTED])
def test_methods_beat_the_global_average(split, method):
    tried = list(ratings.METHODS[method](split))
    (average,) = ratings.averages("global", split)
    assert min(tried, key=lambda found: found.validation).rmse < average.rmse
    assert all(len(found.coverage) == len(ratings_report.LEVELS) for found in tried)
