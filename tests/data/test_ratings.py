"""Long tables to wide and back, recommendations against brute force, and calibration."""

import logging
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.data.pivot import pivot_ratings
from jointpmf.data.ratings import Ratings
from jointpmf.fit.unrated import with_unrated_items
from jointpmf.predict.recommend import coverage, recommend, shortest_ranges
from support import oracle

BACKENDS = {"polars": pl.DataFrame, "pandas": pd.DataFrame, "pyarrow": pa.Table}
SCALE = (0.5, 1.0, 2.5, 4.0)


def native(columns, backend):
    return pa.table(columns) if backend == "pyarrow" else BACKENDS[backend](columns)


def rows_of(table):
    """Return a table of any kind as a list of rows, None where a cell is missing."""
    if isinstance(table, pa.Table):
        table = pl.DataFrame(table.to_pydict(), strict=False)
    if isinstance(table, pl.DataFrame):
        return table.rows()
    cells = table.astype(object).where(table.notna(), None)
    return list(cells.itertuples(index=False, name=None))


def long_table(triples, backend="polars"):
    columns = zip(*triples, strict=True)
    return native(dict(zip(("user", "item", "rating"), map(list, columns), strict=True)), backend)


def domain_of(names, levels=(1, 2, 3)):
    return jp.Domain([jp.Variable(name, levels) for name in names])


SMALL = [(9, "B", 2), (7, "A", 3), (9, "A", 1), (8, "C", 2), (7, "C", 2)]


