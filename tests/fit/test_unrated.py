"""Items that nobody rated get the distribution of all ratings."""

import logging

import numpy as np
import pytest

import jointpmf as jp
from jointpmf.fit.unrated import with_unrated_items
from jointpmf.predict.recommend import recommend
from support.ratings import SCALE, domain_of, some_ratings


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
