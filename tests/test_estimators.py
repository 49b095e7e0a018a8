"""The scikit-learn classes: its own checks, its habits, and the answers by brute force."""

import io
import pickle
import re
import unittest
from functools import cache

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import jointpmf as jp
from jointpmf.threads import limited_to
from support import oracle
from support.small_fits import assert_same_bits

KINDS = [jp.PMFEstimator, jp.PMFClassifier, jp.PMFRegressor, jp.PMFImputer]
WITH_TARGET = [jp.PMFClassifier, jp.PMFRegressor]

OF_ANY_RANK = {
    "check_dict_unchanged",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_sample_weight_equivalence_on_dense_data",
}
"""Checks of scikit-learn that a search for a rank or a start could fail where one fit does not."""

any_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
either_rank = pytest.mark.parametrize("rank", [2, "auto"])


@parametrize_with_checks([kind(4, max_iter=10, n_starts=2) for kind in KINDS])
def test_scikit_learn_accepts_every_estimator(estimator, check):
    passes(estimator, check)


@any_kind
@pytest.mark.parametrize("rank", ["auto", 4])
def test_scikit_learn_accepts_a_rank_that_is_found_and_as_many_starts_as_it_takes(kind, rank):
    for estimator, check in estimator_checks_generator(kind(rank, max_iter=6), legacy=True):
        if name_of(check) in OF_ANY_RANK:
            passes(estimator, check)


def passes(estimator, check):
    try:
        check(estimator)
    except (unittest.SkipTest, pytest.skip.Exception) as skipped:
        pytest.fail(f"a check was skipped: {skipped}")


@any_kind
def test_the_checks_are_the_full_battery_for_categories_with_holes(kind):
    tags = kind().__sklearn_tags__()
    assert tags.input_tags.allow_nan
    assert tags.input_tags.categorical
    assert tags.input_tags.string
    assert not tags.no_validation
    assert not tags._skip_test
    checks = estimator_checks_generator(kind(), legacy=True)
    assert {"check_array_api_input", *OF_ANY_RANK} <= {name_of(check) for _, check in checks}


def name_of(check):
    return getattr(check, "func", check).__name__


def planted(n_rows=120, seed=0):
    """Return a table with holes of which a hidden coin decides most, and the coin."""
    generator = np.random.default_rng(seed)
    coin = generator.integers(2, size=n_rows)
    size = (coin + (generator.random(n_rows) < 0.2)) % 3
    table = pl.DataFrame(
        {
            "sky": np.where((coin == 1) ^ (generator.random(n_rows) < 0.1), "sun", "rain"),
            "size": np.array([10, 20, 40])[size],
            "fan": coin == generator.integers(2, size=n_rows),
        }
    )
    holes = generator.random((n_rows, 3)) < 0.15
    return table.with_columns(
        pl.when(pl.Series(~holes[:, n])).then(pl.col(name)).alias(name)
        for n, name in enumerate(table.columns)
    ), coin


TABLE, COIN = planted()
LABELS = np.array(["hat", "umbrella"])[1 - COIN]
NUMBERS = np.array([1.5, 4.0])[COIN] + np.tile([0.0, 1.0], 60)


def fitted(kind, table=TABLE, **options):
    model = kind(**{"rank": 2, "random_state": 0, "tol": 1e-6} | options)
    return model.fit(table, *target_for(kind))


@cache
def usual(kind, rank=2):
    """Return the model that many tests ask, which none of them changes."""
    return fitted(kind, rank=rank)


def target_for(kind):
    return {jp.PMFClassifier: [LABELS], jp.PMFRegressor: [NUMBERS]}.get(kind, [])


def answers(model, table=TABLE):
    """Return what an estimator says about rows, whichever it is."""
    if isinstance(model, jp.PMFImputer):
        return [tuple(row) for row in pl.DataFrame(model.transform(table)).rows()]
    if isinstance(model, jp.PMFClassifier):
        return model.predict_proba(table).tolist()
    if isinstance(model, jp.PMFRegressor):
        return model.predict(table).tolist()
    return model.score_samples(table).tolist()


def by_condition(model, row):
    """Return P(target | the row's observed cells that the model knows), cell by cell."""
    evidence = {
        variable.name: cell
        for variable, cell in zip(model.domain_, row, strict=True)
        if cell is not None and cell in variable
    }
    target = model.pmf_.domain.names[-1]
    return model.pmf_.condition(evidence).marginal([target]).table()


def coded(n_rows, seed=0):
    truth = jp.random_pmf(jp.Domain.of_sizes([3, 4, 2, 3]), rank=2, random_state=1)
    rows = truth.sample(n_rows, random_state=seed, backend="codes").astype(int)
    rows[np.random.default_rng(seed).random(rows.shape) < 0.1] = jp.MISSING
    return rows


def test_a_given_rank_is_fitted_as_by_fit_rows():
    solution = jp.fit_rows(TABLE, 2, random_state=3)
    model = jp.PMFEstimator(2, random_state=3).fit(TABLE)
    assert_same_bits(model.pmf_, solution.pmf)
    assert model.solution_.n_agreed == solution.n_agreed