class TestPivot:
    @settings(deadline=None, max_examples=60)
    @given(
        known=st.one_of(
            st.dictionaries(
                st.tuples(ids, st.text(max_size=3).filter(lambda name: name != "user")),
                st.sampled_from(SCALE),
                min_size=1,
                max_size=20,
            )
            for ids in (st.integers(-5, 2**62), st.text(max_size=3))
        ),
        backend=st.sampled_from(sorted(BACKENDS)),
        out=st.sampled_from(sorted(BACKENDS)),
        data=st.data(),
    )
    def test_there_and_back(self, known, backend, out, data):
        triples = [(*pair, rating) for pair, rating in known.items()]
        shuffled = data.draw(st.permutations(triples))
        ratings = pivot_ratings(long_table(shuffled, backend), scale=SCALE)
        users = sorted({user for user, _ in known})
        items = sorted({item for _, item in known})
        assert ratings.users.tolist() == users
        assert list(ratings.items) == items
        assert ratings.scale == SCALE
        assert ratings.codes.array.dtype == np.int8
        assert ratings.n_ratings == len(known)
        assert len(ratings) == len(users)
        wide, long = ratings.wide(out), ratings.long(out)
        assert isinstance(wide, BACKENDS[out])
        assert isinstance(long, BACKENDS[out])
        cells = [(user, *(known.get((user, item)) for item in items)) for user in users]
        assert rows_of(wide) == cells
        assert rows_of(long) == sorted(triples)
        again = pivot_ratings(long, scale=SCALE)
        assert again.users.tolist() == users
        assert again.items == ratings.items
        np.testing.assert_array_equal(again.codes.array, ratings.codes.array)

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_numbers_name_items_in_their_own_order(self, backend):
        table = long_table([("a", 10, 1), ("a", 9, 2), ("b", 10, 2)], backend)
        ratings = pivot_ratings(table)
        assert ratings.items == ("9", "10")
        assert rows_of(ratings.wide()) == [("a", 2, 1), ("b", None, 2)]

    def test_columns_have_any_name_and_others_are_ignored(self):
        table = pd.DataFrame({"who": ["a"], "when": [None], "film": [3], "stars": [4.5]})
        ratings = pivot_ratings(table, "who", "film", "stars")
        assert rows_of(ratings.long()) == [("a", "3", 4.5)]

    def test_arrays_have_columns_too(self):
        ratings = pivot_ratings(np.array([[1, 5, 2], [-1, 6, 3]]), "x0", "x1", "x2")
        assert rows_of(ratings.wide()) == [(-1, None, 3), (1, 2, None)]

    @pytest.mark.parametrize("missing", [None, float("nan")])
    @pytest.mark.parametrize("backend", BACKENDS)
    def test_rows_without_a_rating_are_left_out(self, missing, backend):
        triples = [(1, "A", 2.0), (2, "A", missing), (3, None, missing), (1, "B", missing)]
        ratings = pivot_ratings(long_table(triples, backend))
        assert ratings.users.tolist() == [1]
        assert ratings.items == ("A",)

    def test_items_are_chosen_and_ordered_and_may_be_empty(self, caplog):
        with caplog.at_level(logging.WARNING, logger="jointpmf"):
            ratings = pivot_ratings(long_table(SMALL), items=["C", "Z", "A"], scale=(1, 2, 3, 4))
        assert rows_of(ratings.wide()) == [
            (7, 2, None, 3),
            (8, 2, None, None),
            (9, None, None, 1),
        ]
        assert "nobody rated 'Z'" in caplog.text
        by_id = pivot_ratings(long_table([(1, 5, 1), (1, 6, 2)]), items=[6])
        assert by_id.items == ("6",)
        assert by_id.scale == (1, 2)

    def test_users_without_a_rating_of_the_chosen_items_are_left_out(self):
        ratings = pivot_ratings(long_table(SMALL), items=("B",))
        assert ratings.users.tolist() == [9]

    def test_the_most_rated_items_in_any_order_of_rows(self):
        triples = [
            (k, name, 1) for name, n in (("z", 3), ("b", 1), ("a", 2), ("c", 2)) for k in range(n)
        ]
        generator = np.random.default_rng(0)
        for _ in range(10):
            generator.shuffle(triples)
            table = long_table([(int(user), item, int(rating)) for user, item, rating in triples])
            assert pivot_ratings(table, n_items=2).items == ("z", "a")
            assert pivot_ratings(table, n_items=3).items == ("z", "a", "c")

    def test_the_most_rated_counts_a_pair_once(self):
        triples = [(1, "a", 1)] * 5 + [(1, "b", 1), (2, "b", 2)]
        assert pivot_ratings(long_table(triples), n_items=1, duplicates="last").items == ("b",)

    def test_ids_without_an_order_are_ordered_by_type(self):
        triples = [("x", "A", 1), (3, "A", 2), ("a", "A", 1), (20, "A", 2)]
        for some in (triples, triples[::-1]):
            table = pd.DataFrame(some, columns=["user", "item", "rating"])
            assert pivot_ratings(table).users.tolist() == [20, 3, "a", "x"]

    def test_the_last_of_duplicates_is_that_of_the_table(self):
        triples = [(1, "A", 3), (2, "A", 1), (1, "A", 1), (1, "B", 2), (1, "A", 2)]
        ratings = pivot_ratings(long_table(triples), duplicates="last")
        assert rows_of(ratings.wide()) == [(1, 2, 2), (2, 1, None)]

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.sampled_from([1, 2, 3, 5]), min_size=2, max_size=7), st.randoms())
    def test_the_mean_of_duplicates_is_the_nearest_level(self, numbers, random):
        random.shuffle(numbers)
        triples = [(1, "A", one) for one in numbers] + [(2, "A", 1)]
        ratings = pivot_ratings(long_table(triples), scale=(1, 2, 3, 5), duplicates="mean")
        mean = np.mean(numbers)
        assert ratings.wide()["A"][0] == min((1, 2, 3, 5), key=lambda level: abs(level - mean))

    def test_a_tie_of_means_goes_to_the_lower_level(self):
        triples = [(1, "A", 0.1), (1, "A", 0.2), (1, "A", 0.2), (1, "A", 0.1)]
        ratings = pivot_ratings(long_table(triples), duplicates="mean")
        assert ratings.wide()["A"].to_list() == [0.1]

    def test_duplicates_do_not_matter_where_there_are_none(self):
        wide = [
            rows_of(pivot_ratings(long_table(SMALL), duplicates=duplicates).wide())
            for duplicates in ("error", "last", "mean")
        ]
        assert wide[0] == wide[1] == wide[2]


