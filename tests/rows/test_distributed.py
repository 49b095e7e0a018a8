"""Fits on real local clusters of Dask and Spark are those in memory; faults and bad input."""

import os
import shutil
import signal
import sys
import threading
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import jointpmf as jp
from jointpmf import threads
from jointpmf.fit.likelihood import EMFit
from jointpmf.fit.settings import Effort
from jointpmf.rows import parts
from jointpmf.rows.distributed import (
    GROUP,
    FindLevels,
    Piece,
    distributed_rows,
    engine_of,
    summed,
)
from jointpmf.rows.resampling import resampled
from jointpmf.solvers.loop import Loop
from support.machine import needs
from support.small_fits import fit_rows
from support.sources import planted_table

needs_java = needs("java", shutil.which("java"))

ENGINES = ["dask", pytest.param("spark", marks=needs_java)]


both = pytest.mark.parametrize("frame_of", ENGINES, indirect=True)

of_spark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning")
pytestmark = of_spark


TABLE = planted_table()
CODES = jp.encode(TABLE)
SEED_OF_ZERO = int(np.random.default_rng(0).integers(2**63))
START = jp.random_pmf(CODES.domain, rank=3, random_state=3)


def partitions(*tables):
    """Return a Dask DataFrame of these partitions, which believes all to be like the first."""
    lazy = [dask.delayed(table) for table in tables]
    return dd.from_delayed(lazy, meta=tables[0].iloc[:0], verify_meta=False)


def levels(domain):
    return [(variable.name, repr(variable.levels)) for variable in domain]


def same_bits(one, two):
    return all(
        np.array_equal(a, b)
        for a, b in zip([one.weights, *one.factors], [two.weights, *two.factors], strict=True)
    )


class TestNeeds:
    @pytest.mark.parametrize(
        ("is_here", "required", "is_skipped"),
        [(None, "", True), (None, "browser,java", False), ("/bin/java", "", False)],
    )
    def test_a_test_is_skipped_unless_it_must_run(self, monkeypatch, is_here, required, is_skipped):
        monkeypatch.setenv("JOINTPMF_REQUIRE", required)
        assert needs("java", is_here).mark.args == (is_skipped,)


class TestEngine:
    def test_of_tables_in_memory_there_is_none(self):
        for table in (TABLE, pa.table({"a": [1]}), np.zeros((2, 2)), [[1]], CODES):
            assert engine_of(table) is None

    def test_a_column_is_no_table(self):
        assert engine_of(dd.from_pandas(TABLE, npartitions=1)["text"]) is None

    def test_dask(self):
        assert engine_of(dd.from_pandas(TABLE, npartitions=1)) == "Dask"

    @needs_java
    def test_spark(self, spark):
        assert engine_of(spark.range(3)) == "Spark"