class TestPartialFit:
    def test_only_a_given_rank_can_learn_more(self):
        assert hasattr(jp.PMFEstimator(2), "partial_fit")
        assert not hasattr(jp.PMFEstimator(), "partial_fit")

    def model(self, **options):
        how = {"rank": 2, "random_state": 0, "tol": 1e-6, "missing_values": jp.MISSING}
        return jp.PMFEstimator(**how | options)

    def test_the_first_call_is_a_fit(self):
        first, fit = self.model().partial_fit(TABLE), self.model().fit(TABLE)
        assert answers(first) == answers(fit)
        assert first.solution_.status is fit.solution_.status
        assert (first.n_iter_, first.domain_) == (fit.n_iter_, fit.domain_)
        assert first.n_features_in_ == 3
        assert first.feature_names_in_.tolist() == TABLE.columns

    def test_minus_one_is_missing_also_where_it_comes_late(self):
        rows = coded(200)
        rows = np.where(rows < 0, 0, rows)
        holes = np.where(rows == 1, -1, rows)
        model = self.model().partial_fit(rows).partial_fit(holes)
        assert np.isfinite(model.score_samples(holes)).all()
        assert np.isfinite(self.model().fit(rows).score_samples(holes)).all()

    def test_frames_of_dask_are_for_fit(self):
        frame = pytest.importorskip("dask.dataframe").from_pandas(TABLE.to_pandas(), npartitions=2)
        with pytest.raises(jp.JointPMFError, match="fit takes a table of Dask"):
            self.model().partial_fit(frame)

    @pytest.mark.parametrize("smoothing", [None, 0.1])
    def test_later_calls_are_steps_as_in_plain_numpy(self, smoothing):
        rows, weights = coded(200), np.random.default_rng(1).random(200) + 0.5
        model = self.model(smoothing=smoothing).partial_fit(rows[:80], sample_weight=weights[:80])
        by_hand = oracle.StepwiseEM(
            rows[:80], weights[:80], model.pmf_, smoothing or 0.0, "uniform"
        )
        for n_steps, (begin, end) in enumerate([(80, 150), (150, 151), (151, 200)], start=1):
            model.partial_fit(rows[begin:end], sample_weight=weights[begin:end])
            by_hand.add(rows[begin:end], weights[begin:end])
            assert model.n_iter_ == n_steps
            assert model.solution_.status is jp.Status.ONE_PASS
            for mine, other in zip(model.pmf_.factors, by_hand.pmf().factors, strict=True):
                assert np.allclose(mine, other, atol=1e-10)

    def test_many_calls_come_near_the_fit_to_all_rows(self):
        rows = coded(6000)
        whole, model = self.model().fit(rows), self.model()
        for batch in np.array_split(rows, 30):
            model.partial_fit(batch)
        first = self.model().fit(rows[:200])
        assert whole.score(rows) - model.score(rows) < 0.5 * (whole.score(rows) - first.score(rows))

    def test_the_same_calls_give_the_same_model(self):
        rows = coded(900)
        models = [self.model(), self.model()]
        for threads, model in enumerate(models, start=1):
            with limited_to(threads):
                for batch in np.array_split(rows, 5):
                    model.partial_fit(batch)
        assert answers(models[0], rows) == answers(models[1], rows)

    def test_it_goes_on_after_fit_which_begins_afresh(self):
        rows = coded(300)
        one = self.model().partial_fit(rows[:100]).partial_fit(rows[100:])
        two = self.model().fit(rows[:100]).partial_fit(rows[100:])
        assert np.allclose(answers(one, rows), answers(two, rows), atol=1e-12)
        assert answers(one.fit(rows), rows) == answers(self.model().fit(rows), rows)
        assert answers(clone(one).partial_fit(rows), rows) == answers(self.model().fit(rows), rows)

    def test_a_model_that_was_pickled_goes_on_alike(self):
        rows = coded(300)
        model = self.model().partial_fit(rows[:100])
        again = pickle.loads(pickle.dumps(model))
        for one in (model, again):
            one.partial_fit(rows[100:])
        assert answers(model, rows) == answers(again, rows)

    def test_large_calls_are_several_steps(self):
        size = 16_384
        rows = coded(100 + 2 * size + 30)
        at_once = self.model().partial_fit(rows[:100]).partial_fit(rows[100:])
        assert at_once.n_iter_ == 3
        one_by_one = self.model().partial_fit(rows[:100])
        for begin in range(100, len(rows), size):
            one_by_one.partial_fit(rows[begin : begin + size])
        assert answers(at_once, rows[:500]) == answers(one_by_one, rows[:500])

    def test_an_unknown_level_says_what_to_do(self):
        model = self.model().partial_fit(TABLE.filter(pl.col("size") != 40))
        with pytest.raises(jp.JointPMFError, match=r"40 in row .*pass domain= .* first call"):
            model.partial_fit(TABLE)

    def test_a_domain_may_have_levels_and_columns_that_come_later(self):
        domain = jp.encode(TABLE).domain
        early = TABLE.filter(pl.col("size") != 40).with_columns(
            pl.lit(None, pl.Boolean).alias("fan")
        )
        model = self.model().partial_fit(early, domain=domain)
        assert model.domain_ == domain
        assert model.partial_fit(TABLE, domain=domain).pmf_.domain == domain
        assert np.isfinite(model.score(TABLE))
        with pytest.raises(jp.JointPMFError, match="the domain belongs to the first call"):
            model.partial_fit(TABLE, domain=domain.project(["sky"]))

    def test_minus_one_is_a_level_unless_it_is_said_to_be_missing(self):
        rows = coded(100)
        sizes = jp.Domain.of_sizes([3, 4, 2, 3])
        model = self.model().partial_fit(rows, domain=sizes)
        known = np.where(rows < 0, np.nan, rows)
        assert answers(model, rows) == answers(self.model().partial_fit(known, domain=sizes), known)
        levels = jp.Domain([jp.Variable(f"x{n}", range(-1, 4)) for n in range(4)])
        model = self.model(missing_values=np.nan).partial_fit(rows, domain=levels)
        assert model.pmf_.marginal(["x0"]).table()[0] > 0.05
        with pytest.raises(
            jp.JointPMFError, match=r"missing_code is -1, which is a level of .*'x0'"
        ):
            self.model().partial_fit(rows, domain=levels)
        with pytest.raises(jp.JointPMFError, match=r"'x[0-3]' holds -1 in row"):
            self.model(missing_values=np.nan).partial_fit(rows, domain=sizes)

    @pytest.mark.parametrize("options", [{"rank": "auto"}, {"rank": "five"}])
    def test_it_needs_a_rank(self, options):
        model = self.model(**options)
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError) as error:
            model.partial_fit(TABLE)
        assert isinstance(error.value.__cause__, jp.JointPMFError)
        assert "partial_fit needs a rank" in str(error.value.__cause__)

    def test_bad_arguments(self):
        with pytest.raises(jp.JointPMFError, match="the rank must be a whole number"):
            self.model(rank=0).partial_fit(TABLE)
        with pytest.raises(jp.JointPMFError, match="no row has an observed cell"):
            self.model().partial_fit(np.full((3, 4), np.nan), domain=jp.Domain.of_sizes([2] * 4))
        with pytest.raises(jp.JointPMFError, match="a domain must be a Domain"):
            self.model().partial_fit(coded(30), domain=3)
        with pytest.raises(jp.JointPMFError, match="all sample weights are zero"):
            self.model().partial_fit(coded(3), sample_weight=np.zeros(3))
        with pytest.raises(ValueError, match="features"):
            self.model().partial_fit(coded(30)).partial_fit(coded(30)[:, :3])