TWICE = [(1, "A", 1), (1, "A", 2), (2, "B", 1), (2, "B", 1)]
MANY = [(user, "A", 1) for user in range(6)] * 2
REFUSED = {
    "no column": (SMALL, {"user": "who"}, "no column 'who'; its columns are 'user', 'item'"),
    "column twice": (SMALL, {"user": "item"}, "the list of columns names 'item' twice"),
    "no rating": ([(1, "A", None)], {}, "column 'rating' holds no rating"),
    "no user": ([(1, "A", 1), (None, "B", 2)], {}, "column 'user' is missing in row 1"),
    "no item": ([(1, None, 1), (2, "B", 2)], {}, "column 'item' is missing in row 0"),
    "text": ([(1, "A", "good")], {}, "column 'rating' holds 'good', which is no rating"),
    "truth": ([(1, "A", True)], {}, "column 'rating' holds True, which is no rating"),
    "infinite": ([(1, "A", np.inf)], {}, "column 'rating' holds inf, which is no rating"),
    "continuous": (
        [(1, k, k / 7) for k in range(101)],
        {},
        "column 'rating' has 101 distinct numbers, more than 100.*scale",
    ),
    "outside": (
        SMALL,
        {"scale": (1, 2)},
        "the rating 3 of user 7 for item 'A' lies outside of the scale 1, 2",
    ),
    "text outside": ([(1, "A", "good")], {"scale": (1, 2)}, "the rating 'good' of user 1 for"),
    "scale falls": (SMALL, {"scale": (2, 1)}, r"the scale must be increasing numbers.*\(2, 1\)"),
    "scale repeats": (SMALL, {"scale": (1, 1)}, "the scale must be increasing numbers"),
    "scale of text": (SMALL, {"scale": "123"}, "the scale must be increasing numbers, not '123'"),
    "scale is empty": (SMALL, {"scale": ()}, "the scale must be increasing numbers"),
    "scale is a number": (SMALL, {"scale": 5}, "the scale must be increasing numbers, not 5"),
    "scale with NaN": (SMALL, {"scale": (1, np.nan)}, "the scale must be increasing numbers"),
    "two choices": (SMALL, {"items": ["A"], "n_items": 1}, "either items or n_items, not both"),
    "no such items": (SMALL, {"items": ["Y", "Z"]}, "nobody rated any of the items 'Y', 'Z'"),
    "items twice": (SMALL, {"items": ["A", "A"]}, "the list of items names 'A' twice"),
    "items is text": (SMALL, {"items": "A"}, "items must be a list of ids, not 'A'"),
    "items is a number": (SMALL, {"items": 3}, "items must be a list of ids, not 3"),
    "no items": (SMALL, {"items": []}, "the list of items is empty"),
    "too many items": (SMALL, {"n_items": 4}, "n_items is 4, but only 3 items are rated"),
    "n_items": (SMALL, {"n_items": 0}, "n_items must be a whole number of at least 1, not 0"),
    "duplicates": (SMALL, {"duplicates": "first"}, "duplicates must be 'error', 'last' or 'mean'"),
    "pairs": (
        TWICE,
        {},
        "2 pairs of user and item are rated more than once, user 1 and item 'A'; "
        "user 2 and item 'B': choose duplicates='last' or 'mean'",
    ),
    "pair": (
        TWICE[:2],
        {},
        "1 pair of user and item is rated more than once, user 1 and item 'A':",
    ),
    "many pairs": (MANY, {}, "6 pairs.*user 0.*user 1.*user 2 and item 'A' and 3 more:"),
}


