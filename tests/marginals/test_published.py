"""Files of published tables: long and wide, of every kind, alone or listed in a tables.toml."""

import logging
import re
import sys

import numpy as np
import polars as pl
import pytest

import jointpmf as jp
from jointpmf import JointPMFError
from jointpmf.marginals.published import read_marginals
from jointpmf.marginals.tables_file import schema

PAIR = np.array([[30, 20, 10], [12, 8, 20]])
WIDE = {"vote": ["yes", "no"], "young": [30, 12], "middle": [20, 8], "old": [10, 20]}
LONG = (
    "vote,age,count\nyes,young,30\nyes,middle,20\nyes,old,10\nno,young,12\nno,middle,8\nno,old,20\n"
)


def put(folder, name, content):
    (folder / name).write_text(content)
    return str(folder / name)


def spreadsheet(path, *sheets):
    """Write sheets of rows of cells; None leaves a cell empty, as merging does."""
    xlwt = pytest.importorskip("xlwt")
    pytest.importorskip("fastexcel")
    book = xlwt.Workbook()
    for name, rows in sheets:
        sheet = book.add_sheet(name)
        for i, row in enumerate(rows):
            for k, cell in enumerate(row):
                if cell is not None:
                    sheet.write(i, k, cell)
    book.save(str(path))
    return str(path)


def rows_of(table):
    return [list(table), *map(list, zip(*table.values(), strict=True))]


def listed(folder, table, head="version = 1"):
    return put(folder, "tables.toml", f"{head}\n[[tables]]\n{table}\n")


def assert_pair(marginals):
    (marginal,) = marginals
    assert marginal.names == ("vote", "age")
    assert marginals.domain["age"].levels == ("young", "middle", "old")
    np.testing.assert_allclose(marginal.table, PAIR / PAIR.sum())
    assert marginal.n_obs == PAIR.sum()


class TestKinds:
    def test_long_text(self, tmp_path):
        assert_pair(read_marginals([put(tmp_path, "t.csv", LONG)]))
        assert_pair(read_marginals([put(tmp_path, "t.tsv", LONG.replace(",", "\t"))]))
        assert_pair(read_marginals([put(tmp_path, "s.csv", LONG.replace(",", ";"))]))

    def test_typed_files(self, tmp_path):
        table = pl.read_csv(LONG.encode())
        table.write_parquet(tmp_path / "t.parquet")
        table.write_ndjson(tmp_path / "t.ndjson")
        for name in ("t.parquet", "t.ndjson"):
            assert_pair(read_marginals([str(tmp_path / name)]))

    def test_text_with_a_byte_order_mark(self, tmp_path):
        assert_pair(read_marginals([put(tmp_path, "t.csv", f"\ufeff{LONG}")]))

    def test_numbers_that_two_files_write_differently(self, tmp_path):
        paths = [
            put(tmp_path, "t.csv", "size,vote,count\n1,yes,10\n2,no,30\n"),
            put(tmp_path, "u.csv", "size,count\n1.0,10\n2.0,5\n"),
        ]
        marginals = read_marginals(paths)
        assert marginals.domain["size"].levels == (1, 2)
        np.testing.assert_allclose(marginals[1].table, [2 / 3, 1 / 3])

    def test_wide_with_a_corner(self, tmp_path):
        text = pl.DataFrame(WIDE).write_csv().replace("vote", r"vote \ age")
        assert_pair(read_marginals([put(tmp_path, "t.csv", text)]))

    @pytest.mark.parametrize("corner", ["vote", ""])
    def test_wide_with_names(self, tmp_path, corner):
        put(tmp_path, "t.csv", pl.DataFrame(WIDE).write_csv().replace("vote", corner))
        assert_pair(read_marginals([listed(tmp_path, 'path="t.csv"\nnames=["vote", "age"]')]))

    def test_wide_with_two_columns_of_labels(self, tmp_path):
        put(tmp_path, "t.csv", "sex,vote,young,old\nf,yes,3,4\nf,no,5,6\nm,yes,7,8\nm,no,9,9\n")
        path = listed(tmp_path, 'path="t.csv"\nnames=["sex", "vote", "age"]')
        (marginal,) = read_marginals([path])
        assert marginal.names == ("sex", "vote", "age")
        np.testing.assert_allclose(marginal.table[0], np.array([[3, 4], [5, 6]]) / 51)

    def test_a_sheet(self, tmp_path):
        rows = rows_of({r"vote \ age": WIDE["vote"], **{k: WIDE[k] for k in list(WIDE)[1:]}})
        assert_pair(read_marginals([spreadsheet(tmp_path / "t.xls", ("one", rows))]))

    @pytest.mark.parametrize("sheet", ['"two"', "2"])
    def test_one_of_several_sheets_below_a_title(self, tmp_path, sheet):
        title = [["Votes by age, 2024"], [], *rows_of(WIDE)]
        spreadsheet(tmp_path / "t.xls", ("one", [["nothing"]]), ("two", title))
        more = f'sheet={sheet}\nskip=1\nnames=["vote", "age"]'
        assert_pair(read_marginals([listed(tmp_path, f'path="t.xls"\n{more}')]))

    def test_what_offices_print(self, tmp_path, caplog):
        caplog.set_level(logging.INFO, "jointpmf")
        text = (
            'vote \\ age;young;old;Total\nyes;"1,200";<6;"1,203"\nno;2 300;700;3 000\n'
            'Total;"3,500";703;"4,203"\n'
        )
        marginals = read_marginals([put(tmp_path, "t.csv", text)])
        (marginal,) = marginals
        assert (marginal.n_rows, marginal.bounds) == (4203, (0, 5))
        counts = np.array([[1200, np.nan], [2300, 700]])
        np.testing.assert_allclose(marginal.table * 4203, counts)
        assert "totals of 'age' were left out" in caplog.text