class TestSciKitLearnHabits:
    @any_kind
    def test_a_clone_has_the_parameters_and_no_model(self, kind):
        model = fitted(kind, rank=3, smoothing=0.5)
        copy = clone(model)
        assert copy.get_params() == model.get_params()
        assert not hasattr(copy, "pmf_")

    @any_kind
    @pytest.mark.parametrize("how", ["pickle", "joblib"])
    def test_a_fitted_model_that_was_written_and_read_answers_alike(self, kind, how):
        model, file = usual(kind), io.BytesIO()
        (pickle if how == "pickle" else joblib).dump(model, file)
        file.seek(0)
        again = (pickle if how == "pickle" else joblib).load(file)
        assert answers(again) == answers(model)

    def test_fits_in_other_processes_are_the_fits_in_this_one(self):
        models = [kind(2, random_state=0, tol=1e-6) for kind in KINDS]
        with joblib.parallel_config("loky", n_jobs=2):
            there = joblib.Parallel()(
                joblib.delayed(model.fit)(TABLE, *target_for(type(model))) for model in models
            )
        assert not any(hasattr(model, "pmf_") for model in models)
        assert [answers(model) for model in there] == [answers(usual(kind)) for kind in KINDS]

    @pytest.mark.parametrize("kind", WITH_TARGET)
    def test_the_imputer_and_a_predictor_make_a_pipeline(self, kind):
        line = make_pipeline(
            jp.PMFImputer(2, random_state=0, tol=1e-6), kind(2, random_state=0, tol=1e-6)
        )
        line.fit(TABLE, *target_for(kind))
        complete = usual(jp.PMFImputer).transform(TABLE)
        assert line.predict(TABLE).tolist() == fitted(kind, complete).predict(complete).tolist()
        assert line.score(TABLE, *target_for(kind)) > 0.4

    def test_a_grid_search_over_ranks_finds_that_one_component_is_not_enough(self):
        search = GridSearchCV(jp.PMFClassifier(random_state=0), {"rank": [1, 2, "auto"]}, cv=3)
        search.fit(TABLE, LABELS)
        scores = dict(zip([1, 2, "auto"], search.cv_results_["mean_test_score"], strict=True))
        assert search.best_params_["rank"] in (2, "auto")
        assert min(scores[2], scores["auto"]) > scores[1] + 0.2

    def test_a_grid_search_of_densities_goes_by_their_score(self):
        search = GridSearchCV(jp.PMFEstimator(random_state=0), {"rank": [1, 2]}, cv=3).fit(TABLE)
        assert search.best_params_ == {"rank": 2}

    @pytest.mark.parametrize(("kind", "at_least"), [(jp.PMFClassifier, 0.8), (jp.PMFRegressor, 0)])
    def test_cross_validation_on_tables_scores_what_was_not_seen(self, kind, at_least):
        model = kind(2, random_state=0, tol=1e-6)
        for table in (TABLE, TABLE.to_pandas()):
            scores = cross_val_score(model, table, *target_for(kind), cv=3)
            assert scores.shape == (3,)
            assert scores.mean() > at_least

    @any_kind
    def test_what_came_in_is_remembered(self, kind):
        model = usual(kind)
        assert model.n_features_in_ == 3
        assert model.feature_names_in_.tolist() == ["sky", "size", "fan"]
        assert model.n_iter_ == model.solution_.n_iter >= 1
        assert model.domain_.names == ("sky", "size", "fan")

    @any_kind
    @either_rank
    def test_the_same_seed_gives_the_same_bits(self, kind, rank):
        again = fitted(kind, rank=rank)
        assert again.pmf_.weights.tolist() == usual(kind, rank).pmf_.weights.tolist()
        assert answers(again) == answers(usual(kind, rank))

    def test_another_seed_gives_others(self):
        other = fitted(jp.PMFEstimator, rank="auto", random_state=1)
        assert answers(other) != answers(usual(jp.PMFEstimator, "auto"))

    def test_a_random_state_of_scikit_learn_is_a_seed_too(self):
        states = [np.random.RandomState(seed) for seed in (5, 5, 6)]
        first, second, other = (
            fitted(jp.PMFEstimator, rank="auto", random_state=state) for state in states
        )
        assert answers(first) == answers(second) != answers(other)

    @any_kind
    def test_columns_in_another_order_are_refused(self, kind):
        with pytest.raises(ValueError, match="same order"):
            answers(usual(kind), TABLE.select("fan", "sky", "size"))

    @any_kind
    def test_a_missing_column_is_refused(self, kind):
        with pytest.raises(ValueError, match="now missing"):
            answers(usual(kind), TABLE.drop("fan"))

    @any_kind
    def test_an_array_after_a_table_is_read_by_position_with_a_warning(self, kind):
        model = usual(kind)
        array = np.array(TABLE.rows(), object)
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            from_array = answers(model, array)
        assert from_array == answers(model)

    @any_kind
    def test_an_array_of_another_width_is_refused(self, kind):
        model = fitted(kind, np.array(TABLE.rows(), object))
        with pytest.raises(ValueError, match="3 features"):
            answers(model, np.array(TABLE.rows(), object)[:, :2])

    @any_kind
    @pytest.mark.parametrize("convert", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
    def test_every_kind_of_table_gives_the_same_answers(self, kind, convert):
        other = convert(TABLE)
        model = fitted(kind, other)
        assert model.domain_ == usual(kind).domain_
        assert model.pmf_.weights.tolist() == usual(kind).pmf_.weights.tolist()
        if kind is not jp.PMFImputer:  # what it returns has a test of its own
            assert answers(model, other) == answers(usual(kind))

    @any_kind
    def test_neither_the_table_nor_the_array_nor_the_parameters_change(self, kind):
        bins = {"size": [0, 15, 50]}
        model = fitted(kind, bins=bins)
        table = TABLE.clone()
        answers(model, table)
        assert table.equals(TABLE)
        assert model.get_params()["bins"] is bins
        assert bins == {"size": [0, 15, 50]}
        array = np.array(TABLE.rows(), object)
        before = array.copy()
        answers(fitted(kind, array), array)
        assert (array == before).all()

    def test_names_that_are_no_text_are_not_remembered_but_work(self):
        table = TABLE.to_pandas().set_axis([3, 1, 2], axis=1)
        model = fitted(jp.PMFClassifier, table)
        assert not hasattr(model, "feature_names_in_")
        assert model.predict(table).tolist() == usual(jp.PMFClassifier).predict(TABLE).tolist()

    @any_kind
    def test_an_unfitted_estimator_says_so(self, kind):
        with pytest.raises(ValueError, match="not fitted"):
            answers(kind(2))


class TestClassifier:
    @either_rank
    def test_missing_features_are_summed_out(self, rank):
        model = usual(jp.PMFClassifier, rank)
        rows = [*TABLE.rows()[:25], (None, None, None), ("sun", None, None)]
        table = pl.DataFrame(rows, TABLE.schema, orient="row")
        expected = [by_condition(model, row) for row in rows]
        np.testing.assert_allclose(model.predict_proba(table), expected, rtol=1e-10)

    @pytest.mark.parametrize("column", [0, 1, 2])
    def test_a_level_that_was_never_seen_is_missing(self, column):
        model = usual(jp.PMFClassifier)
        row = ["sun", 40, True]
        row[column] = ["snow", 30, None][column]
        blank = [None if n == column else cell for n, cell in enumerate(row)]
        table = pl.DataFrame([row, blank], TABLE.schema, orient="row")
        new, without = model.predict_proba(table)
        assert new.tolist() == without.tolist()

    @pytest.mark.parametrize(
        "labels",
        [
            ["no", "yes"],
            [7, 3],
            [False, True],
            [-1, 1],
            [0.0, 1.0],
            np.array(["z", "a"], object),
        ],
        ids=str,
    )
    def test_classes_are_the_sorted_labels_and_predictions_are_among_them(self, labels):
        y = np.array(labels)[COIN]
        model = jp.PMFClassifier(2, random_state=0, tol=1e-6).fit(TABLE, y)
        assert model.classes_.tolist() == sorted(np.array(labels).tolist())
        assert model.classes_.dtype == y.dtype
        predicted = model.predict(TABLE)
        assert predicted.dtype == y.dtype
        assert (predicted == y).mean() > 0.8
        assert model.score(TABLE, y) == (predicted == y).mean()

    @pytest.mark.parametrize(
        "as_series", [pd.Series, pl.Series, list, lambda y: pd.Series(pd.Categorical(y))]
    )
    def test_labels_may_be_a_column_of_any_library(self, as_series):
        model = jp.PMFClassifier(2, random_state=0, tol=1e-6).fit(TABLE, as_series(LABELS))
        assert model.classes_.tolist() == ["hat", "umbrella"]
        assert answers(model) == answers(usual(jp.PMFClassifier))

    @pytest.mark.parametrize("kind", WITH_TARGET)
    def test_a_column_may_have_the_name_of_the_target(self, kind):
        renamed = TABLE.rename({"sky": "target", "fan": "target_"})
        model = fitted(kind, renamed)
        assert model.domain_.names == ("target", "size", "target_")
        assert model.pmf_.domain.names == ("target", "size", "target_", "target__")
        assert answers(model, renamed) == answers(usual(kind))

    def test_probabilities_are_of_one_row_each_and_sum_to_one(self):
        proba = usual(jp.PMFClassifier).predict_proba(TABLE)
        assert proba.shape == (120, 2)
        np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)

    def test_the_most_likely_class_is_predicted(self):
        model = usual(jp.PMFClassifier)
        best = model.predict_proba(TABLE).argmax(axis=1)
        assert model.predict(TABLE).tolist() == model.classes_[best].tolist()

    def test_more_rank_finds_a_class_that_no_single_feature_tells(self):
        bits = np.random.default_rng(0).integers(2, size=(300, 4))
        y = bits[:, 0] ^ bits[:, 1]
        train, test = slice(0, 200), slice(200, 300)
        score = {
            rank: jp.PMFClassifier(rank, random_state=0)
            .fit(bits[train], y[train])
            .score(bits[test], y[test])
            for rank in (1, "auto")
        }
        assert score["auto"] > 0.95
        assert score[1] < 0.7

    def test_one_class_is_always_predicted(self):
        model = jp.PMFClassifier(2, random_state=0, tol=1e-6).fit(TABLE, ["only"] * 120)
        assert set(model.predict(TABLE)) == {"only"}