class TestBadInput:
    @pytest.mark.parametrize(("triples", "options", "message"), REFUSED.values(), ids=REFUSED)
    def test_of_pivot(self, triples, options, message):
        with pytest.raises(jp.JointPMFError, match=message) as caught:
            pivot_ratings(long_table(triples), **options)
        assert "\n" not in str(caught.value)

    def test_items_of_the_same_text(self):
        table = pd.DataFrame({"user": [1, 2], "item": [1, "1"], "rating": [1, 2]})
        with pytest.raises(jp.JointPMFError, match="items 1 and '1' would have the same name '1'"):
            pivot_ratings(table)

    def test_no_table(self):
        with pytest.raises(jp.JointPMFError, match=r"a table must be .* not int"):
            pivot_ratings(3)

    @pytest.mark.parametrize(
        ("users", "codes", "message"),
        [
            ([1], [[0, 0]], "codes must be Codes, not list"),
            ([1], jp.Codes(jp.Domain([]), np.empty((1, 0), int)), "there is no item"),
            ([1, 2], jp.Codes(domain_of("AB"), [[0, 0]]), "2 users for 1 rows"),
            ([], jp.Codes(domain_of("AB"), np.empty((0, 2), int)), "0 users for 0 rows"),
            (
                "ab",
                jp.Codes(domain_of("AB"), [[0, 0]] * 2),
                "users must be a list of ids, not 'ab'",
            ),
            ([4, 4], jp.Codes(domain_of("AB"), [[0, 0]] * 2), "the list of users names 4 twice"),
            (
                [1],
                jp.Codes(domain_of("A", ("x", "y")), [[0]]),
                "the levels of item 'A' must be increasing numbers",
            ),
            (
                [1],
                jp.Codes(jp.Domain.of_sizes([2, 3], ["A", "B"]), [[0, 0]]),
                "item 'B' has the levels 0, 1, 2, but 'A' has 0, 1",
            ),
        ],
    )
    def test_of_ratings(self, users, codes, message):
        with pytest.raises(jp.JointPMFError, match=message):
            Ratings(users, codes)

    def test_an_item_that_is_named_user_has_no_column(self):
        ratings = Ratings([1], jp.Codes(domain_of(["user"]), [[0]]))
        with pytest.raises(jp.JointPMFError, match="an item is named 'user'"):
            ratings.wide()
        assert rows_of(ratings.long()) == [(1, "user", 1)]

    @pytest.mark.parametrize("call", [Ratings.wide, Ratings.long])
    def test_backend(self, call):
        with pytest.raises(jp.JointPMFError, match="backend must be 'polars', 'pandas' or"):
            call(Ratings([1], jp.Codes(domain_of("A"), [[0]])), "excel")


def some_ratings(n_users=40, n_items=5, holes=0.4, seed=0):
    domain = domain_of([f"item {n}" for n in range(n_items)], SCALE)
    rows = oracle.random_table(np.random.default_rng(seed), domain, n_users, holes)
    return Ratings(np.arange(n_users) * 3, jp.Codes(domain, rows))


class TestRatings:
    def test_says_what_it_holds(self):
        array = np.full((2000, 10), -1)
        array[:1000, 0] = 2
        ratings = Ratings(np.arange(2000), jp.Codes(domain_of("ABCDEFGHIJ", SCALE), array))
        expected = "Ratings(2,000 users × 10 items, 1,000 ratings on 0.5 .. 4.0, 5 % known)"
        assert repr(ratings) == expected
        assert ratings.density == 0.05

    @pytest.mark.parametrize("fraction", [0, 0.1, 1 / 3, 0.5, 1])
    def test_a_split_is_an_exact_part_of_the_known(self, fraction):
        ratings = some_ratings()
        hidden = ratings.split(fraction, random_state=1)
        assert hidden.shape == (40, 5)
        assert hidden.sum() == round(fraction * ratings.n_ratings)
        assert (ratings.codes.array[hidden] >= 0).all()
        np.testing.assert_array_equal(hidden, ratings.split(fraction, random_state=1))

    def test_splits_are_uniform(self):
        ratings = some_ratings(n_users=4)
        total = sum(ratings.split(0.5, random_state=seed).astype(int) for seed in range(2000))
        shares = total[ratings.codes.array >= 0] / 2000
        assert np.abs(shares - round(0.5 * len(shares)) / len(shares)).max() < 0.05

    def test_what_is_hidden_is_unrated_and_the_rest_stays(self):
        ratings = some_ratings()
        hidden = ratings.split(0.3, random_state=0)
        left = ratings.without(hidden)
        assert (left.codes.array[hidden] == jp.MISSING).all()
        np.testing.assert_array_equal(left.codes.array[~hidden], ratings.codes.array[~hidden])
        nothing = ratings.without(np.ones((40, 5), bool))
        assert (len(nothing), nothing.n_ratings) == (40, 0)

    @pytest.mark.parametrize("hidden", [np.zeros((40, 5)), np.zeros((5, 40), bool), True])
    def test_hidden_must_fit(self, hidden):
        with pytest.raises(jp.JointPMFError, match=r"hidden must be truth values of shape \(40, 5"):
            some_ratings().without(hidden)

    @pytest.mark.parametrize("fraction", [-0.1, 1.5, "half", True, np.nan])
    def test_a_fraction_is_a_share(self, fraction):
        with pytest.raises(jp.JointPMFError, match="the fraction must be a number from 0 to 1"):
            some_ratings().split(fraction)

    def test_what_somebody_rated_can_be_fitted(self):
        ratings = some_ratings()
        hidden = np.zeros((40, 5), bool)
        hidden[:, [1, 3]] = True
        left = ratings.without(hidden)
        assert left.rated().items == ("item 0", "item 2", "item 4")
        assert left.rated().n_ratings == left.n_ratings
        assert jp.fit_rows(left.rated().codes, 1).pmf.domain.names == left.rated().items
        with pytest.raises(jp.JointPMFError, match="no item has a rating"):
            ratings.without(np.ones((40, 5), bool)).rated()