class TestList:
    def test_all_keys(self, tmp_path):
        put(tmp_path, "age.csv", "age,share\n0-4,20%\n5-9,30%\n10+,50%\n")
        put(tmp_path, "vote.csv", "vote,0-9,10+,Total\nyes,40.5,60.1,55\nno,59.5,39.9,45\n")
        put(tmp_path, "sub.csv", "vote,age,n\nyes,5-9,10\nno,10+,*\nyes,10+,30\n")
        toml = """
            version = 1
            [variables]
            age = ["0-4", "5-9", "10+"]
            [[tables]]
            path = "age.csv"
            value = "share"
            n_obs = 1000
            [[tables]]
            path = "vote.csv"
            layout = "wide"
            names = ["vote", "age"]
            given = ["age"]
            n_obs = { "0-9" = 400, "10+" = 600 }
            [tables.levels.age]
            "0-9" = ["0-4", "5-9"]
            [[tables]]
            path = "sub.csv"
            value = "n"
            where = { age = ["5-9", "10+"] }
            bounds = "<6"
        """
        age, vote, part = marginals = read_marginals([put(tmp_path, "tables.toml", toml)])
        assert marginals.domain["age"].levels == ("0-4", "5-9", "10+")
        assert (age.table.tolist(), age.n_rows) == ([0.2, 0.3, 0.5], 1000)
        assert vote.levels == {"age": [("0-4", "5-9"), "10+"]}
        assert vote.n_obs.tolist() == [400, 600]
        np.testing.assert_allclose(vote.table.sum(axis=0), 1)
        assert part.where == {"age": ("5-9", "10+")}
        assert part.bounds == (0, 5)

    def test_noise_rounding_and_what_cannot_happen(self, tmp_path):
        put(tmp_path, "t.csv", "sex,pregnant,count\nf,yes,120\nf,no,400\nm,yes,-3\nm,no,490\n")
        put(tmp_path, "u.csv", "sex,n,error\nf,50%,2\nm,50%,3\n")
        toml = """
            version = 1
            impossible = [{ sex = "m", pregnant = "yes" }]
            [[tables]]
            path = "t.csv"
            noise = 4
            [[tables]]
            path = "u.csv"
            value = "n"
            noise = "error"
            [[tables]]
            path = "u.csv"
            names = ["sex"]
            value = "n"
            rounding = 1
        """
        first, second, third = marginals = read_marginals([put(tmp_path, "tables.toml", toml)])
        assert marginals.impossible == ({"sex": "m", "pregnant": "yes"},)
        assert first.table.min() < 0 < first.noise.min()
        np.testing.assert_allclose(second.noise, [0.02, 0.03])
        assert third.rounding == pytest.approx(0.01)

    def test_levels_are_matched_as_the_list_spells_them(self, tmp_path):
        put(tmp_path, "t.csv", "size,vote,count\n2 ,yes,10\n1, no,30\n")
        head = "version = 1\n[variables]\nsize = [1, 2]\nvote = ['no', 'yes']"
        (marginal,) = read_marginals([listed(tmp_path, 'path = "t.csv"', head)])
        assert marginal.table.tolist() == [[0.75, 0], [0, 0.25]]

    def test_numbers_in_a_list_stand_for_levels_that_were_read(self, tmp_path):
        put(tmp_path, "t.csv", "size,vote,count\n1,yes,10\n2,no,30\n")
        put(tmp_path, "u.csv", "vote,count\nyes,10\nno,5\n")
        path = listed(tmp_path, 'path = "t.csv"\n[[tables]]\npath = "u.csv"\nwhere = {size = 2}')
        assert read_marginals([path])[1].where == {"size": 2}

    def test_a_list_and_a_file_together(self, tmp_path):
        put(tmp_path, "t.csv", LONG)
        more = put(tmp_path, "u.csv", "age,count\nyoung,4\nold,6\n")
        marginals = read_marginals([listed(tmp_path, 'path = "t.csv"'), more])
        assert len(marginals) == 2

    def test_the_schema_has_what_a_marginal_has(self):
        keys = set(schema()["properties"]["tables"]["items"]["properties"])
        reading = {"path", "sheet", "skip", "layout", "names", "value"}
        assert keys - reading == {
            *("levels", "where", "given", "n_obs", "noise", "rounding", "bounds")
        }

    def test_the_schema_says_nothing_that_is_not_checked(self):
        known = {
            *("$schema", "title", "description", "type", "enum", "const", "required", "items"),
            *("properties", "additionalProperties", "minItems", "minProperties"),
            *("minimum", "exclusiveMinimum"),
        }
        assert keywords(schema()) <= known