class TestDomain:
    @both
    def test_it_is_that_of_the_whole_table(self, frame_of):
        with distributed_rows(frame_of(TABLE)) as rows:
            assert levels(rows.domain) == levels(CODES.domain)
            assert rows.levels.n_empty == (CODES.array == jp.MISSING).all(axis=1).sum() >= 7

    def test_categories_keep_their_order_where_all_partitions_agree(self):
        sizes = pd.CategoricalDtype(["small", "large", "huge"])
        one, two = (pd.DataFrame({"a": pd.Series(cells, dtype=sizes)}) for cells in (["large"], []))
        other = pd.DataFrame({"a": pd.Categorical(["huge", None], ["huge", "small"])})
        for tables in ([one, two, one], [one, other]):
            with distributed_rows(partitions(*tables)) as rows:
                expected = jp.encode(pd.concat([table for table in tables if len(table)]))
                assert levels(rows.domain) == levels(expected.domain)

    def test_types_may_differ_if_the_levels_are_the_same(self):
        cells = ([1, 2], [2.0, np.nan], pd.Categorical([3, 1]), pd.array([1, None], "Int64"))
        tables = [pd.DataFrame({"a": column, "b": ["x", "y"]}) for column in cells]
        with distributed_rows(partitions(*tables)) as rows:
            assert levels(rows.domain) == [("a", "(1.0, 2.0, 3.0)"), ("b", "('x', 'y')")]
            assert rows.levels.counts.tolist() == [3, 2, 1, 4, 4]

    @both
    def test_a_given_domain_is_used_and_its_columns_only(self, frame_of):
        variables = [CODES.domain["truth"], jp.Variable("text", ("x", "w", "b", "ä", "never"))]
        with distributed_rows(frame_of(TABLE), jp.Domain(variables)) as rows:
            expected = jp.encode(TABLE, jp.Domain(variables))
            assert rows.domain == expected.domain
            assert rows.levels.counts[-1] == 0
            observed = [(expected.array[:, n] == c).sum() for n, c in [(0, 0), (0, 1), (1, 0)]]
            assert rows.levels.counts[:3].tolist() == observed

    def test_edges_of_a_given_domain_cut(self):
        table = pd.DataFrame({"x": np.linspace(0, 1, 200)})
        domain = jp.encode(table, bins=4).domain
        with distributed_rows(dd.from_pandas(table, npartitions=2), domain) as rows:
            assert rows.levels.counts.tolist() == [50, 50, 50, 50]


class TestUncertainty:
    @both
    def test_replicates_are_made_where_the_rows_are(self, frame_of):
        found = jp.fit_rows(frame_of(TABLE, 2), 1, random_state=0)
        sure = found.uncertainty(2, random_state=0)
        with distributed_rows(frame_of(TABLE, 2)) as rows:
            drawn = resampled(rows, "bayesian", None, None, SEED_OF_ZERO)(0)
            wanted = drawn.marginal
        assert np.allclose(sure.factors[0][:, 0], wanted)
        assert not np.allclose(sure.factors[1][:, 0], wanted)


class TestLikelihood:
    @both
    def test_fifteen_iterations_are_those_in_memory(self, frame_of):
        objective = jp.Likelihood(smoothing=0.1, towards="marginal")
        options = {"search": jp.Search(START), "max_iter": 15, "tol": 0.0, "objective": objective}
        here = jp.fit_rows(TABLE, 3, **options)
        there = jp.fit_rows(frame_of(TABLE, 2), 3, **options)
        path = np.array([step.objective for step in here.history])
        assert len(there.history) == 16
        assert np.abs([step.objective for step in there.history] - path).max() < 1e-9
        for one, two in zip(there.pmf.factors, here.pmf.factors, strict=True):
            assert np.abs(one - two).max() < 1e-7

    @pytest.mark.parametrize("start", ["auto", "rows", "random"])
    def test_it_begins_on_a_sample(self, start):
        frame = dd.from_pandas(TABLE, npartitions=2)
        found = jp.fit_rows(frame, 3, search=jp.Search(start), max_iter=3, random_state=0)
        assert found.start.n_rows == 1489
        assert np.isfinite(found.objective)

    @pytest.mark.usefixtures("on_cluster")
    def test_the_bits_do_not_depend_on_who_works(self):
        frame = dd.from_pandas(TABLE, npartitions=GROUP + 1)
        few = {"effort": Effort(most_starts=2, patience=2), "max_iter": 2, "random_state": 0}
        found = [fit_rows(frame, 3, **few)]
        for scheduler in ("sync", "threads"):
            with dask.config.set(scheduler=scheduler):
                found.append(fit_rows(frame, 3, **few))
        assert same_bits(found[0].pmf, found[1].pmf)
        assert same_bits(found[0].pmf, found[2].pmf)

    @pytest.mark.usefixtures("on_cluster")
    def test_nor_on_how_the_model_travels(self):
        frame = dd.from_pandas(TABLE, npartitions=3)
        fit, found = EMFit(3, Loop(2, 0.0), start=START), []
        for most_copied in (2**20, 0):
            with distributed_rows(frame, most_copied=most_copied) as rows:
                found.append(fit.run(rows, np.random.default_rng(0)))
        assert same_bits(found[0].pmf, found[1].pmf)

    def test_a_start_that_forbids_rows_is_lifted(self):
        factors = [np.array(factor) for factor in START.factors]
        factors[0] = np.array([[1.0] * 3, [0.0] * 3, [0.0] * 3])
        start = jp.JointPMF(CODES.domain, START.weights, factors)
        frame = dd.from_pandas(TABLE, npartitions=2)
        found = jp.fit_rows(frame, 3, search=jp.Search(start), max_iter=5)
        here = jp.fit_rows(TABLE, 3, search=jp.Search(start), max_iter=5)
        assert found.objective == pytest.approx(here.objective, rel=1e-9)

    def test_a_callback_stops(self):
        frame = dd.from_pandas(TABLE, npartitions=2)
        found = jp.fit_rows(frame, 3, search=jp.Search(START), callback=lambda step, pmf: True)
        assert found.status is jp.Status.STOPPED
        assert found.n_iter == 1