class TestUnratedItems:
    def test_are_rated_as_all_are_and_named(self, caplog):
        hidden = np.zeros((40, 5), bool)
        hidden[:, 2] = True
        left = some_ratings().without(hidden)
        pmf = jp.fit_rows(left.rated().codes, 2, random_state=0, max_iter=5).pmf
        with caplog.at_level(logging.WARNING, logger="jointpmf"):
            whole = with_unrated_items(pmf, left)
        assert "the model does not know 'item 2'" in caplog.text
        known = left.codes.array[left.codes.array >= 0]
        shares = [(known == code).mean() for code in range(4)]
        for proba in whole.predict_proba(left.codes, "item 2"):
            np.testing.assert_allclose(proba, shares, atol=1e-12)
        np.testing.assert_allclose(
            whole.log_probability(left.codes), pmf.log_probability(left.rated().codes)
        )
        assert with_unrated_items(whole, left) is whole
        assert set(recommend(whole, left, n=5)["item"]) == set(left.items)

    def test_need_a_rating(self):
        nothing = some_ratings().without(np.ones((40, 5), bool))
        pmf = jp.random_pmf(domain_of(["item 0"], SCALE), 1, random_state=0)
        with pytest.raises(jp.JointPMFError, match="there is no rating"):
            with_unrated_items(pmf, nothing)


def range_by_brute_force(shares, probability):
    """Return the ends of the shortest range of levels that has the probability."""
    ranges = combinations(range(len(shares) + 1), 2)
    enough = [(a, b) for a, b in ranges if shares[a:b].sum() >= probability - 1e-9]
    low, end = min(enough, key=lambda ab: (ab[1] - ab[0], -round(shares[slice(*ab)].sum(), 9)))
    return low, end - 1


def recommended_by_brute_force(pmf, ratings, n, rows, probability):
    for row in rows:
        codes = np.full(len(pmf.domain), -1)
        codes[[pmf.domain.index(name) for name in ratings.items]] = ratings.codes.array[row]
        found = []
        for place, name in enumerate(ratings.items):
            if ratings.codes.array[row, place] < 0:
                shares = oracle.row_prediction(pmf, codes, pmf.domain.index(name))
                ends = range_by_brute_force(shares, probability)
                mean = float(shares @ ratings.scale)
                found.append((name, mean, *(ratings.scale[end] for end in ends)))
        for one in sorted(found, key=lambda one: -one[1])[:n]:
            yield (ratings.users.tolist()[row], *one)


def assert_same_rows(table, expected):
    rows, expected = rows_of(table), list(expected)
    assert [row[:2] + row[3:] for row in rows] == [row[:2] + row[3:] for row in expected]
    np.testing.assert_allclose([row[2] for row in rows], [row[2] for row in expected], atol=1e-12)


