"""Ratings of movies and of jokes, from a folder or from their publisher.

What is downloaded is checked by its SHA-256 sum and kept.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from jointpmf.data.codes import Codes
from jointpmf.data.pivot import pivot_ratings
from jointpmf.data.ratings import Ratings
from jointpmf.domain import Domain, Variable
from jointpmf.errors import JointPMFError, listing, one_of, shown, text_of_count, whole_number
from jointpmf.output import reason_of
from paper.downloads import (
    data_folders,
    first_file,
    packed_or_not,
    publisher_file,
    zip_member,
)

logger = logging.getLogger("jointpmf")


@dataclass(frozen=True)
class Source:
    """Who published the data, under which licence, and what to cite.

    Examples
    --------
    >>> print(SOURCES["jester"].licence)
    free for research, provided that the paper is cited.
    """

    name: str
    address: str
    licence: str
    citation: str

    def __str__(self) -> str:
        return f"{self.name}, {self.address}\nLicence: {self.licence}\nCite: {self.citation}"


SOURCES = {
    "movielens": Source(
        name="MovieLens",
        address="https://grouplens.org/datasets/movielens/",
        licence=(
            "free for research, provided that its use is acknowledged and no endorsement by the "
            "University of Minnesota or GroupLens is claimed; commercial use needs their "
            "permission, and whoever passes the data on does so under the same terms."
        ),
        citation=(
            "F. Maxwell Harper and Joseph A. Konstan (2015). The MovieLens Datasets: History and "
            "Context. ACM Transactions on Interactive Intelligent Systems 5(4), 19:1–19:19. "
            "https://doi.org/10.1145/2827872"
        ),
    ),
    "jester": Source(
        name="Jester data set 1",
        address="https://eigentaste.berkeley.edu/dataset/",
        licence="free for research, provided that the paper is cited.",
        citation=(
            "Ken Goldberg, Theresa Roeder, Dhruv Gupta and Chris Perkins (2001). Eigentaste: A "
            "Constant Time Collaborative Filtering Algorithm. Information Retrieval 4(2), 133–151."
        ),
    ),
}
"""What to print beside results: `print(SOURCES["movielens"])`."""


_RELEASES = {
    "latest-small": "ml-latest-small",
    "20m": "ml-20m",
    "25m": "ml-25m",
    "32m": "ml-32m",
    "pooled": "movielens-pooled",
}
"""MovieLens releases and their folders; "pooled" cannot be downloaded."""

_STARS = tuple(half / 2 for half in range(1, 11))
_NO_GENRE = "(no genres listed)"
_N_JOKES = 100
_NOT_RATED = 99.0
"""How the publisher of Jester marks a joke that a user did not rate."""


def fetch_movielens(
    genre: str | None = None,
    n_items: int | None = 10,
    release: str = "latest-small",
    *,
    data_home: str | os.PathLike[str] | None = None,
) -> Ratings:
    """Return how users rated the movies that most of them rated, from half a star to five stars.

    The tables are read from a folder: `data_home`, or the environment variable `JOINTPMF_DATA`.
    What is not there is downloaded from GroupLens, checked by its SHA-256 sum, and kept: in
    `data_home`, or else in the user's cache. The licence and the citation, `SOURCES["movielens"]`,
    are logged.

    Parameters
    ----------
    genre : str, optional
        Only movies of this genre, such as "Action", in upper or lower case.
    n_items : int or None
        How many movies, the most rated first and among equals the smaller movieId; None for all
        that were rated. Users who rated none of them are left out.
    release : {"latest-small", "20m", "25m", "32m", "pooled"}
        Which release; "pooled" is read from a folder only.
    data_home : path, optional
        The folder that has the release's folder, such as `ml-latest-small` with `ratings.csv` and
        `movies.csv` (or `.csv.gz`), in itself or in its folder `ratings`; or its zip.

    Returns
    -------
    Ratings
        One row per user, one variable per movie, by its title; movies of the same title have
        their movieId behind it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     folder = Path(home, "ml-latest-small")
    ...     folder.mkdir()
    ...     movies = {"movieId": [1, 2], "title": ["Alien", "Heat"], "genres": ["Horror", "Crime"]}
    ...     pl.DataFrame(movies).write_csv(folder / "movies.csv")
    ...     rows = {"userId": [7, 7, 8, 9], "movieId": [1, 2, 2, 1], "rating": [4.5, 3, 2.5, 5]}
    ...     pl.DataFrame(rows).write_csv(folder / "ratings.csv")
    ...     ratings = fetch_movielens("horror", n_items=1, data_home=home)
    >>> ratings.wide().rows(named=True)
    [{'user': 7, 'Alien': 4.5}, {'user': 9, 'Alien': 5.0}]
    """
    one_of(release, tuple(_RELEASES), "release")
    if n_items is not None:
        n_items = whole_number(n_items, "n_items", 1)
    ratings, movies = _movielens_tables(release, data_home)
    logger.info("%s", SOURCES["movielens"])
    if genre is not None:
        movies = _movies_of(genre, movies)
        ratings = ratings.join(movies, on="movieId", how="semi", maintain_order="left")
    chosen = _most_rated(ratings, movies, n_items)
    table = ratings.join(chosen, on="movieId", maintain_order="left")
    return pivot_ratings(
        table, "userId", "name", "rating", scale=_STARS, items=chosen["name"].to_list()
    )


def fetch_jester(
    n_items: int | None = 10, *, data_home: str | os.PathLike[str] | None = None
) -> Ratings:
    """Return how 24,983 users rated the jokes that most of them rated, from 1 to 21.

    The publisher's ratings lie between −10 and 10; they are rounded (halves away from zero) and
    shifted. They are read from a folder: `data_home`, or the environment variable
    `JOINTPMF_DATA`. What is not there is downloaded, checked by its SHA-256 sum, and kept: in
    `data_home`, or else in the user's cache. The licence and the citation, `SOURCES["jester"]`,
    are logged. The publisher's spreadsheet needs the extra `paper`.

    Parameters
    ----------
    n_items : int or None
        How many jokes, among equals the first; None for all 100. Users who rated none of them
        are left out. Ten, rated by almost all users, is what the literature uses.
    data_home : path, optional
        The folder that has the publisher's `jester-data-1.xls` or its zip, or `jester-1.csv` (or
        `.csv.gz`) with columns joke1, …, joke100; in itself or in its folder `jester-1`,
        `ratings` or `ratings/jester-1`.

    Returns
    -------
    Ratings
        One row per user, numbered from 1 as in the publisher's file; one variable per joke, in
        the order of their numbers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     jokes = {f"joke{n}": [None, None, None] for n in range(1, 101)}
    ...     jokes |= {"joke7": [None, None, 10.0], "joke8": [None, -9.5, 0.49]}
    ...     pl.DataFrame(jokes).write_csv(f"{home}/jester-1.csv")
    ...     ratings = fetch_jester(n_items=2, data_home=home)
    >>> ratings.wide().rows(named=True)
    [{'user': 2, 'joke7': None, 'joke8': 1}, {'user': 3, 'joke7': 21, 'joke8': 11}]
    """
    n_items = _N_JOKES if n_items is None else whole_number(n_items, "n_items", 1)
    if n_items > _N_JOKES:
        raise JointPMFError(
            f"n_items is {text_of_count(n_items)}, but there are only {_N_JOKES} jokes"
        )
    ratings = _jester_ratings(data_home)
    logger.info("%s", SOURCES["jester"])
    is_rated = ~np.isnan(ratings)
    chosen = np.sort(np.argsort(-is_rated.sum(axis=0), kind="stable")[:n_items])
    rows = np.flatnonzero(is_rated[:, chosen].any(axis=1))
    rounded = _rounded(ratings[np.ix_(rows, chosen)])
    domain = Domain([Variable(f"joke{n + 1}", tuple(range(1, 22))) for n in chosen])
    return Ratings(users=rows + 1, codes=Codes(domain, rounded + 10))


def _rounded(numbers: np.ndarray) -> np.ndarray:
    """Return the nearest whole numbers, halves away from zero."""
    return np.trunc(numbers + np.copysign(0.5, numbers))


def _movies_of(genre: str, movies: pl.DataFrame) -> pl.DataFrame:
    """Return the movies of a genre, in upper or lower case."""
    genres = movies["genres"].str.split("|")
    known = sorted(set(genres.explode(empty_as_null=True).drop_nulls()) - {_NO_GENRE})
    wanted = genre.casefold() if isinstance(genre, str) else None
    found = [name for name in known if name.casefold() == wanted]
    if not found:
        raise JointPMFError(
            f"there is no genre {shown(genre)}; the genres are {listing(known, limit=len(known))}"
        )
    return movies.filter(genres.list.contains(found[0]))


def _most_rated(ratings: pl.DataFrame, movies: pl.DataFrame, n_items: int | None) -> pl.DataFrame:
    """Return the movieId and the name of the most rated movies, the most rated first."""
    counts = ratings.group_by("movieId").len()
    if n_items is not None and n_items > counts.height:
        raise JointPMFError(
            f"n_items is {n_items}, but only {counts.height} such movies were rated"
        )
    chosen = counts.sort(["len", "movieId"], descending=[True, False]).head(n_items or len(counts))
    number = pl.col("movieId").cast(pl.String)
    title = pl.col("title").fill_null(pl.lit("movie ") + number)
    name = pl.when(title.is_duplicated()).then(title + " [" + number + "]").otherwise(title)
    return chosen.join(movies, on="movieId", how="left", maintain_order="left").select(
        "movieId", name.alias("name")
    )


def _movielens_tables(release: str, data_home: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a release's ratings and movies, from a folder or from its zip."""
    shelves = data_folders(data_home)
    folder = _RELEASES[release]
    ratings = first_file(shelves, packed_or_not(f"{folder}/ratings.csv"))
    if ratings is None:
        archive = publisher_file(release, folder, data_home)
        return (
            _rating_table(zip_member(archive, f"{folder}/ratings.csv"), str(archive)),
            _movie_table(zip_member(archive, f"{folder}/movies.csv"), str(archive)),
        )
    movies = first_file([ratings.parent], packed_or_not("movies.csv"))
    if movies is None:
        raise JointPMFError(f"the folder {ratings.parent} has ratings but no movies.csv")
    return _rating_table(ratings, str(ratings)), _movie_table(movies, str(movies))