class TestRegressor:
    @pytest.mark.parametrize("n_values", [4, 60])
    def test_mean_and_deviation_are_those_of_the_conditional(self, n_values):
        generator = np.random.default_rng(1)
        y = COIN * 5.0 + generator.integers(n_values, size=120) / n_values
        model = jp.PMFRegressor(2, random_state=0, tol=1e-6).fit(TABLE, y)
        target = model.pmf_.domain.variables[-1]
        assert (target.edges is None) == (n_values == 4)
        values = np.array(target.values)
        mean, std = model.predict(TABLE, return_std=True)
        for row, m, s in zip(TABLE.rows(), mean, std, strict=True):
            p = by_condition(model, row)
            assert m == pytest.approx(p @ values)
            assert s == pytest.approx(np.sqrt(p @ values**2 - (p @ values) ** 2), abs=1e-6)
        assert model.predict(TABLE).tolist() == mean.tolist()

    def test_a_continuous_target_is_cut_into_bins_that_stand_for_their_mean(self):
        y = np.random.default_rng(0).normal(size=120)
        variable = jp.PMFRegressor(2, random_state=0, tol=1e-6).fit(TABLE, y).pmf_.domain["target"]
        positions = np.digitize(y, variable.edges[1:-1])
        means = [y[positions == b].mean() for b in range(variable.size)]
        assert 2 < variable.size <= 20
        np.testing.assert_allclose(variable.values, means)

    def test_predictions_lie_between_the_targets_and_beat_their_mean(self):
        model = usual(jp.PMFRegressor)
        assert NUMBERS.min() <= model.predict(TABLE).min() <= model.predict(TABLE).max() <= 5.0
        assert model.score(TABLE, NUMBERS) > 0.4

    def test_rank_auto_finds_what_the_target_depends_on(self):
        model = fitted(jp.PMFRegressor, rank="auto")
        assert model.score(TABLE, NUMBERS) > 0.4