class TestRecommend:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("n", [1, 2, 10])
    def test_is_what_brute_force_finds(self, seed, n):
        ratings = some_ratings(n_users=12, seed=seed)
        extra = jp.Variable("age", ("young", "old"))
        domain = jp.Domain([extra, *ratings.codes.domain.variables[::-1]])
        pmf = jp.random_pmf(domain, rank=3, random_state=seed)
        probability = (0.3, 0.5, 0.8, 0.95, 1.0)[seed]
        table = recommend(pmf, ratings, n, probability=probability)
        assert table.columns == ["user", "item", "expected", "low", "high"]
        expected = recommended_by_brute_force(pmf, ratings, n, range(12), probability)
        assert_same_rows(table, expected)

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_some_users_in_the_order_asked(self, backend):
        ratings = some_ratings()
        pmf = jp.random_pmf(ratings.codes.domain, rank=3, random_state=0)
        table = recommend(pmf, ratings, 2, users=np.array([30, 3]), backend=backend)
        assert isinstance(table, BACKENDS[backend])
        assert_same_rows(table, recommended_by_brute_force(pmf, ratings, 2, [10, 1], 0.8))

    def test_blocks_of_users_change_nothing(self, monkeypatch):
        ratings = some_ratings()
        pmf = jp.random_pmf(ratings.codes.domain, rank=3, random_state=0)
        whole = recommend(pmf, ratings, 3)
        monkeypatch.setattr("jointpmf.data.ratings.BLOCK", 7)
        assert_same_rows(recommend(pmf, ratings, 3), rows_of(whole))

    def test_who_rated_everything_gets_nothing_and_who_rated_nothing_the_marginal(self):
        domain = domain_of("AB")
        pmf = jp.random_pmf(domain, rank=2, random_state=0)
        ratings = Ratings(["all", "none"], jp.Codes(domain, [[0, 1], [-1, -1]]))
        table = recommend(pmf, ratings)
        assert table["user"].to_list() == ["none", "none"]
        means = {name: pmf.marginal([name]).table() @ [1, 2, 3] for name in "AB"}
        found = dict(table.select("item", "expected").rows())
        assert found == pytest.approx(means)
        assert table["item"].to_list() == sorted(means, key=lambda name: -means[name])

    def test_ties_are_in_the_order_of_the_items(self):
        domain = domain_of([f"item {n}" for n in range(9)])
        factor = np.random.default_rng(0).dirichlet(np.ones(3), 4).T
        pmf = jp.JointPMF(domain, [0.1, 0.2, 0.3, 0.4], [factor] * 9)
        rows = oracle.random_table(np.random.default_rng(1), domain, 50, 0.7)
        table = recommend(pmf, Ratings(np.arange(50), jp.Codes(domain, rows)), n=9)
        for (_, items), row in zip(
            table.group_by("user", maintain_order=True).agg("item").rows(), rows, strict=True
        ):
            assert items == [f"item {n}" for n in np.flatnonzero(row < 0)]

    def test_nobody_asked_is_an_empty_table(self):
        ratings = some_ratings()
        pmf = jp.random_pmf(ratings.codes.domain, rank=3, random_state=0)
        assert recommend(pmf, ratings, users=[]).shape == (0, 5)

    def test_ratings_that_cannot_be_are_answered_from_the_marginal(self, caplog):
        domain = domain_of("ABC", (1, 2))
        pmf = jp.JointPMF(domain, [0.5, 0.5], [np.eye(2), np.eye(2), [[0.3, 0.9], [0.7, 0.1]]])
        ratings = Ratings([1], jp.Codes(domain, [[0, 1, -1]]))
        with caplog.at_level(logging.WARNING, logger="jointpmf"):
            table = recommend(pmf, ratings)
        assert table["expected"][0] == pytest.approx(1.4)
        assert "probability zero" in caplog.text

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n": 0}, "n must be a whole number of at least 1, not 0"),
            ({"users": [0, 1]}, "there is no user 1 in the ratings"),
            ({"users": ["0"]}, "there is no user '0' in the ratings"),
            ({"users": [3, 3]}, "the list of users names 3 twice"),
            ({"users": 3}, "users must be a list of ids, not 3"),
            ({"users": "ann"}, "users must be a list of ids, not 'ann'"),
            ({"probability": 1.1}, "the probability must be a number from 0 to 1, not 1.1"),
            ({"backend": "codes"}, "backend must be 'polars', 'pandas' or 'pyarrow', not 'codes'"),
        ],
    )
    def test_bad_options(self, options, message):
        ratings = some_ratings()
        pmf = jp.random_pmf(ratings.codes.domain, rank=2, random_state=0)
        with pytest.raises(jp.JointPMFError, match=message):
            recommend(pmf, ratings, **options)

    def test_a_model_of_something_else(self):
        ratings = some_ratings()
        fewer = jp.random_pmf(domain_of(ratings.items[:-1], SCALE), rank=2, random_state=0)
        with pytest.raises(jp.JointPMFError, match="the model does not know item 'item 4'"):
            recommend(fewer, ratings)
        other = jp.random_pmf(domain_of(ratings.items, (1, 2)), rank=2, random_state=0)
        message = "item 'item 0' has the levels 1, 2 in the model, but the ratings have the scale"
        with pytest.raises(jp.JointPMFError, match=message):
            recommend(other, ratings)
        with pytest.raises(jp.JointPMFError, match=r"ratings must be what .* not DataFrame"):
            recommend(fewer, ratings.wide())


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any),
    st.sampled_from([0, 0.25, 0.5, 0.8, 0.99, 1]),
)
def test_ranges_are_the_shortest(counts, probability):
    shares = np.array(counts) / sum(counts)
    low, high = shortest_ranges(shares[None], probability)
    assert (low[0], high[0]) == range_by_brute_force(shares, probability)