def _rating_table(source: Path | bytes, where: str) -> pl.DataFrame:
    types = {"userId": pl.Int64, "movieId": pl.Int64, "rating": pl.Float64}
    return _table(source, where, types)


def _movie_table(source: Path | bytes, where: str) -> pl.DataFrame:
    types = {"movieId": pl.Int64, "title": pl.String, "genres": pl.String}
    return _table(source, where, types).unique("movieId", keep="first", maintain_order=True)


def _table(source: Path | bytes, where: str, types: dict[str, Any]) -> pl.DataFrame:
    """Return some columns of a CSV file, in this order."""
    try:
        table = pl.read_csv(source, columns=list(types), schema_overrides=types)
        return table.select(list(types))
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = reason_of(error).partition("\n")[0]
        raise JointPMFError(
            f"{where} cannot be read as a table with the columns {listing(types)}: {reason}"
        ) from None


def _jester_ratings(data_home: Any) -> np.ndarray:
    """Return all ratings, of shape (users, 100), NaN where there is none."""
    spellings = [*packed_or_not("jester-1.csv"), "jester-data-1.xls", "jester-data-1.zip"]
    folders = [folder / sub for folder in data_folders(data_home) for sub in ("jester-1", "")]
    path = first_file(folders, spellings) or publisher_file("jester", "jester-1", data_home)
    if path.suffix in (".csv", ".gz"):
        types = {f"joke{n}": pl.Float64 for n in range(1, _N_JOKES + 1)}
        ratings = _table(path, str(path), types).to_numpy()
    else:
        is_zip = path.suffix == ".zip"
        content = zip_member(path, "jester-data-1.xls") if is_zip else path.read_bytes()
        ratings = _spreadsheet_ratings(content, str(path))
    outside = ratings[np.abs(ratings) > 10]
    if outside.size:
        raise JointPMFError(f"{path} has the rating {outside[0]:g}, which is not within −10..10")
    return ratings


def _spreadsheet_ratings(content: bytes, where: str) -> np.ndarray:
    """Return the ratings of the publisher's spreadsheet, whose first column counts them."""
    try:
        import fastexcel
    except ImportError:
        raise JointPMFError(
            f"{where} is a spreadsheet, which needs the extra: pip install 'jointpmf[paper]'"
        ) from None
    try:
        sheet = pl.read_excel(content, has_header=False, infer_schema_length=None)
        numbers = sheet.cast(pl.Float64).to_numpy()
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError):
        raise JointPMFError(f"{where} cannot be read as a spreadsheet of numbers") from None
    if numbers.shape[1] != _N_JOKES + 1:
        raise JointPMFError(
            f"{where} has {numbers.shape[1]} columns instead of a count and {_N_JOKES} jokes"
        )
    return np.where(numbers == _NOT_RATED, np.nan, numbers)[:, 1:]