class TestDensity:
    @either_rank
    def test_scores_are_log_probabilities(self, rank):
        model = usual(jp.PMFEstimator, rank)
        assert model.score_samples(TABLE).tolist() == model.pmf_.log_probability(TABLE).tolist()
        assert model.score(TABLE) == model.pmf_.log_probability(TABLE).mean()

    def test_a_level_that_was_never_seen_is_summed_out(self):
        model = usual(jp.PMFEstimator)
        rows = pl.DataFrame([("snow", 20, None), (None, 20, None)], TABLE.schema, orient="row")
        new, without = model.score_samples(rows)
        assert new == without

    @pytest.mark.parametrize(
        ("backend", "kind"),
        [
            ("polars", pl.DataFrame),
            ("pandas", pd.DataFrame),
            ("pyarrow", pa.Table),
            ("codes", np.ndarray),
        ],
    )
    def test_new_rows_come_as_any_kind_of_table(self, backend, kind):
        model = usual(jp.PMFEstimator)
        rows = model.sample(50, random_state=1, backend=backend)
        assert isinstance(rows, kind)
        if backend == "codes":
            rows = jp.Codes(model.domain_, rows)
        codes = jp.encode(rows, model.domain_).array
        assert codes.tolist() == model.pmf_.sample(50, random_state=1, backend="codes").tolist()
        assert len(np.unique(codes, axis=0)) > 4

    def test_one_row_of_polars_is_drawn_by_default(self):
        rows = usual(jp.PMFEstimator).sample()
        assert isinstance(rows, pl.DataFrame)
        assert rows.shape == (1, 3)

    def test_y_is_ignored(self):
        with_y = jp.PMFEstimator(2, random_state=0, tol=1e-6).fit(TABLE, LABELS)
        assert answers(with_y) == answers(usual(jp.PMFEstimator))
        assert with_y.score(TABLE, LABELS) == with_y.score(TABLE)