class TestSample:
    def drawn(self, table, size):
        with distributed_rows(dd.from_pandas(table, npartitions=3)) as rows:
            return rows.sample(size, seed=0)

    def test_all_rows_are_as_frequent_as_they_were(self):
        codes, weights = self.drawn(TABLE, len(TABLE))
        counts = jp.MarginalSet.from_table(codes, 2, sample_weight=weights)
        for one, two in zip(counts, jp.MarginalSet.from_table(TABLE, 2), strict=True):
            assert np.array_equal(one.table, two.table)

    def test_some_rows_are_about_as_frequent_as_they_were(self):
        table = pd.DataFrame({"a": np.repeat([0, 1, 2], [100_000, 10_000, 1_000])})
        table["b"] = np.arange(len(table)) % 50
        codes, weights = self.drawn(table, 120)
        assert codes.n_rows < 150
        counts = np.bincount(codes.array[:, 0], weights, minlength=3)
        assert 80 < weights.sum() < 160
        assert counts[0] > 3 * counts[1] > 0

    def test_another_seed_draws_others(self):
        frame = dd.from_pandas(TABLE, npartitions=3)
        with distributed_rows(frame) as rows:
            one, two, again = (rows.sample(50, seed)[0].array for seed in (1, 2, 1))
        assert np.array_equal(one, again)
        assert not np.array_equal(one, two)


class TestSums:
    @pytest.mark.parametrize("count", [1, 2, 5, GROUP, 3 * GROUP + 1])
    def test_groups_add_the_same_pairs_as_all_at_once(self, count):
        generator = np.random.default_rng(0)
        sums = [parts.Expected(generator.random(4), generator.random()) for _ in range(count)]
        grouped = [summed(sums[k : k + GROUP]) for k in range(0, count, GROUP)]
        whole, by_groups = summed(sums), summed(grouped)
        assert np.array_equal(whole.counts, by_groups.counts)
        assert whole.log_likelihood == by_groups.log_likelihood

    def test_a_part_says_how_large_it_is(self):
        part = parts.Part.of_codes(0, CODES)
        assert sys.getsizeof(part) > part.rows.columns.nbytes + part.rows.weights.nbytes
        kept = parts.Part.to_keep(0, CODES)
        assert sys.getsizeof(kept) > kept.rows.cells.nbytes + kept.rows.weights.nbytes

    def test_a_part_to_keep_has_the_same_rows(self):
        expected = np.unique(CODES.array, axis=0)
        found = parts.Part.to_keep(0, CODES).codes.array
        assert np.array_equal(np.unique(found, axis=0), expected[(expected >= 0).any(axis=1)])


