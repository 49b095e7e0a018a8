"""Ratings from a folder and by download: the paper's preparation, and all that can go wrong."""

import gzip
import hashlib
import io
import logging
import os
import sys
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pooch
import pytest
from paper import downloads
from paper.datasets import SOURCES, fetch_jester, fetch_movielens
from paper.downloads import Archive

from jointpmf.errors import JointPMFError

DATA = os.environ.get("JOINTPMF_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="JOINTPMF_DATA names no folder with the data")

MOVIES = """movieId,title,genres
1,"Matrix, The (1999)",Action|Sci-Fi
2,Emma (1996),Romance
3,Emma (1996),Drama|Romance
4,Unseen (2001),Action
5,Notes (2002),(no genres listed)
"""
RATINGS = """userId,movieId,rating,timestamp
12,2,3.0,0
3,1,5.0,0
3,3,0.5,0
3,2,4.0,0
12,99,2.0,0
5,99,4.5,0
5,1,1.0,0
7,5,1.5,0
"""


@pytest.fixture(autouse=True)
def _nothing_outside(monkeypatch, tmp_path):
    """Let no test read the user's folder or cache, nor reach further than this machine."""
    monkeypatch.delenv("JOINTPMF_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")
    closed = {
        key: Archive(one.file, one.unpacked, one.sha256, ("http://127.0.0.1:9/" + one.file,))
        for key, one in downloads.ARCHIVES.items()
    }
    monkeypatch.setattr(downloads, "ARCHIVES", closed)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_release(home, folder="ml-latest-small", ending=""):
    write(home / folder / f"ratings.csv{ending}", RATINGS)
    write(home / folder / f"movies.csv{ending}", MOVIES)
    return home


def jokes_text(rows):
    """Return a CSV file of 100 jokes; `rows` have a mapping of joke number to rating per user."""
    numbers = range(1, 101)
    lines = [",".join(f"joke{n}" for n in numbers)]
    lines += [",".join(str(row.get(n, "")) for n in numbers) for row in rows]
    return "\n".join(lines) + "\n"


class TestMovieLensFolder:
    @pytest.mark.parametrize("ending", ["", ".gz"])
    @pytest.mark.parametrize("parent", ["", "ratings"])
    def test_every_layout_is_found(self, tmp_path, parent, ending):
        write_release(tmp_path / parent, ending=ending)
        wide = fetch_movielens("Romance", n_items=1, data_home=tmp_path).wide()
        assert wide.rows(named=True) == [
            {"user": 3, "Emma (1996)": 4.0},
            {"user": 12, "Emma (1996)": 3.0},
        ]

    def test_the_environment_names_the_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("JOINTPMF_DATA", str(write_release(tmp_path, "movielens-pooled")))
        assert fetch_movielens("drama", 1, release="pooled").users.tolist() == [3]

    def test_the_most_rated_come_first_and_equals_by_number(self, tmp_path):
        ratings = fetch_movielens(n_items=None, data_home=write_release(tmp_path))
        assert ratings.items == (
            "Matrix, The (1999)",
            "Emma (1996) [2]",
            "movie 99",
            "Emma (1996) [3]",
            "Notes (2002)",
        )
        assert ratings.users.tolist() == [3, 5, 7, 12]

    def test_the_scale_is_half_stars_even_where_some_do_not_occur(self, tmp_path):
        ratings = fetch_movielens("ACTION", 1, data_home=write_release(tmp_path))
        assert ratings.scale == (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)
        assert ratings.codes.array[:, 0].tolist() == [9, 1]

    def test_the_licence_and_the_citation_are_logged(self, tmp_path, caplog):
        with caplog.at_level(logging.INFO, logger="jointpmf"):
            fetch_movielens(n_items=1, data_home=write_release(tmp_path))
        assert SOURCES["movielens"].licence in caplog.text
        assert SOURCES["movielens"].citation in caplog.text


class TestBadInput:
    def test_an_unknown_genre_is_named_with_the_known_ones(self, tmp_path):
        match = "no genre 'Western'; the genres are 'Action', 'Drama', 'Romance', 'Sci-Fi'$"
        with pytest.raises(JointPMFError, match=match):
            fetch_movielens("Western", data_home=write_release(tmp_path))

    def test_an_unknown_release(self):
        with pytest.raises(JointPMFError, match=r"release must be 'latest-small', .* not '1m'"):
            fetch_movielens(release="1m")

    @pytest.mark.parametrize("fetch", [fetch_movielens, fetch_jester])
    @pytest.mark.parametrize("n_items", [0, 2.5, True, "3"])
    def test_n_items_is_a_whole_number(self, fetch, n_items):
        with pytest.raises(JointPMFError, match="n_items must be a whole number of at least 1"):
            fetch(n_items=n_items)

    def test_more_movies_than_there_are(self, tmp_path):
        with pytest.raises(JointPMFError, match="n_items is 10, but only 2 such movies were rated"):
            fetch_movielens("Romance", data_home=write_release(tmp_path))

    def test_ratings_without_their_movies(self, tmp_path):
        write(tmp_path / "ml-25m" / "ratings.csv", RATINGS)
        with pytest.raises(JointPMFError, match=r"ml-25m has ratings but no movies.csv"):
            fetch_movielens(release="25m", data_home=tmp_path)

    def test_a_half_written_table(self, tmp_path):
        write_release(tmp_path, ending=".gz")
        path = tmp_path / "ml-latest-small" / "ratings.csv.gz"
        path.write_bytes(path.read_bytes()[:-30])
        with pytest.raises(JointPMFError, match=r"ratings.csv.gz cannot be read"):
            fetch_movielens(data_home=tmp_path)

    def test_a_rating_off_the_scale(self, tmp_path):
        write_release(tmp_path)
        write(tmp_path / "ml-latest-small" / "ratings.csv", "userId,movieId,rating\n1,1,6.0\n")
        with pytest.raises(JointPMFError, match=r"6\.0"):
            fetch_movielens(n_items=1, data_home=tmp_path)

    def test_a_home_that_is_no_folder(self, tmp_path, monkeypatch):
        path = write(tmp_path / "file", "")
        with pytest.raises(JointPMFError, match=r"data_home names .*file', which is not a folder"):
            fetch_jester(data_home=path)
        monkeypatch.setenv("JOINTPMF_DATA", str(tmp_path / "nowhere"))
        with pytest.raises(JointPMFError, match=r"JOINTPMF_DATA names .*nowhere', which is not a"):
            fetch_jester()


class TestJesterFolder:
    ROWS = ({5: -0.5, 8: 0.5, 9: 9.5}, {5: -9.5, 8: 1.49}, {2: 0.0}, {8: -10, 9: 10})

    @pytest.mark.parametrize("parent", ["", "jester-1", "ratings", "ratings/jester-1"])
    @pytest.mark.parametrize("file", ["jester-1.csv", "jester-1.csv.gz"])
    def test_every_layout_is_found(self, tmp_path, parent, file):
        write(tmp_path / parent / file, jokes_text(self.ROWS))
        ratings = fetch_jester(n_items=3, data_home=tmp_path)
        assert ratings.wide().rows() == [(1, 10, 12, 21), (2, 1, 12, None), (4, None, 1, 21)]

    def test_jokes_come_in_their_order_and_equals_are_the_first(self, tmp_path):
        write(tmp_path / "jester-1.csv", jokes_text(self.ROWS))
        assert fetch_jester(2, data_home=tmp_path).items == ("joke5", "joke8")
        assert fetch_jester(4, data_home=tmp_path).items == ("joke2", "joke5", "joke8", "joke9")

    def test_all_jokes(self, tmp_path):
        write(tmp_path / "jester-1.csv", jokes_text(self.ROWS))
        ratings = fetch_jester(None, data_home=tmp_path)
        assert ratings.items == tuple(f"joke{n}" for n in range(1, 101))
        assert ratings.scale == tuple(range(1, 22))
        assert ratings.users.tolist() == [1, 2, 3, 4]

    def test_the_licence_and_the_citation_are_logged(self, tmp_path, caplog):
        write(tmp_path / "jester-1.csv", jokes_text(self.ROWS))
        with caplog.at_level(logging.INFO, logger="jointpmf"):
            fetch_jester(1, data_home=tmp_path)
        assert str(SOURCES["jester"]) in caplog.text

    def test_a_rating_off_the_scale_of_jokes(self, tmp_path):
        write(tmp_path / "jester-1.csv", jokes_text([{1: 99}]))
        with pytest.raises(JointPMFError, match=r"jester-1.csv has the rating 99, which is not"):
            fetch_jester(data_home=tmp_path)


def spreadsheet(rows, width=101):
    """Return the publisher's form of the same ratings: how many, then each or 99."""
    xlwt = pytest.importorskip("xlwt")
    book = xlwt.Workbook()
    sheet = book.add_sheet("jester-data-1-new")
    for i, row in enumerate(rows):
        sheet.write(i, 0, len(row))
        for n in range(1, width):
            sheet.write(i, n, row.get(n, 99))
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def zipped(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


class TestJesterSpreadsheet:
    @pytest.fixture(autouse=True)
    def _reader(self):
        pytest.importorskip("fastexcel")

    @pytest.mark.parametrize("file", ["jester-data-1.xls", "jester-data-1.zip"])
    def test_it_gives_what_the_table_gives(self, tmp_path, file):
        rows = TestJesterFolder.ROWS
        content = spreadsheet(rows)
        is_zip = file.endswith(".zip")
        (tmp_path / file).write_bytes(zipped({"jester-data-1.xls": content}) if is_zip else content)
        write(tmp_path / "table" / "jester-1.csv", jokes_text(rows))
        found = fetch_jester(None, data_home=tmp_path)
        table = fetch_jester(None, data_home=tmp_path / "table")
        assert found.wide().equals(table.wide())

    def test_one_that_is_damaged(self, tmp_path):
        (tmp_path / "jester-data-1.xls").write_bytes(spreadsheet([{1: 2.5}])[:2000])
        with pytest.raises(JointPMFError, match=r"xls cannot be read as a spreadsheet of numbers"):
            fetch_jester(data_home=tmp_path)

    def test_it_can_be_downloaded(self, tmp_path, monkeypatch):
        content = zipped({"jester-data-1.xls": spreadsheet(TestJesterFolder.ROWS)})
        with server({"/jester_dataset_1_1.zip": content}) as address:
            offer(monkeypatch, "jester", content, "http://127.0.0.1:9/gone.zip", address)
            assert fetch_jester(1, data_home=tmp_path).users.tolist() == [1, 2, 4]


@contextmanager
def server(files, declare=None):
    """Serve files on this machine only, and count what is asked for."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self):
            self.server.asked.append(self.path)
            content = files.get(self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Length", str(declare or len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_):
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.asked = []
    thread = threading.Thread(target=served.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Address(f"http://127.0.0.1:{served.server_port}", served.asked)
    finally:
        served.shutdown()
        served.server_close()
        thread.join(5)


class Address(str):
    """Where the server is, and what it was asked for."""

    __slots__ = ("asked",)

    def __new__(cls, text, asked):
        self = super().__new__(cls, text)
        self.asked = asked
        return self


def offer(monkeypatch, key, content, *addresses):
    """Register a file of this content; where only the server is named, under its own name."""
    one = downloads.ARCHIVES[key]
    addresses = [f"{a}/{one.file}" if isinstance(a, Address) else a for a in addresses]
    sha256 = hashlib.sha256(content).hexdigest()
    monkeypatch.setitem(
        downloads.ARCHIVES, key, Archive(one.file, one.unpacked, sha256, tuple(addresses))
    )
    return sha256


SMALL = zipped({"ml-latest-small/ratings.csv": RATINGS, "ml-latest-small/movies.csv": MOVIES})
FILE = "/ml-latest-small.zip"


class TestDownload:
    def fetched(self, home=None):
        return fetch_movielens("Romance", n_items=2, data_home=home)

    def test_it_is_kept_in_the_cache_and_needs_no_server_again(self, monkeypatch, capfd):
        with server({FILE: SMALL}) as address:
            offer(monkeypatch, "latest-small", SMALL, address)
            first = self.fetched()
            assert address.asked == [FILE]
        assert [path.name for path in pooch.os_cache("jointpmf").iterdir()] == [FILE[1:]]
        again = self.fetched()
        assert again.wide().equals(first.wide())
        assert capfd.readouterr() == ("", "")

    def test_a_home_that_lacks_it_is_filled(self, monkeypatch, tmp_path):
        home = tmp_path / "new" / "home"
        with server({FILE: SMALL}) as address:
            offer(monkeypatch, "latest-small", SMALL, address)
            self.fetched(home)
        assert os.listdir(home) == [FILE[1:]]
        assert self.fetched(home).n_ratings == 3

    def test_a_folder_of_the_environment_is_not_written_to(self, monkeypatch, tmp_path):
        home = tmp_path / "data"
        home.mkdir()
        monkeypatch.setenv("JOINTPMF_DATA", str(home))
        with server({FILE: SMALL}) as address:
            offer(monkeypatch, "latest-small", SMALL, address)
            self.fetched()
        assert os.listdir(home) == []

    def test_a_zip_in_the_folder_is_used(self, monkeypatch, tmp_path):
        (tmp_path / "ratings").mkdir()
        (tmp_path / "ratings" / FILE[1:]).write_bytes(SMALL)
        monkeypatch.setenv("JOINTPMF_DATA", str(tmp_path))
        offer(monkeypatch, "latest-small", SMALL, "http://127.0.0.1:9/")
        assert self.fetched().n_ratings == 3

    def test_a_wrong_sum_is_named_and_nothing_is_left(self, monkeypatch, tmp_path):
        with server({FILE: SMALL + b"more"}) as address:
            expected = offer(monkeypatch, "latest-small", SMALL, address)
            with pytest.raises(JointPMFError) as caught:
                self.fetched(tmp_path / "home")
        found = hashlib.sha256(SMALL + b"more").hexdigest()
        sentence = str(caught.value)
        assert sentence.startswith(f"ml-latest-small.zip from {address}{FILE} has the SHA-256 sum ")
        assert f"{found} instead of {expected}" in sentence
        assert "try again" in sentence
        assert os.listdir(tmp_path / "home") == []

    @pytest.mark.parametrize("in_cache", [True, False])
    @pytest.mark.parametrize(
        "content", [b"", SMALL[:100], SMALL[:-1] + b"x"], ids=["empty", "cut", "changed"]
    )
    def test_a_half_written_file_is_downloaded_again(
        self, monkeypatch, tmp_path, content, in_cache
    ):
        home = pooch.os_cache("jointpmf") if in_cache else tmp_path / "home"
        home.mkdir(parents=True)
        (home / FILE[1:]).write_bytes(content)
        with server({FILE: SMALL}) as address:
            offer(monkeypatch, "latest-small", SMALL, address)
            assert self.fetched(None if in_cache else home).n_ratings == 3
            assert address.asked == [FILE]
        assert (home / FILE[1:]).read_bytes() == SMALL

    def test_a_damaged_file_is_not_used_where_there_is_no_server(
        self, monkeypatch, tmp_path, caplog
    ):
        (tmp_path / FILE[1:]).write_bytes(SMALL[:-1])
        offer(monkeypatch, "latest-small", SMALL, "http://127.0.0.1:9/")
        with pytest.raises(JointPMFError, match="could not be downloaded"):
            self.fetched(tmp_path)
        assert "is damaged or of another release: its SHA-256 sum differs" in caplog.text
        assert (tmp_path / FILE[1:]).read_bytes() == SMALL[:-1]

    def test_a_connection_that_breaks_leaves_nothing(self, monkeypatch, tmp_path):
        with server({FILE: SMALL[:100]}, declare=len(SMALL)) as address:
            offer(monkeypatch, "latest-small", SMALL, address)
            with pytest.raises(JointPMFError, match="could not be downloaded from http://127"):
                self.fetched(tmp_path / "home")
        assert os.listdir(tmp_path / "home") == []

    def test_an_interrupt_leaves_nothing(self, monkeypatch, tmp_path):
        def interrupted(download, archive):
            def start(address, file, _):
                Path(file).write_bytes(SMALL[:100])
                raise KeyboardInterrupt

            return start

        monkeypatch.setattr(downloads, "_checked", interrupted)
        with pytest.raises(KeyboardInterrupt):
            self.fetched(tmp_path / "home")
        assert os.listdir(tmp_path / "home") == []

    def test_a_zip_that_its_publisher_truncated(self, monkeypatch, tmp_path):
        content = SMALL[:-40]
        with server({FILE: content}) as address:
            offer(monkeypatch, "latest-small", content, address)
            with pytest.raises(JointPMFError, match=r"ml-latest-small.zip is not a whole zip file"):
                self.fetched(tmp_path)

    def test_a_copy_is_tried_after_the_publisher(self, monkeypatch, tmp_path):
        with server({FILE: SMALL}) as address:
            offer(monkeypatch, "latest-small", SMALL, f"{address}/gone", address)
            assert self.fetched(tmp_path).n_ratings == 3
            assert address.asked == ["/gone", FILE]

    def test_a_page_that_is_gone(self, monkeypatch, tmp_path):
        with server({}) as address:
            offer(monkeypatch, "latest-small", SMALL, address)
            with pytest.raises(JointPMFError, match=r"\(HTTP status 404\): put it, or the"):
                self.fetched(tmp_path)

    @pytest.mark.parametrize(
        ("fetch", "file", "unpacked"),
        [
            (fetch_movielens, "ml-latest-small.zip", "ml-latest-small"),
            (fetch_jester, "jester_dataset_1_1.zip", "jester-data-1.xls"),
        ],
    )
    def test_offline_it_says_what_to_put_where(self, fetch, file, unpacked):
        match = (
            rf"^{file} could not be downloaded from .* \(ConnectionError\): put it, or the "
            rf"'{unpacked}' that it unpacks to, into a folder that you give as data_home or in "
            r"the environment variable JOINTPMF_DATA$"
        )
        with pytest.raises(JointPMFError, match=match):
            fetch()

    def test_what_cannot_be_downloaded_says_what_to_put_where(self):
        match = r"^'pooled' cannot be downloaded: put a folder 'movielens-pooled' with ratings.csv"
        with pytest.raises(JointPMFError, match=match):
            fetch_movielens(release="pooled")

    def test_without_pooch_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pooch", None)
        with pytest.raises(JointPMFError, match=r"needs the extra: pip install 'jointpmf\[paper"):
            fetch_movielens()


@needs_data
class TestThePapersTables:
    """The preparation in code gives the prepared tables, to the cell."""

    @pytest.mark.parametrize("genre", ["Action", "Animation", "Romance"])
    def test_movielens(self, genre):
        ratings = fetch_movielens(genre, 10, release="pooled", data_home=DATA)
        prepared = pl.read_csv(Path(DATA, "ratings", f"movielens_{genre.lower()}.csv.gz"))
        assert ratings.wide().equals(prepared.rename({"userId": "user"}))

    def test_jester(self):
        ratings = fetch_jester(data_home=DATA)
        prepared = pl.read_csv(Path(DATA, "ratings", "jester10.csv.gz"))
        assert ratings.wide().equals(prepared.rename({"userId": "user"}))
