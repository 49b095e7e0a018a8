"""A real table to try things on: a survey that comes with an installed package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jointpmf.errors import JointPMFError

if TYPE_CHECKING:
    import pandas as pd

_PARTIES = (
    "strong Democrat",
    "weak Democrat",
    "independent Democrat",
    "independent",
    "independent Republican",
    "weak Republican",
    "strong Republican",
)

_SCHOOLS = (
    "grade school",
    "some high school",
    "high school",
    "some college",
    "college",
    "master",
    "PhD",
)


def anes96() -> pd.DataFrame:
    """Return the American National Election Study of 1996: 944 people, ten answers each.

    The table comes with statsmodels (extra `demo`). Liberal to conservative runs from 1 to 7,
    for the respondent and for how they place the two candidates.

    Examples
    --------
    >>> table = anes96()
    >>> table.shape
    (944, 10)
    >>> table["vote"].value_counts().to_dict()
    {'Clinton': 551, 'Dole': 393}
    """
    try:
        import pandas as pd
        from statsmodels.datasets import anes96 as source
    except ImportError:
        raise JointPMFError("the survey needs the extra: pip install 'jointpmf[demo]'") from None
    raw = source.load_pandas().data

    def whole(column: str) -> pd.Series:
        return raw[column].astype(int)

    def labelled(column: str, labels: tuple[str, ...], first: int) -> pd.Categorical:
        return pd.Categorical.from_codes(whole(column) - first, pd.Index(labels), ordered=True)

    return pd.DataFrame(
        {
            "party": labelled("PID", _PARTIES, 0),
            "vote": labelled("vote", ("Clinton", "Dole"), 0),
            "own view": whole("selfLR"),
            "Clinton's view": whole("ClinLR"),
            "Dole's view": whole("DoleLR"),
            "TV news days": whole("TVnews"),
            "education": labelled("educ", _SCHOOLS, 1),
            "age": whole("age"),
            "income": whole("income"),
            "town size": raw["popul"],
        }
    )