class TestThreads:
    def test_a_limit_is_that_of_the_thread_that_set_it(self):
        before = threads.n_threads()
        inside, done, seen = threading.Event(), threading.Event(), []

        def other():
            with threads.limited_to(7):
                inside.set()
                done.wait(30)
                seen.append(threads.n_threads())

        thread = threading.Thread(target=other)
        with threads.limited_to(3):
            thread.start()
            assert inside.wait(30)
            assert threads.n_threads() == 3
        assert threads.n_threads() == before
        done.set()
        thread.join(30)
        assert seen == [7]
        assert threads.n_threads() == before

    @both
    def test_a_task_has_one_thread(self, frame_of):
        with distributed_rows(frame_of(TABLE)) as rows:
            most = rows.parts.total(_most_threads_used())
        assert most.count == 1


def _most_threads_used():
    """Return a task that is made here, so that it travels as code and not as a name."""

    class Most:
        def __init__(self, count):
            self.count = count

        def merged(self, other):
            return Most(max(self.count, other.count))

    return lambda part: Most(threads.n_threads())


class TestEstimator:
    def test_it_fits_where_the_rows_are(self):
        options = {"rank": 2, "max_iter": 5, "random_state": 0}
        model = jp.PMFEstimator(**options).fit(dd.from_pandas(TABLE, npartitions=2))
        assert model.n_features_in_ == 4
        assert model.feature_names_in_.tolist() == list(TABLE.columns)
        assert model.domain_ == CODES.domain
        assert np.isfinite(model.score_samples(TABLE)).all()
        assert model.solution_.start.n_rows == 1489

    def test_the_rank_must_be_given(self):
        frame = dd.from_pandas(TABLE, npartitions=1)
        with pytest.raises(jp.JointPMFError, match="whole number for a Dask table, not 'auto'"):
            jp.PMFEstimator().fit(frame)
        with pytest.raises(jp.JointPMFError, match="bins does not apply to a Dask table"):
            jp.PMFEstimator(2, bins=4).fit(frame)
        with pytest.raises(jp.JointPMFError, match="sample_weight does not apply to a Dask table"):
            jp.PMFEstimator(2).fit(frame, sample_weight=[1.0])