def keywords(rules):
    """Return all words of a schema that say something, without the names of keys."""
    if not isinstance(rules, dict):
        return set()
    parts = [
        *rules.get("properties", {}).values(),
        rules.get("items"),
        rules.get("additionalProperties"),
    ]
    return set(rules).union(*map(keywords, parts))


BAD_LISTS = [
    ("", "does not say its version: begin it with version = 1"),
    ("version = 2\ntables = []", "has version 2; this library reads 1"),
    ("version = true", "has version True"),
    ("version = '1'", "has version '1'"),
    ("version = 1", "tables.toml has no 'tables'"),
    ("version = 1\ntables = []", "'tables' of .*tables.toml must have at least 1 entries"),
    ("version = 1\ntables = 3", "'tables' of .* must be a list, not 3"),
    ("version = 1\ncolour = 3", "unknown key 'colour'|no 'tables'"),
    ("version = 1\ncolour = 3\n[[tables]]\npath = 't.csv'", "unknown key 'colour'; its keys are"),
    ("version = 1\n[[tables]]\nnames = ['a']", "table 1 of .*tables.toml has no 'path'"),
    (
        "version = 1\n[[tables]]\npath = 't.csv'\n[[tables]]\npath = 't.csv'\nnames = 'a'",
        "'names' of table 2 of .*tables.toml must be a list, not 'a'",
    ),
    ("version = 1\n[[tables]]\npath = 't.csv'\nnams = ['a']", "table 1 .* unknown key 'nams'"),
    ("version = 1\n[[tables]]\npath = 't.csv'\nnames = [3]", "entry 1 of 'names' of table 1"),
    ("version = 1\n[[tables]]\npath = 't.csv'\nlayout = 'tall'", "'long', 'wide', not 'tall'"),
    ("version = 1\n[[tables]]\npath = 't.csv'\nnoise = 0", "'noise' .* must be more than 0"),
    ("version = 1\n[[tables]]\npath = 't.csv'\nnoise = nan", "'noise' .* must be a number"),
    ("version = 1\n[[tables]]\npath = 't.csv'\nskip = -1", "'skip' .* must be at least 0"),
    ("version = 1\n[[tables]]\npath = 't.csv'\nn_obs = -1", "'n_obs' .* must be more than 0"),
    ("version = 1\n[[tables]]\npath = 'absent.csv'", "table 1 of .*absent.csv: No such file"),
    ("version = 1\n[[tables]]\npath = 't.csv'\nsheet = 'x'", "table 1 .* no spreadsheet"),
    ("version = 1\n[[tables]]\npath = 't.csv'\nwhere = {sex = 'f'}", "where names 'sex'"),
    ("version = 1\n[[tables]]\npath = 't.csv'\nwhere = {age = 'x'}", "table 1 .* no level 'x'"),
    ("version = 1\n[[tables]]\npath = 't.csv'\nwhere = {age = []}", "leaves nobody"),
    ("version = 1\n[[tables]]\npath = 't.csv'\nlevels = {age = ['x']}", "none of its labels"),
    ("version = 1\nimpossible = [{}]\n[[tables]]\npath = 't.csv'", "'impossible' .* is empty"),
    ("version = 1\nimpossible = [{a = 1}]\n[[tables]]\npath = 't.csv'", "impossible names 'a'"),
    (
        "version = 1\n[variables]\nage = ['young', 'old']\n[[tables]]\npath = 't.csv'",
        "table 1 .* 'age' has no level 'middle'",
    ),
    (
        "version = 1\n[variables]\nage = ['no', 'yes']\nvote = ['young', 'middle', 'old']\n"
        "[[tables]]\npath = 't.csv'",
        "labels of 'vote' .* are levels of 'age': give names in the order",
    ),
    (
        "version = 1\n[[tables]]\npath = 't.csv'\n[[tables]]\npath = 't.csv'\n"
        "levels = {age = {young = ['yuong', 'middle']}}",
        "table 2 of .*: levels of 'age' name 'yuong', which no other table has",
    ),
    ("version = ", "cannot read .*tables.toml: Invalid value"),
]