def coverage_by_brute_force(probabilities, truth, level):
    parts = []
    for shares, code in zip(probabilities, truth, strict=True):
        left = level
        for one in sorted(range(len(shares)), key=lambda k: (-shares[k], k)):
            part = min(shares[one], left)
            left -= part
            if one == code:
                parts.append(part / shares[one] if shares[one] else 0.0)
    return np.mean(parts)


class TestCoverage:
    @settings(deadline=None)
    @given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.99))
    def test_is_what_brute_force_finds(self, seed, level):
        generator = np.random.default_rng(seed)
        counts = generator.integers(0, 4, (20, 5)) + np.eye(5, dtype=int)[0]
        probabilities = counts / counts.sum(axis=1, keepdims=True)
        truth = generator.integers(0, 5, 20)
        found = coverage(probabilities, truth, level)
        assert isinstance(found, float)
        assert found == pytest.approx(coverage_by_brute_force(probabilities, truth, level))

    def test_of_several_levels(self):
        probabilities = np.random.default_rng(0).dirichlet(np.ones(4), 30)
        truth = np.random.default_rng(1).integers(0, 4, 30)
        levels = np.array([[0.1, 0.5], [0.8, 0.9]])
        found = coverage(probabilities, truth, levels)
        expected = [[coverage(probabilities, truth, one) for one in row] for row in levels]
        np.testing.assert_array_equal(found, expected)

    def test_is_exact_in_expectation(self):
        shares = np.array([0.45, 0.25, 0.2, 0.1])
        for level in (0.05, 0.45, 0.5, 0.7, 0.95):
            found = [coverage(shares[None], [code], level) for code in range(4)]
            assert shares @ found == pytest.approx(level)

    def test_is_nominal_on_data_of_the_model(self):
        pmf = jp.random_pmf(domain_of("ABCD", (1, 2, 3, 4, 5)), rank=3, random_state=0)
        rows = pmf.sample(20_000, random_state=0, backend="codes")
        levels = np.array([0.1, 0.5, 0.8, 0.95])
        predicted = pmf.predict_proba(jp.Codes(pmf.domain, rows), "C")
        found = coverage(predicted, rows[:, 2], levels)
        assert (np.abs(found - levels) < 4 * np.sqrt(levels * (1 - levels) / 20_000)).all()
        too_sure = predicted**3 / (predicted**3).sum(axis=1, keepdims=True)
        assert (coverage(too_sure, rows[:, 2], levels) < found - 0.02).all()

    @pytest.mark.parametrize(
        ("probabilities", "truth", "level", "message"),
        [
            ([0.5, 0.5], [0], 0.5, r"probabilities must be of shape \(rows, levels\), not \(2,\)"),
            (np.empty((0, 2)), [], 0.5, r"probabilities must be of shape"),
            ([["a", "b"]], [0], 0.5, "must be arrays of numbers"),
            ([[0.5, 0.5]], [0, 1], 0.5, "truth must be 1 codes"),
            ([[0.5, 0.5]], [0.5], 0.5, "truth must be 1 codes.* type float64"),
            ([[1, 0], [0.5, 0.6]], [0, 1], 0.5, "probabilities of row 1 must be non-negative"),
            ([[1.5, -0.5]], [0], 0.5, "probabilities of row 0 must be non-negative"),
            ([[np.nan, 1.0]], [0], 0.5, "probabilities of row 0 must be non-negative"),
            ([[0.5, 0.5]], [-1], 0.5, "the code -1 of row 0 is none of the 2 levels"),
            ([[0.5, 0.5]], [2], 0.5, "the code 2 of row 0 is none of the 2 levels"),
            ([[0.5, 0.5]], [0], 1.0, "level must lie between 0 and 1, not 1.0"),
            ([[0.5, 0.5]], [0], [0.5, 0], r"level must lie between 0 and 1, not \[0.5, 0\]"),
            ([[0.5, 0.5]], [0], "0.5", "level must lie between 0 and 1, not '0.5'"),
        ],
    )
    def test_bad_input(self, probabilities, truth, level, message):
        with pytest.raises(jp.JointPMFError, match=message):
            coverage(probabilities, truth, level)


