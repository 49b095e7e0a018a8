"""Every public function and method, with arguments for which it works."""

import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

import jointpmf as jp
from support import traits
from support.ratings import some_ratings

DOMAIN = jp.Domain.of_sizes([2, 3, 2], names=["a", "b", "c"])
PMF = jp.random_pmf(DOMAIN, rank=2, random_state=0)
ROWS = PMF.sample(12, random_state=0)
CODES = jp.encode(ROWS, DOMAIN)
TABLES = jp.MarginalSet.from_table(ROWS, 2, domain=DOMAIN)
TABLE = TABLES.marginals[0]
QUICK = {"max_iter": 2, "tol": 0.1, "random_state": 0}
RANDOM = jp.Search(start="random")
SOLUTION = jp.fit_rows(ROWS, 2, domain=DOMAIN, search=RANDOM, **QUICK)
BY_TRAITS = jp.fit_rows(CODES, 8, objective=jp.Likelihood(traits=jp.Traits(1, waves=0)), **QUICK)
AVERAGED = jp.fit_rows(ROWS, 2, domain=DOMAIN, search=jp.Search(n_average=2), **QUICK)
UNCERTAINTY = SOLUTION.uncertainty(2, random_state=0)
RATINGS = some_ratings(6, 3)
RATED = jp.random_pmf(RATINGS.codes.domain, rank=1, random_state=0)
LONG = pl.DataFrame({"user": [1, 1, 2], "item": ["x", "y", "x"], "rating": [1, 2, 2]})
TRAITS = traits.pmf_of(traits.planted(DOMAIN, n_points=8))
X = np.array([[0.0, 1.0], [1.0, 2.0], [0.0, 0.0], [1.0, np.nan]] * 3)
Y = np.array([0, 1, 0, 1] * 3)
SUMMARY = jp.summary(PMF, ROWS)
CURVE = jp.choose_rank(ROWS, [1, 2], "bic", domain=DOMAIN, search=RANDOM, **QUICK)
SHORT = {"rank": 1, "max_iter": 1, "n_starts": 1, "bins": None, "random_state": 0}


SLOW = ("fit_", "choose_rank", "bootstrap", "PMF", "Search")
"""Calls that fit a model each time, or several."""