class TestBadInput:
    @both
    def test_a_column_without_any_observed_cell(self, frame_of):
        table = TABLE.assign(text=pd.Series([None] * len(TABLE), dtype="str"))
        with pytest.raises(jp.JointPMFError, match=r"^column 'text' has no observed cell$"):
            jp.fit_rows(frame_of(table), 1)
        with pytest.raises(jp.JointPMFError, match=r"^column 'text' has no observed cell$"):
            jp.fit_rows(frame_of(table), 1, domain=CODES.domain)

    @both
    def test_a_level_that_the_domain_does_not_have(self, frame_of):
        domain = jp.Domain([jp.Variable("text", ("x", "w", "b"))])
        sentence = (
            r"^in partition [012], column 'text' holds 'ä' in row \d+, which is not one of its "
            r"levels 'x', 'w', 'b'$"
        )
        with pytest.raises(jp.JointPMFError, match=sentence):
            jp.fit_rows(frame_of(TABLE), 2, domain=domain)

    def test_a_level_that_was_not_there_before(self):
        calls = []

        def changing(table):
            calls.append(1)
            return table.assign(a="new") if len(calls) > 1 else table

        table = pd.DataFrame({"a": ["old", "older"]})
        frame = dd.from_pandas(table, npartitions=1).map_partitions(changing, meta=table.iloc[:0])
        with pytest.raises(jp.JointPMFError, match="in partition 0, column 'a' holds 'new'"):
            jp.fit_rows(frame, 1)
        assert len(calls) == 2

    @pytest.mark.parametrize("domain", [None, jp.Domain.of_sizes([2, 2], ["a", "b"])])
    def test_a_partition_that_lacks_a_column(self, domain):
        whole = pd.DataFrame({"a": [0, 1], "b": [0, 1]})
        frame = partitions(whole, whole[["a"]])
        with pytest.raises(jp.JointPMFError, match=r"^partition 1 lacks the column 'b'$"):
            jp.fit_rows(frame, 1, domain=domain)

    def test_partitions_of_different_types(self):
        frame = partitions(pd.DataFrame({"a": [0, 1]}), pd.DataFrame({"a": ["x", "y"]}))
        with pytest.raises(jp.JointPMFError, match="column 'a' mixes cells of types int, str"):
            jp.fit_rows(frame, 1)

    def test_too_many_numbers(self):
        frame = dd.from_pandas(pd.DataFrame({"x": np.arange(150) / 7}), npartitions=2)
        with pytest.raises(jp.JointPMFError, match=r"^column 'x' has more than 100 distinct numb"):
            jp.fit_rows(frame, 1)

    def test_too_many_texts(self):
        halves = [pd.DataFrame({"x": list(cells)}) for cells in ("ab", "cd")]
        first, second = (FindLevels(max_levels=3)(Piece(0, half, ["x"])) for half in halves)
        with pytest.raises(jp.JointPMFError, match="'x' has more than 3 levels, too many"):
            first.merged(second)

    def test_empty_partitions_are_ignored(self):
        nothing = pd.DataFrame({"else": []})
        whole = pd.DataFrame({"a": [0, 1], "b": [0, 1]})
        found = jp.fit_rows(partitions(whole, nothing, whole, nothing), 1)
        assert found.pmf.factors[0].tolist() == [[0.5], [0.5]]

    @both
    @pytest.mark.parametrize("domain", [None, CODES.domain])
    def test_no_rows(self, frame_of, domain):
        frame = frame_of(TABLE)
        frame = frame[frame["text"] == "nothing is like this"]
        with pytest.raises(jp.JointPMFError, match="the table is empty: there is nothing to fit"):
            jp.fit_rows(frame, 1, domain=domain)

    def test_names(self):
        numbered = dd.from_pandas(pd.DataFrame({0: [1, 2]}), npartitions=1)
        with pytest.raises(jp.JointPMFError, match="column names must be strings, not 0"):
            jp.fit_rows(numbered, 1)
        frame = dd.from_pandas(TABLE, npartitions=1)
        with pytest.raises(jp.JointPMFError, match="the table has none of the variables 'x0'"):
            jp.fit_rows(frame, 1, domain=jp.Domain.of_sizes([2]))
        with pytest.raises(jp.JointPMFError, match="a domain must be a Domain, not 3"):
            jp.fit_rows(frame, 1, domain=3)

    @needs_java
    def test_a_name_twice(self, spark):
        frame = spark.range(3).selectExpr("id as a", "id as a")
        with pytest.raises(jp.JointPMFError, match="the table names 'a' twice"):
            jp.fit_rows(frame, 1)

    def test_spark_connect(self):
        kind = type("DataFrame", (), {"columns": ["a"], "__module__": "pyspark.sql.connect.frame"})
        with pytest.raises(jp.JointPMFError, match="Spark Connect has no RDDs"):
            jp.fit_rows(kind(), 1)

    def test_lists_are_no_levels(self):
        with dask.config.set({"dataframe.convert-string": False}):
            frame = dd.from_pandas(pd.DataFrame({"a": [[1], [2]]}), npartitions=1)
        with pytest.raises(
            jp.JointPMFError, match=r"^column 'a' holds cells that cannot be levels"
        ):
            jp.fit_rows(frame, 1)

    @pytest.mark.parametrize(
        ("name", "options"),
        [
            ("n_starts", {"search": jp.Search(n_starts=2)}),
            ("n_average", {"search": jp.Search(n_average=2)}),
            ("validation", {"validation": 0.1}),
            ("validation", {"validation": jp.HiddenCells(scoring="error")}),
            ("sample_weight", {"sample_weight": [1.0]}),
            ("bins", {"bins": 3}),
        ],
    )
    def test_options_for_tables_in_memory_only(self, name, options):
        frame = dd.from_pandas(TABLE, npartitions=1)
        where = "a Dask table" if name in options and name != "validation" else "rows that are not"
        with pytest.raises(jp.JointPMFError, match=f"^{name} does not apply to {where}"):
            jp.fit_rows(frame, 2, **options)

    def test_a_start_of_marginals_and_no_rank(self):
        frame = dd.from_pandas(TABLE, npartitions=1)
        with pytest.raises(jp.JointPMFError, match="start must be 'auto', 'rows'"):
            jp.fit_rows(frame, 2, search=jp.Search("algebraic"))
        with pytest.raises(jp.JointPMFError, match="rank='auto' needs rows in memory"):
            jp.fit_rows(frame)
        with pytest.raises(jp.JointPMFError, match="the callback must be callable"):
            jp.fit_rows(frame, 2, callback=3)