class TestParameters:
    def test_a_number_is_the_rank_and_auto_is_an_average(self):
        assert fitted(jp.PMFEstimator, rank=3).pmf_.rank == 3
        auto = fitted(jp.PMFEstimator, rank="auto")
        assert auto.solution_.status is jp.Status.VALIDATED
        assert auto.solution_.n_averaged > 1
        assert auto.pmf_.rank > 3

    def test_a_likelihood_with_its_defaults_is_the_default(self):
        found = answers(fitted(jp.PMFEstimator, objective=jp.Likelihood()))
        assert found == answers(usual(jp.PMFEstimator))

    def test_what_an_objective_says_is_as_if_it_were_a_parameter(self):
        said = fitted(jp.PMFEstimator, objective=jp.Likelihood(smoothing=2.0))
        assert answers(said) == answers(fitted(jp.PMFEstimator, smoothing=2.0))
        both = fitted(jp.PMFEstimator, smoothing=2.0, objective=jp.Likelihood(smoothing=9.0))
        assert answers(said) == answers(both)

    def test_more_smoothing_draws_towards_the_marginals(self):
        sharp, smooth = (fitted(jp.PMFClassifier, smoothing=s) for s in (0.0, 1000.0))
        share = np.mean(LABELS == "hat")
        far = [np.abs(model.predict_proba(TABLE)[:, 0] - share).max() for model in (sharp, smooth)]
        assert far[1] < 0.1 < far[0]

    def test_the_budget_and_the_tolerance_end_the_fit(self):
        stopped = fitted(jp.PMFEstimator, rank=4, max_iter=1, tol=1e-12)
        assert stopped.n_iter_ == 1
        assert stopped.solution_.status is jp.Status.MAX_ITER
        loose, tight = (fitted(jp.PMFEstimator, rank=4, tol=tol).n_iter_ for tol in (0.1, 1e-12))
        assert loose < tight

    def test_several_starts_are_recorded(self):
        assert len(fitted(jp.PMFEstimator, n_starts=3).solution_.restarts) == 3

    def test_more_than_twenty_numbers_are_cut_into_bins(self):
        generator = np.random.default_rng(0)
        X = np.column_stack([generator.permutation(np.arange(200) % k) for k in (20, 21)])
        for bins, sizes in [("auto", (20, 4)), (7, (20, 7)), ({"x0": 2, "x1": 3}, (2, 3))]:
            assert jp.PMFEstimator(1, bins=bins).fit(X).domain_.sizes == sizes

    def test_without_bins_many_numbers_are_refused(self):
        with pytest.raises(jp.JointPMFError, match="'x0' has 30 distinct numbers"):
            jp.PMFEstimator(1, bins=None).fit(np.arange(30.0)[:, None])

    def test_a_number_outside_of_given_edges_is_missing_at_predict_time(self):
        model = fitted(jp.PMFClassifier, bins={"size": [0, 15, 50]})
        rows = pl.DataFrame([(None, 99, None), (None, None, None)], TABLE.schema, orient="row")
        outside, missing = model.predict_proba(rows).tolist()
        assert outside == missing

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"rank": 0}, "rank must be a whole number of at least 1, not 0"),
            ({"rank": 1.5}, "rank must be a whole number of at least 1, not 1.5"),
            ({"rank": "all"}, "rank must be a whole number or 'auto', not 'all'"),
            ({"objective": "magic"}, "objective must be a Likelihood, not 'magic'"),
            ({"rank": "auto", "n_starts": 2}, "n_starts needs a rank, not rank='auto'"),
            ({"smoothing": -1}, "smoothing must be a number of at least 0, not -1"),
            ({"bins": "many"}, "bins must be 'auto', a number or a mapping, not 'many'"),
            ({"bins": 0}, "bins must be a number, or map .* not 0"),
            ({"bins": 2.5}, "bins must be a number, or map .* not 2.5"),
            ({"bins": True}, "bins must be a number, or map .* not True"),
            ({"bins": {"q": 2}}, "bins name 'q', which is no column"),
            ({"bins": {"sky": 2}}, "'sky' cannot be binned"),
            ({"n_starts": 0}, "n_starts must be a whole number of at least 1, not 0"),
            ({"max_iter": -1}, "max_iter must be a whole number of at least 0, not -1"),
            ({"tol": -1}, "tol must be a number of at least 0, not -1"),
            ({"random_state": "x"}, "random_state must be a whole number or .* not 'x'"),
        ],
        ids=str,
    )
    @any_kind
    def test_a_bad_one_gives_a_sentence(self, kind, options, sentence):
        with pytest.raises(jp.JointPMFError, match=sentence):
            fitted(kind, **options)

    @any_kind
    def test_a_bad_table_gives_a_sentence(self, kind):
        y = target_for(kind)
        with pytest.raises(jp.JointPMFError, match="the table is empty"):
            kind(2).fit(TABLE[:0], *[one[:0] for one in y])
        with pytest.raises(jp.JointPMFError, match="'sky' has no observed cell"):
            kind(2).fit(TABLE.with_columns(sky=None), *y)

    @pytest.mark.parametrize("kind", WITH_TARGET)
    def test_a_bad_target_gives_a_sentence(self, kind):
        with pytest.raises(jp.JointPMFError, match="the target y is None"):
            kind(2).fit(TABLE, None)
        with pytest.raises(jp.JointPMFError, match="119 targets for 120 rows"):
            kind(2).fit(TABLE, COIN[1:])
        with pytest.raises(jp.JointPMFError, match="y contains NaN"):
            kind(2).fit(TABLE, np.where(COIN, np.nan, 1.0))