@pytest.mark.parametrize(("content", "says"), BAD_LISTS)
def test_bad_lists(tmp_path, content, says):
    put(tmp_path, "t.csv", LONG)
    path = put(tmp_path, "tables.toml", content)
    with pytest.raises(JointPMFError) as error:
        read_marginals([path])
    assert re.search(says, str(error.value)), error.value
    assert "\n" not in str(error.value)


class TestBadFiles:
    def test_no_list(self, tmp_path):
        with pytest.raises(JointPMFError, match=r"tables.toml: No such file"):
            read_marginals([str(tmp_path / "tables.toml")])

    def test_a_sheet_with_merged_headers(self, tmp_path):
        rows = [["vote", "age", None, None], [None, "young", "middle", "old"], ["yes", 3, 2, 1]]
        path = spreadsheet(tmp_path / "t.xls", ("one", rows))
        with pytest.raises(JointPMFError, match=r"column 3 of .*t.xls has no name: merged cells"):
            read_marginals([listed(tmp_path, f'path="{path}"\nnames=["vote", "age"]')])

    def test_a_csv_with_merged_headers(self, tmp_path):
        put(tmp_path, "t.csv", "vote,age,,\n,young,middle,old\nyes,3,2,1\n")
        with pytest.raises(JointPMFError, match=r"column 3 of .*t.csv has no name: merged cells"):
            read_marginals([listed(tmp_path, 'path="t.csv"\nnames=["vote", "age"]')])

    def test_merged_labels(self, tmp_path):
        put(tmp_path, "t.csv", "sex,vote,count\nf,yes,3\n,no,2\n")
        with pytest.raises(JointPMFError, match=r"has no 'sex' in row 1: if its cells are merged"):
            read_marginals([str(tmp_path / "t.csv")])

    def test_columns_of_an_unknown_variable(self, tmp_path):
        path = put(tmp_path, "t.csv", pl.DataFrame(WIDE).write_csv())
        with pytest.raises(JointPMFError, match=r'write "vote \\ other" in the first cell'):
            read_marginals([path])

    def test_several_sheets(self, tmp_path):
        path = spreadsheet(tmp_path / "t.xls", ("one", [["a"]]), ("two", [["a"]]))
        with pytest.raises(JointPMFError, match=r"the sheets 'one', 'two': say which"):
            read_marginals([path])
        with pytest.raises(JointPMFError, match=r"no sheet 'three' but the sheets 'one', 'two'"):
            read_marginals([listed(tmp_path, 'path="t.xls"\nsheet="three"')])

    def test_no_spreadsheet(self, tmp_path):
        pytest.importorskip("fastexcel")
        with pytest.raises(JointPMFError, match=r"t.xlsx cannot be read as a spreadsheet"):
            read_marginals([put(tmp_path, "t.xlsx", "junk")])
        with pytest.raises(JointPMFError, match=r"absent.xlsx: No such file"):
            read_marginals([str(tmp_path / "absent.xlsx")])

    def test_an_empty_sheet(self, tmp_path):
        with pytest.raises(JointPMFError, match=r"t.xls has no rows"):
            read_marginals([spreadsheet(tmp_path / "t.xls", ("one", []))])

    def test_a_spreadsheet_without_its_reader(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "fastexcel", None)
        with pytest.raises(JointPMFError, match=r"needs the extra: pip install 'jointpmf\[excel"):
            read_marginals([put(tmp_path, "t.xlsx", "")])

    def test_all_cells_suppressed(self, tmp_path):
        with pytest.raises(JointPMFError, match=r"all cells of .*t.csv are suppressed"):
            read_marginals([put(tmp_path, "t.csv", "a,count\nx,*\ny,..\n")])

    def test_a_total_of_less_than_what_is_shown(self, tmp_path):
        with pytest.raises(JointPMFError, match=r"is 20, less than the 30 that are shown"):
            read_marginals([put(tmp_path, "t.csv", "a,count\nx,10\ny,20\nz,<6\nTotal,20\n")])

    def test_row_percentages_that_do_not_say_so(self, tmp_path):
        text = "vote,age,probability\nyes,young,60\nyes,old,30\nno,young,40\nno,old,70\n"
        with pytest.raises(JointPMFError, match=r"within each level of 'age': give given=\['age'"):
            read_marginals([put(tmp_path, "t.csv", text)])

    def test_tables_that_have_no_level_in_common(self, tmp_path):
        paths = [
            put(tmp_path, "t.csv", LONG),
            put(tmp_path, "u.csv", "age,vote,count\nyes,young,3\nno,old,5\n"),
        ]
        with pytest.raises(JointPMFError, match=r"no level in common .* names"):
            read_marginals(paths)


