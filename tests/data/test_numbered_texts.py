"""Texts that Polars numbers while it reads them."""

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.data.file_codes import codes_in
from jointpmf.data.learned_codes import LearnedCodes
from jointpmf.data.numbered_texts import NumberedTexts
from jointpmf.data.table_files import open_table, open_tables
from jointpmf.threads import limited_to


class Filling(dict):
    """Categories of which threads that read ahead have not yet stored all."""

    def __missing__(self, number):
        raise IndexError(number)


def test_a_number_whose_text_comes_later():
    numbered = NumberedTexts(["NA"])
    numbered._categories = Filling({1: "b", 3: "NA"})
    assert numbered.codes(pl.Series([3, 1, 1], dtype=pl.UInt32)).tolist() == [-1, 1, 1]
    numbered._categories |= {0: "a", 2: "NaN"}
    assert numbered.codes(pl.Series([0, 3, 2], dtype=pl.UInt32)).tolist() == [0, -1, 2]
    assert numbered.texts == ["a", "b", "NaN", None]
    assert numbered.n_observed == 4


@pytest.mark.parametrize(
    ("missing_code", "observed"),
    [(None, ["9", " 9.0 ", "x"]), (9, ["x"]), ("9", [" 9.0 ", "x"]), ("x", ["9", " 9.0 "])],
)
def test_what_means_missing(missing_code, observed):
    numbered = NumberedTexts((), missing_code)
    cells = pl.Series(["9", " 9.0 ", None, "x"], dtype=numbered.dtype)
    codes = numbered.codes(cells.to_physical().fill_null(2**32 - 1))
    assert [numbered.texts[code] for code in codes if code >= 0] == observed


def written(folder, name, cells):
    (folder / name).write_text("\n".join(["a", *cells]) + "\n")
    return folder / name


def test_texts_that_mean_missing_in_several_files(tmp_path):
    paths = [
        written(tmp_path, "1.csv", ["?", "yes", '"NA"', "no"]),
        written(tmp_path, "2.csv", ["no", "null", "?", ""]),
    ]
    with open_tables(paths, ["?"]) as table:
        learned = LearnedCodes(table, ["a"], {})
        found = np.concatenate([codes.array[:, 0] for codes, _ in learned.batches()])
        beside = [codes.array[:, 0] for codes, _ in codes_in(table, learned.domain)]
    assert learned.domain["a"].levels == ("no", "yes")
    assert found.tolist() == [-1, 1, -1, 0, 0, -1, -1, -1]
    np.testing.assert_array_equal(found, np.concatenate(beside))


def test_of_too_many_texts_those_count_whose_rows_were_read(tmp_path):
    path = written(tmp_path, "t.csv", [f"t{k:07}" for k in range(140_000)])
    with (
        limited_to(4),
        open_table(str(path), batch_bytes=9 * 15_000) as table,
        pytest.raises(jp.JointPMFError, match="column 'a' has 105000 different texts, too many"),
    ):
        LearnedCodes(table, ["a"], {})