@dataclass(frozen=True)
class Call:
    """A function, and arguments for which it works; `also` names arguments that it has besides.

    One in `every` odd values is tried for each argument, for the next argument the next one.
    """

    name: str
    function: Any
    arguments: dict = field(default_factory=dict)
    also: tuple = ()

    @property
    def every(self):
        return 16 if self.name.startswith(SLOW) else 6

    @property
    def parameters(self):
        kinds = inspect.signature(self.function).parameters.values()
        own = [p.name for p in kinds if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        return (*own, *self.also)


READING = ("domain", "bins", "levels", "missing_code")


def call(name, function, /, *also, **arguments):
    return Call(name, function, arguments, also)


def fitted(kind, **options):
    return kind(**SHORT | options).fit(X, Y)


def after(estimator, method):
    """Return a method of an estimator that is made with the given settings and fitted first."""

    def made(**settings):
        getattr(estimator(**SHORT | settings).fit(X, Y), method)(X)

    made.__signature__ = inspect.signature(estimator)
    return made


def used(setting, use):
    """Return a function of a setting's arguments, which makes it and uses it."""

    def made(**arguments):
        return use(setting(**arguments))

    made.__signature__ = inspect.signature(setting)
    return made


def fit_once(rank=1, **options):
    return jp.fit_rows(CODES, rank, **QUICK | options)


CALLS = [
    call("Variable", jp.Variable, name="a", levels=(0, 1)),
    call("Variable.code", DOMAIN["a"].code, level=1),
    call("Domain", jp.Domain, variables=DOMAIN.variables),
    call("Domain.of_sizes", jp.Domain.of_sizes, sizes=[2, 3]),
    call("Domain.index", DOMAIN.index, name="a"),
    call("Domain.indices", DOMAIN.indices, names=["a"]),
    call("Domain.project", DOMAIN.project, names=["a"]),
    call("Codes", jp.Codes, domain=DOMAIN, array=CODES.array),
    call(
        "Codes.of_columns",
        jp.Codes.of_columns,
        domain=DOMAIN,
        n_rows=2,
        columns=[np.array([0, 1])] * 3,
    ),
    call("encode", jp.encode, table=ROWS),
    call("encode by a domain", jp.encode, table=ROWS, domain=DOMAIN),
    call("Marginal", jp.Marginal, names=["a", "b"], table=np.ones((2, 3))),
    call(
        "Marginal of counts",
        jp.Marginal,
        names=["a", "b"],
        table=np.full((2, 3), 10.0),
        n_obs=60,
        levels={"a": [0, 1]},
        where={"c": 1},
        noise=1.0,
        rounding=0.5,
    ),
    call(
        "Marginal.from_frame",
        jp.Marginal.from_frame,
        *("n_obs", "levels", "where", "given", "bounds", "noise", "rounding"),
        frame=pl.DataFrame({"a": [0, 1], "count": [3, 4]}),
    ),
    call("Marginal.in_order", TABLE.in_order, domain=DOMAIN),
    call("MarginalSet", jp.MarginalSet, domain=DOMAIN, marginals=TABLES.marginals),
    call("MarginalSet.from_table", jp.MarginalSet.from_table, table=ROWS, order=2),
    call("MarginalSet.disagreements", TABLES.disagreements),
    call("MarginalCounts", jp.MarginalCounts, domain=DOMAIN, subsets=[["a", "b"], ["c"]]),
    call("MarginalCounts.of_order", jp.MarginalCounts.of_order, domain=DOMAIN, order=2),
    call(
        "MarginalCounts.add",
        lambda codes, sample_weight: jp.MarginalCounts.of_order(DOMAIN, 2).add(
            codes, sample_weight
        ),
        codes=CODES,
        sample_weight=None,
    ),
    call(
        "MarginalCounts.merge",
        lambda other: jp.MarginalCounts.of_order(DOMAIN, 2).merge(other),
        other=jp.MarginalCounts.of_order(DOMAIN, 2),
    ),
    call("JointPMF", jp.JointPMF, domain=DOMAIN, weights=PMF.weights, factors=PMF.factors),
    call("JointPMF.condition", PMF.condition, evidence={"a": 0}),
    call("JointPMF.expectation", PMF.expectation, rows=ROWS, target="b"),
    call("JointPMF.explore", PMF.explore, path="page.html"),
    call("JointPMF.loadings", TRAITS.loadings),
    call("JointPMF.log_probability", PMF.log_probability, rows=ROWS),
    call("JointPMF.marginal", PMF.marginal, names=["a"]),
    call("JointPMF.marginals", PMF.marginals, order=2),
    call("JointPMF.mode", PMF.mode, rows=ROWS, target="b"),
    call("JointPMF.most_likely", PMF.most_likely, n=2),
    call("JointPMF.population", PMF.population, n=5, random_state=0),
    call("JointPMF.population of tables", PMF.population, n=12, match=TABLES, random_state=0),
    call("JointPMF.predict_proba", PMF.predict_proba, rows=ROWS, target="b"),
    call("JointPMF.probability", PMF.probability, rows=ROWS),
    call("JointPMF.reordered", PMF.reordered),
    call("JointPMF.responsibilities", PMF.responsibilities, rows=ROWS),
    call("JointPMF.sample", PMF.sample, n=3, random_state=0),
    call("JointPMF.save", PMF.save, path="model.jpmf"),
    call("JointPMF.table", PMF.table),
    call("JointPMF.to_frame", PMF.to_frame),
    call("JointPMF.traits", TRAITS.traits, rows=ROWS),
    call("JointPMF.with_unrated_items", RATED.with_unrated_items, ratings=RATINGS),
    call("load", jp.load, path="model.jpmf"),
    call("random_pmf", jp.random_pmf, domain=DOMAIN, rank=2),
    call("average", jp.average, pmfs=[PMF, PMF]),
    call("Likelihood", used(jp.Likelihood, lambda made: fit_once(objective=made))),
    call(
        "Traits",
        used(jp.Traits, lambda made: fit_once(8, objective=jp.Likelihood(traits=made))),
        count=1,
        waves=0,
    ),
    call("Search", used(jp.Search, lambda made: fit_once(search=made)), start="random"),
    call("Search of several", used(jp.Search, lambda made: fit_once(2, search=made)), n_starts=2),
    call("HiddenCells", used(jp.HiddenCells, lambda made: fit_once(validation=made)), cells=0.3),
    call("Checkpoint", used(jp.Checkpoint, lambda made: fit_once(checkpoint=made)), folder="half"),
    call("Files", used(jp.Files, lambda made: jp.fit_rows(made, 1, **QUICK)), paths="rows.csv"),
    call("Files.kept_names", jp.Files("rows.csv", only=["a"]).kept_names, names=["a", "b"]),
    call(
        "fit_rows",
        jp.fit_rows,
        *READING,
        **{"source": ROWS, "rank": 2, "domain": DOMAIN, "search": RANDOM} | QUICK,
    ),
    call("fit_rows of codes", jp.fit_rows, **{"source": CODES, "rank": 1} | QUICK),
    call(
        "fit_marginals",
        jp.fit_marginals,
        **{"marginals": TABLES, "rank": 2, "search": RANDOM} | QUICK,
    ),
    call("Solution.loadings", BY_TRAITS.loadings),
    call("Solution.member_range", AVERAGED.member_range, query={"a": 0}, given={"b": 1}),
    call("Solution.report", SOLUTION.report, path="report.html"),
    call("Solution.save", SOLUTION.save, path="solution.jpmf"),
    call("Solution.traits", BY_TRAITS.traits, rows=ROWS),
    call("Solution.uncertainty", SOLUTION.uncertainty, n=2, random_state=0),
    call("Uncertainty.expectation", UNCERTAINTY.expectation, rows=ROWS, target="b"),
    call("Uncertainty.interval", UNCERTAINTY.interval, query=lambda pmf: pmf.weights),
    call("Uncertainty.load", jp.Uncertainty.load, path="sure.jpmf"),
    call("Uncertainty.marginal", UNCERTAINTY.marginal, names=["a"]),
    call("Uncertainty.mode", UNCERTAINTY.mode, rows=ROWS, target="b"),
    call(
        "Uncertainty.mutual_information", UNCERTAINTY.mutual_information, first=["a"], second=["b"]
    ),
    call("Uncertainty.predict_proba", UNCERTAINTY.predict_proba, rows=ROWS, target="b"),
    call("Uncertainty.profiles", UNCERTAINTY.profiles),
    call("Uncertainty.save", UNCERTAINTY.save, path="sure.jpmf"),
    call("Uncertainty.sizes", UNCERTAINTY.sizes),
    call("Ratings", jp.Ratings, users=RATINGS.users, codes=RATINGS.codes),
    call("Ratings.long", RATINGS.long),
    call("Ratings.wide", RATINGS.wide),
    call("Ratings.split", RATINGS.split, fraction=0.3, random_state=0),
    call("Ratings.without", RATINGS.without, hidden=RATINGS.split(0.3, 0)),
    call("pivot_ratings", jp.pivot_ratings, table=LONG),
    call("recommend", jp.recommend, pmf=RATED, ratings=RATINGS, n=1),
    call("coverage", jp.coverage, probabilities=[[0.5, 0.5]], truth=[1], level=0.9),
    call("impute", jp.impute, pmf=PMF, table=ROWS),
    call("impute drawn", jp.impute, pmf=PMF, table=ROWS, n_draws=2, random_state=0),
    call(
        "choose_rank",
        jp.choose_rank,
        *READING,
        **{"table": ROWS, "ranks": [1], "criterion": "bic", "domain": DOMAIN, "search": RANDOM}
        | QUICK,
    ),
    call(
        "choose_rank by folds",
        jp.choose_rank,
        **{"table": ROWS, "ranks": [1], "domain": DOMAIN, "search": RANDOM, "n_folds": 2} | QUICK,
    ),
    call(
        "bootstrap_test",
        jp.bootstrap_test,
        *READING,
        **{"table": ROWS, "rank": 1, "n_bootstrap": 1, "domain": DOMAIN} | QUICK,
    ),
    call("bounds", jp.bounds, marginals=TABLES, query={"a": 0, "b": 1}),
    call("entropy", jp.entropy, pmf=PMF),
    call("entropy drawn", jp.entropy, pmf=PMF, n_samples=9, max_cells=1, random_state=0),
    call("factor_error", jp.factor_error, true=PMF, pmf=PMF),
    call("tensor_error", jp.tensor_error, true=PMF, pmf=PMF),
    call("kl_divergence", jp.kl_divergence, true=PMF, pmf=PMF),
    call("kl_divergence drawn", jp.kl_divergence, true=PMF, pmf=PMF, n_samples=9, max_cells=1),
    call("mutual_information", jp.mutual_information, pmf=PMF),
    call("mutual_information of two", jp.mutual_information, pmf=PMF, first=["a"], second=["b"]),
    call("identifiability", jp.identifiability, known=TABLES, rank=1),
    call("identifiability of a domain", jp.identifiability, known=DOMAIN, rank=1, order=2),
    call("summary", jp.summary, pmf=PMF, table=ROWS),
    call("Summary.sizes_by", SUMMARY.sizes_by, column="a"),
    call("Summary.posteriors", SUMMARY.posteriors),
    call("Summary.to_frame", SUMMARY.to_frame),
    call("Summary.goodness_of_fit", SUMMARY.goodness_of_fit, n_bootstrap=1, random_state=0),
    call("Sizes.to_frame", SUMMARY.sizes_by("a").to_frame),
    call("Goodness.to_frame", SUMMARY.goodness_of_fit().to_frame),
    call("RankCurve.to_frame", CURVE.to_frame),
    call("Population.to_frame", PMF.population(3, random_state=0).to_frame),
    call("PMFEstimator", after(jp.PMFEstimator, "score")),
    call("PMFEstimator.fit", jp.PMFEstimator(**SHORT).fit, X=X),
    call("PMFEstimator.partial_fit", jp.PMFEstimator(**SHORT).partial_fit, X=X),
    call("PMFEstimator.score", fitted(jp.PMFEstimator).score, X=X),
    call("PMFEstimator.score_samples", fitted(jp.PMFEstimator).score_samples, X=X),
    call("PMFEstimator.sample", fitted(jp.PMFEstimator).sample, n_samples=2, random_state=0),
    call("PMFClassifier", after(jp.PMFClassifier, "predict")),
    call("PMFClassifier.fit", jp.PMFClassifier(**SHORT).fit, X=X, y=Y),
    call("PMFClassifier.predict", fitted(jp.PMFClassifier).predict, X=X),
    call("PMFClassifier.predict_proba", fitted(jp.PMFClassifier).predict_proba, X=X),
    call("PMFClassifier.predict_set", fitted(jp.PMFClassifier).predict_set, X=X),
    call("PMFRegressor", after(jp.PMFRegressor, "predict")),
    call("PMFRegressor.fit", jp.PMFRegressor(**SHORT).fit, X=X, y=Y),
    call("PMFRegressor.predict", fitted(jp.PMFRegressor).predict, X=X),
    call("PMFRegressor.predict_interval", fitted(jp.PMFRegressor).predict_interval, X=X),
    call("PMFImputer", after(jp.PMFImputer, "transform")),
    call("PMFImputer.fit", jp.PMFImputer(**SHORT).fit, X=X),
    call("PMFImputer.transform", fitted(jp.PMFImputer).transform, X=X),
]


OURS = {
    "JointPMFError": "raised with texts of our own",
    "Status": "an outcome, which nobody makes",
    "Solution": "made by fits",
    "Uncertainty": "made by Solution.uncertainty",
    "JointPMF.at": "between layers, with objects of our own",
    "Marginal.measured": "between layers, with objects of our own",
    "MarginalSet.check_plain": "between layers, with objects of our own",
    "MarginalSet.content": "between layers, with objects of our own",
    "MarginalSet.of_counts": "between layers, with objects of our own",
    "Search.check_start": "between layers, with objects of our own",
    "Solution.as_restart": "between layers, with objects of our own",
    "Solution.of": "between layers, with objects of our own",
    "Solution.stopped": "between layers, with objects of our own",
    "Uncertainty.columns": "between layers, with objects of our own",
    "Uncertainty.deviations": "between layers, with objects of our own",
    "MarginalCounts.to_marginals": "has no argument",
    "Ratings.rated": "has no argument",
    "PMFImputer.get_feature_names_out": "checked by scikit-learn",
}
"""What is public and not called here, and why."""