class TestDomain:
    def test_tables_in_the_levels_of_a_model(self, tmp_path):
        domain = jp.Domain(
            [
                jp.Variable("age", ("old", "middle", "young")),
                jp.Variable("sex", ("f", "m")),
                jp.Variable("vote", ("no", "yes")),
            ]
        )
        marginals = read_marginals([put(tmp_path, "t.csv", LONG)], domain=domain)
        assert marginals.domain == domain.project(["age", "vote"])
        np.testing.assert_allclose(marginals[0].table, PAIR[::-1, ::-1].T / PAIR.sum())

    def test_a_variable_that_the_model_does_not_have(self, tmp_path):
        domain = jp.Domain([jp.Variable("age", ("old", "middle", "young"))])
        with pytest.raises(JointPMFError, match=r"t.csv is about 'vote', but the model's"):
            read_marginals([put(tmp_path, "t.csv", LONG)], domain=domain)


def test_a_model_of_a_list_is_that_of_its_tables(tmp_path):
    put(tmp_path, "t.csv", LONG)
    marginals = read_marginals([listed(tmp_path, 'path = "t.csv"')])
    solution = jp.fit_marginals(marginals, rank=2, random_state=0)
    np.testing.assert_allclose(solution.pmf.table(), PAIR / PAIR.sum(), atol=2e-3)
