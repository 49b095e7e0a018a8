"""Items that nobody rated, added to a model of those that were."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from jointpmf.domain import Domain
from jointpmf.errors import JointPMFError, listing
from jointpmf.pmf import JointPMF

if TYPE_CHECKING:
    from jointpmf.data.ratings import Ratings

logger = logging.getLogger("jointpmf")


def with_unrated_items(pmf: JointPMF, ratings: Ratings) -> JointPMF:
    """Return a model that has all items: those it lacks are distributed as all ratings are.

    A model cannot be fitted to an item that nobody rated (`Ratings.rated` leaves it out). Such an
    item is independent of the others here, and a warning names it.

    Examples
    --------
    >>> from jointpmf import Codes, Domain, JointPMF, Ratings, Variable
    >>> domain = Domain([Variable("Alien", (1, 2)), Variable("Brazil", (1, 2))])
    >>> ratings = Ratings([7, 8, 9], Codes(domain, [[1, -1], [1, -1], [0, -1]]))
    >>> pmf = JointPMF(domain.project(["Alien"]), [1.0], [[[0.5], [0.5]]])
    >>> with_unrated_items(pmf, ratings).marginal(["Brazil"]).table().round(2).tolist()
    [0.33, 0.67]
    """
    lacking = [variable for variable in ratings.codes.domain if variable.name not in pmf.domain]
    if not lacking:
        return pmf
    if not ratings.n_ratings:
        raise JointPMFError("there is no rating to tell how items are rated")
    logger.warning(
        "the model does not know %s, predicted as all ratings are distributed",
        listing(variable.name for variable in lacking),
    )
    known = ratings.codes.array[ratings.known]
    shares = np.bincount(known, minlength=len(ratings.scale)) / len(known)
    factor = np.tile(shares[:, None], pmf.rank)
    domain = Domain((*pmf.domain, *lacking))
    return JointPMF(domain, pmf.weights, [*pmf.factors, *[factor] * len(lacking)])
