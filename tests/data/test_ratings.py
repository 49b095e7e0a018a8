"""Long tables to wide and back, ratings as a table, and what is refused."""

import logging

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jointpmf as jp
from jointpmf.data.pivot import pivot_ratings
from jointpmf.data.ratings import Ratings
from jointpmf.predict.recommend import recommend
from support.ratings import BACKENDS, SCALE, domain_of, long_table, rows_of, some_ratings

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
        with pytest.raises(jp.JointPMFError, match=r"hidden must be booleans of shape \(40, 5"):
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
            (lambda r: jp.fit_rows(r, domain=r.codes.domain), "a domain of their own"),
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