class TestAsATable:
    DOMAIN = jp.Domain([jp.Variable("a", (1, 2, 3)), jp.Variable("b", (1, 2, 3))])
    ARRAY = np.array([[0, 1], [2, -1], [1, 1], [0, 2]])

    def ratings(self):
        return jp.Ratings([1, 2, 3, 4], jp.Codes(self.DOMAIN, self.ARRAY))

    def test_ratings_are_a_table_wherever_rows_are(self):
        codes = jp.Codes(self.DOMAIN, self.ARRAY)
        own = jp.fit_rows(self.ratings(), 2, random_state=0).pmf
        expected = jp.fit_rows(codes, 2, random_state=0).pmf
        np.testing.assert_array_equal(own.table(), expected.table())
        marginals = jp.MarginalSet.from_table(self.ratings(), order=2)
        np.testing.assert_array_equal(
            marginals[0].table, jp.MarginalSet.from_table(codes, 2)[0].table
        )
        np.testing.assert_array_equal(
            own.expectation(self.ratings(), "b"), own.expectation(codes, "b")
        )

    def test_a_column_called_codes_is_a_column(self):
        table = pd.DataFrame({"codes": [1, 2, 2], "b": [1, 1, 2]})
        assert jp.encode(table).domain.names == ("codes", "b")

    @pytest.mark.parametrize(
        ("call", "sentence"),
        [
            (lambda r: recommend(3, r), "the model must be a JointPMF, not int"),
            (lambda r: recommend(jp.fit_rows(r, 1).pmf, r, users=[[1]]), "there is no user"),
            (lambda r: jp.Ratings([[1], [2], [3], [4]], r.codes), "users must be a list of ids"),
            (lambda r: jp.fit_rows(r, 1, bins=3), "bins belong to the learning of a domain"),
            (lambda r: jp.fit_cells(r, domain=r.codes.domain), "a domain of their own"),
        ],
    )
    def test_what_cannot_be_is_said(self, call, sentence):
        with pytest.raises(jp.JointPMFError, match=sentence):
            call(self.ratings())

    def test_ids_that_a_hole_made_floats_keep_their_names(self):
        table = pd.DataFrame(
            {"user": [1, 1, 2, 3], "item": [7, 8, 7, None], "rating": [3, 2, 1, None]}
        )
        assert jp.pivot_ratings(table).items == ("7", "8")
        assert jp.pivot_ratings(table, items=[8, 7]).items == ("8", "7")
        mixed = pd.DataFrame({"user": [1, 1], "item": [7.0, "7"], "rating": [1, 2]})
        with pytest.raises(jp.JointPMFError, match="would have the same name '7'"):
            jp.pivot_ratings(mixed)