class TestFaults:
    @both
    def test_what_others_raise_stays_what_it_is(self, frame_of):
        def fails(tables):
            raise RuntimeError("the disk is full")

        frame = frame_of(TABLE[["text"]])
        if engine_of(frame) == "Dask":
            frame = frame.map_partitions(fails, meta=TABLE[["text"]].iloc[:0])
        else:
            frame = frame.mapInArrow(fails, "text string")
        with pytest.raises(Exception, match="the disk is full") as caught:
            jp.fit_rows(frame, 3)
        assert not isinstance(caught.value, jp.JointPMFError)

    def test_a_killed_worker_changes_no_bit(self, on_cluster):
        frame = dd.from_pandas(TABLE, npartitions=4)
        options = {"search": jp.Search(START), "max_iter": 12, "tol": 0.0}
        undisturbed = jp.fit_rows(frame, 3, **options)
        killed = []

        def kill(step, pmf):
            if step.iteration == 5:
                killed.append(on_cluster.workers[0].pid)
                os.kill(killed[0], signal.SIGKILL)

        found = jp.fit_rows(frame, 3, callback=kill, **options)
        assert killed
        assert found.n_iter == 12
        assert same_bits(found.pmf, undisturbed.pmf)
        assert [s.objective for s in found.history] == [s.objective for s in undisturbed.history]

    def test_workers_that_die_again_and_again_end_the_fit(self, on_cluster, monkeypatch):
        def dies(table):
            os.kill(os.getpid(), signal.SIGKILL)

        frame = dd.from_pandas(TABLE, npartitions=1).map_partitions(dies, meta=TABLE.iloc[:0])
        monkeypatch.setattr(on_cluster.scheduler, "allowed_failures", 0)
        with pytest.raises(jp.JointPMFError, match=r"while finding the levels.*smaller partitions"):
            jp.fit_rows(frame, 3)
        with pytest.raises(jp.JointPMFError, match=r"while making codes.*smaller partitions"):
            jp.fit_rows(frame, 3, domain=CODES.domain)

    def test_too_little_memory_is_said(self):
        def hungry(table):
            raise MemoryError("no room")

        frame = dd.from_pandas(TABLE, npartitions=1).map_partitions(hungry, meta=TABLE.iloc[:0])
        with pytest.raises(jp.JointPMFError, match=r"out of memory .* finding the levels"):
            jp.fit_rows(frame, 3)

    @needs_java
    def test_a_dead_python_worker_of_spark_is_said(self, spark):
        def dies(batches):
            for _ in batches:
                os._exit(1)
            yield

        frame = spark.range(4).mapInArrow(dies, "id long")
        with pytest.raises(jp.JointPMFError, match=r"while finding the levels.*smaller partitions"):
            jp.fit_rows(frame, 3)

    @needs_java
    def test_parts_that_are_not_where_spark_looks_are_made_again(self, spark):
        frame = spark.createDataFrame([(k % 3, k % 2) for k in range(40)], ["a", "b"])
        here = Path(spark.sparkContext._jvm.org.apache.spark.SparkFiles.getRootDirectory())
        with distributed_rows(frame) as rows:
            before = rows.digest
            folders = list(here.glob("jointpmf-*"))
            for folder in folders:
                shutil.rmtree(folder)
            assert folders
            assert rows.digest == before
            assert list(here.glob("jointpmf-*/*"))
        assert not list(here.glob("jointpmf-*"))