class TestVerbose:
    @pytest.mark.parametrize("kind", [jp.PMFEstimator, jp.PMFClassifier])
    @either_rank
    def test_progress_goes_to_stderr_only(self, kind, rank, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")  # what rich takes for a terminal
        fitted(kind, rank=rank, verbose=True)
        shown = capsys.readouterr()
        what = r"(rank|fit) \d+" if rank == "auto" else r"iteration \d+"
        assert re.search(f"fitting: {what}", shown.err)
        assert shown.out == ""

    @pytest.mark.parametrize("kind", [jp.PMFEstimator, jp.PMFClassifier])
    @either_rank
    def test_nothing_is_shown_unless_asked_for(self, kind, rank, capsys):
        fitted(kind, rank=rank)
        assert capsys.readouterr() == ("", "")

    def test_progress_changes_no_bit(self):
        loud, quiet = (fitted(jp.PMFEstimator, verbose=verbose) for verbose in (True, False))
        assert answers(loud) == answers(quiet)


class TestSampleWeights:
    WEIGHTS = np.random.default_rng(5).integers(0, 4, size=120)
    REPEATED = np.repeat(np.arange(120), WEIGHTS)

    @any_kind
    @either_rank
    def test_whole_weights_are_repeated_rows(self, kind, rank):
        y = target_for(kind)
        weighted = kind(rank, random_state=0, tol=1e-6).fit(TABLE, *y, sample_weight=self.WEIGHTS)
        repeated = kind(rank, random_state=0, tol=1e-6).fit(
            TABLE[self.REPEATED], *[one[self.REPEATED] for one in y]
        )
        assert weighted.domain_ == repeated.domain_
        assert answers(weighted) == answers(repeated)

    @any_kind
    def test_weights_matter(self, kind):
        y = target_for(kind)
        heavy = kind(2, random_state=0, tol=1e-6).fit(TABLE, *y, sample_weight=1 + 50 * COIN)
        assert answers(heavy) != answers(usual(kind))

    @pytest.mark.parametrize(
        ("kind", "convert"),
        [
            (jp.PMFEstimator, pl.DataFrame.to_pandas),
            (jp.PMFClassifier, pl.DataFrame.to_arrow),
            (jp.PMFRegressor, pl.DataFrame),
            (jp.PMFImputer, lambda table: np.array(table.rows(), object)),
        ],
    )
    def test_rows_of_weight_zero_do_not_even_bring_levels(self, kind, convert):
        odd = pl.DataFrame([("snow", 99, None)] * 30, TABLE.schema, orient="row")
        weights = np.r_[np.ones(120), np.zeros(30)]
        y = [np.r_[one, one[:30]] for one in target_for(kind)]
        model = kind(2, random_state=0, tol=1e-6).fit(
            convert(pl.concat([TABLE, odd])), *y, sample_weight=weights
        )
        assert [one.levels for one in model.domain_] == [one.levels for one in usual(kind).domain_]
        assert model.pmf_.weights.tolist() == usual(kind).pmf_.weights.tolist()

    @any_kind
    @pytest.mark.parametrize(
        ("weights", "sentence"),
        [
            (np.zeros(120), "all sample weights are zero"),
            (-np.ones(120), "weight of row 0 is -1"),
            (np.full(120, np.nan), "weight of row 0 is nan"),
            (np.ones(3), "3 sample weights for 120 rows"),
        ],
        ids=["zero", "negative", "nan", "short"],
    )
    def test_bad_ones_give_a_sentence(self, kind, weights, sentence):
        with pytest.raises(jp.JointPMFError, match=sentence):
            kind(2).fit(TABLE, *target_for(kind), sample_weight=weights)


class TestMissingValues:
    ARRAY = np.array(
        [[0, 0, 2], [1, 1, 0], [0, 0, 2], [1, 1, 1]] * 10 + [[0, -1, 2], [1, -1, 0]] * 5
    )

    @pytest.mark.parametrize("convert", [np.int8, np.float64, pl.DataFrame, pd.DataFrame])
    def test_minus_one_is_a_number_like_any_other(self, convert):
        model = jp.PMFImputer(2, random_state=0, tol=1e-6).fit(convert(self.ARRAY))
        assert model.domain_.variables[1].levels == (-1, 0, 1)
        assert (np.asarray(model.transform(convert(self.ARRAY))) == self.ARRAY).all()

    @pytest.mark.parametrize("convert", [np.int8, np.float64, pd.DataFrame])
    def test_unless_it_is_said(self, convert):
        table = convert(self.ARRAY)
        model = jp.PMFImputer(2, missing_values=-1, random_state=0, tol=1e-6).fit(table)
        assert model.domain_.variables[1].levels == (0, 1)
        filled = np.asarray(model.transform(table))
        assert (filled[40:, 1] == [0, 1] * 5).all()
        assert (filled[self.ARRAY >= 0] == self.ARRAY[self.ARRAY >= 0]).all()

    def test_a_text_can_mean_missing(self):
        X = np.array([["rain", "wet"], ["sun", "dry"], ["sun", "dry"]] * 10 + [["sun", "?"]] * 3)
        model = jp.PMFImputer(2, missing_values="?", random_state=0).fit(X)
        assert model.domain_["x1"].levels == ("dry", "wet")
        assert model.transform(X)[30:].tolist() == [["sun", "dry"]] * 3

    @pytest.mark.parametrize("missing_values", [np.nan, None, pd.NA, -9])
    def test_none_nan_and_na_are_always_missing(self, missing_values):
        X = [["rain", 1.5], ["sun", np.nan], [None, 2.5], [pd.NA, 1.5]] * 5
        model = jp.PMFEstimator(1, missing_values=missing_values).fit(X)
        assert [variable.size for variable in model.domain_] == [2, 2]

    def test_what_cannot_mean_missing_is_refused(self):
        with pytest.raises(jp.JointPMFError, match="missing_code must be a number or a text"):
            jp.PMFEstimator(1, missing_values=[1]).fit(self.ARRAY)

    def test_a_number_that_was_never_seen_is_not_filled(self):
        model = jp.PMFImputer(2, random_state=0, tol=1e-6).fit(np.abs(self.ARRAY))
        assert (model.transform(self.ARRAY) == self.ARRAY).all()


class TestPlusAndMinusOne:
    """Data of −1 and 1, as physicists and engineers write them, with holes that are NaN."""

    def planted(self, n_rows=400):
        generator = np.random.default_rng(0)
        side = generator.choice([-1.0, 1.0], n_rows)
        flips = generator.random((n_rows, 12)) < 0.2
        return np.where(flips, -side[:, None], side[:, None]), side

    def test_a_classifier_learns_from_both(self):
        X, y = self.planted()
        model = jp.PMFClassifier(2, random_state=0).fit(X[:200], y[:200])
        assert model.domain_["x0"].levels == (-1.0, 1.0)
        assert model.score(X[200:], y[200:]) > 0.9
        whole = jp.PMFClassifier(2, random_state=0).fit(X[:200].astype(int), y[:200])
        assert whole.score(X[200:].astype(int), y[200:]) > 0.9

    @pytest.mark.parametrize("strategy", ["auto", "mode", "median", "expectation", "sample"])
    def test_an_imputer_changes_no_observed_cell(self, strategy):
        X, _ = self.planted()
        holes = np.random.default_rng(1).random(X.shape) < 0.2
        with_holes = np.where(holes, np.nan, X)
        model = jp.PMFImputer(2, strategy=strategy, random_state=0)
        filled = model.fit_transform(with_holes)
        assert (filled[~holes] == X[~holes]).all()
        assert np.isfinite(filled).all()
        assert (filled[holes] == X[holes]).mean() > (0.75 if strategy in ("auto", "mode") else -1)
        assert (model.transform(X.astype(int)) == X).all()


class TestUnmatched:
    X = np.array([[k % 3, k % 2] for k in range(30)])
    Y = X[:, 0]

    @pytest.fixture
    def model(self):
        return jp.PMFClassifier(3, random_state=0).fit(self.X, self.Y)

    @pytest.mark.parametrize("n_rows", [1, 30])
    def test_numbers_that_became_text_are_a_warning_that_names_the_column(self, model, n_rows):
        table = self.X[:n_rows].astype(object)
        table[:, 0] = list(map(str, table[:, 0]))
        with pytest.warns(UserWarning, match=r"'x0' .*levels are numbers, the column holds text"):
            model.predict(table)

    def test_texts_that_are_spelled_otherwise(self):
        words = np.array(["yes", "no", "perhaps"])
        model = jp.PMFImputer(2, random_state=0).fit(words[self.X])
        shouted = np.char.upper(words)[self.X]
        shouted[:, 1] = words[self.X[:, 1]]
        with pytest.warns(UserWarning, match=r"'x0' .*its levels are 'no', .*holds 'NO'"):
            model.transform(shouted)

    def test_a_few_strange_cells_are_no_warning(self, model):
        model.predict([[7, 8]])
        mixed = self.X.copy()
        mixed[1:] = 9
        model.predict(mixed)


class TestLevels:
    TABLE = pl.DataFrame({"a": ["lo", "hi"] * 20, "b": ["lo", "mid"] * 20, "c": ["x", "y"] * 20})

    @pytest.mark.parametrize("kind", [jp.PMFEstimator, jp.PMFImputer])
    def test_every_estimator_takes_scales(self, kind):
        model = kind(1, levels=["lo", "mid", "hi"]).fit(self.TABLE)
        assert model.domain_["a"].levels == model.domain_["b"].levels == ("lo", "mid", "hi")
        assert model.domain_["c"].levels == ("x", "y")
        assert clone(model).get_params()["levels"] == ["lo", "mid", "hi"]

    def test_supervised_ones_too(self):
        y = [0, 1] * 20
        for kind in (jp.PMFClassifier, jp.PMFRegressor):
            model = kind(1, levels={"a": ["lo", "hi"]}).fit(self.TABLE, y)
            assert model.domain_["a"].levels == ("lo", "hi")


def test_a_model_of_an_array_takes_a_table_by_place():
    X = np.array([[0, 1], [1, 0]] * 10)
    y = [0, 1] * 10
    model = jp.PMFClassifier(2, random_state=0).fit(X, y)
    table = pd.DataFrame(X[:2], columns=["x1", "x0"])
    with pytest.warns(UserWarning, match="feature names"):
        assert model.predict(table).tolist() == [0, 1]


def test_rows_of_no_weight_have_no_levels_in_a_target():
    weights = [1, 1, 0] * 4
    model = jp.PMFRegressor(1).fit([[0], [1], [0]] * 4, [0.0, 1.0, 99.0] * 4, sample_weight=weights)
    assert model.pmf_.domain.variables[-1].levels == (0.0, 1.0)
