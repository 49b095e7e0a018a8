"""Whatever goes in, through the command or the library: one sentence, code 2, nothing half-written.

The command runs in this process, as `jointpmf.command.main.main` with its arguments, so that the
many cases are quick; test_main.py runs the installed one.
"""

import gzip
import io
import json
import pickle
import re
import resource
import struct
import sys

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save

import jointpmf as jp
from jointpmf.command.main import main
from jointpmf.model_file import domain_to_json
from jointpmf.tensor_file import checksum_of

DOMAIN = jp.Domain(
    [
        jp.Variable("party", ("left", "right")),
        jp.Variable("age", ("<30", "30..60"), values=(20, 45), edges=(0, 30, 60)),
        jp.Variable("rating", (1, 2, 3)),
    ]
)
ROWS = b"party,age,rating\nleft,20,1\nright,40,2\n,50,3\nleft,10,\nright,55,3\nleft,33,1\n"
ONE_SIDED = jp.JointPMF(DOMAIN, [1.0], [[[1.0], [0.0]], [[0.5], [0.5]], [[0.5], [0.25], [0.25]]])


def header(tensors, metadata=None):
    content = json.dumps({"__metadata__": metadata or {"format": "jointpmf"}, **tensors}).encode()
    return struct.pack("<Q", len(content)) + content


def tensor(shape, begin, end, dtype="F64"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def model(**metadata):
    """Return the bytes of a model with other metadata, in which nothing else is wrong."""
    pmf = ONE_SIDED
    tensors = {"weights": pmf.weights} | {f"factor.{n}": f for n, f in enumerate(pmf.factors)}
    texts = {
        "format": "jointpmf",
        "version": "1",
        "domain": domain_to_json(DOMAIN),
        "about": "{}",
    } | metadata
    checksum = checksum_of([texts["domain"], texts["about"]], tensors.values())
    return save(tensors, {"checksum": checksum, **texts})


MODELS = {
    "good.safetensors": model(),
    "empty.safetensors": b"",
    "short.safetensors": b"\x10\0\0",
    "truncated.safetensors": model()[:-8],
    "half-header.safetensors": model()[:100],
    "longer.safetensors": model() + b"\0",
    "pickle.safetensors": pickle.dumps({"weights": [1.0]}),
    "claims-10GB.safetensors": header({"weights": tensor([10**9], 0, 8 * 10**9)}),
    "overflow.safetensors": header({"weights": tensor([2**62, 2**62], 0, 8)}) + bytes(8),
    "negative.safetensors": header({"weights": tensor([1], 0, -8)}) + bytes(8),
    "text-offset.safetensors": header({"weights": tensor([1], 0, "8")}) + bytes(8),
    "no-tensor.safetensors": header({}),
    "huge-header.safetensors": struct.pack("<Q", 2**62) + b"{}",
    "deep.safetensors": struct.pack("<Q", 50_000) + b"[" * 50_000,
    "list.safetensors": struct.pack("<Q", 2) + b"[]",
    "bfloat.safetensors": header({"weights": tensor([4], 0, 8, "BF16")}) + bytes(8),
    "zero.safetensors": header({"weights": tensor([0, 2**40], 0, 0)}),
    "other.safetensors": save({"a": np.ones(1)}, {"format": "pt"}),
    "bare.safetensors": save({"a": np.ones(1)}),
    "future.safetensors": model(version="2"),
    "bad-about.safetensors": model(about="[1]"),
    "number-about.safetensors": model(about='{"rows": 3}'),
    "other-subsets.safetensors": model(about=json.dumps({"subsets": '[["colour"]]'})),
    "changed.safetensors": model(checksum="0" * 64),
    "no-domain.safetensors": model(domain="null"),
    "overflowing-level.safetensors": model(
        domain=json.dumps(
            {
                "variables": [
                    {"name": "a", "levels": [10**400], "values": None, "edges": [10**400, 1]}
                ]
            }
        )
    ),
}

TABLES = {
    "rows.csv": ROWS,
    "empty.csv": b"",
    "header.csv": b"party,age,rating\n",
    "ragged.csv": b"party,age\nleft,1\nright,2,3\n",
    "twice.csv": b"party,age,party\nleft,1,right\n",
    "nameless.csv": b",party\n0,left\n1,right\n0,left\n",
    "junk.csv": bytes(range(256)) * 20,
    "latin.csv": "party\nlinks\nmöglich\n".encode("latin1"),
    "pickle.csv": pickle.dumps([1, 2, 3]),
    "junk.parquet": b"PAR1 and then nothing of the kind PAR1",
    "short.parquet": b"PA",
    "junk.ndjson": b'{"party": "left"}\n{"party": \n',
    "nested.ndjson": b'{"party": ["left", "right"]}\n{"party": ["left"]}\n',
    "junk.arrow": b"ARROW1 and then nothing of the kind",
    "half.arrow": b"ARROW1",
    "junk.xlsx": b"PK\x03\x04 and then nothing of the kind",
    "sheet.dat": b"PK\x03\x04 and then nothing of the kind",
    "list.txt": b'[{"party": "left"}]',
    "cut.csv.gz": gzip.compress(ROWS * 5000)[:-30],
    "many-numbers.csv": "\n".join(["x", *(f"{k / 7}" for k in range(500))]).encode(),
    "ids.csv": "\n".join(["id", *(f"person {k}" for k in range(500))]).encode(),
    "no-cell.csv": b"a,b\n1,\n2,\n",
    "unknown-level.csv": b"party,age,rating\nleft,20,1\ngreen,20,1\n",
    "unknown-number.csv": b"party,age,rating\nleft,20,1\nleft,20,9\n",
    "outside.csv": b"party,age\nleft,20\nleft,99\n",
    "text-age.csv": b"party,age\nleft,20\nleft,old\n",
    "other-columns.csv": b"colour\nred\n",
    "pairs.csv": b"party,rating,count\nleft,1,10\nright,2,10\nleft,3,7\n",
    "weights.csv": b"party,low,inf,none\nleft,1,1,0\nright,-1,inf,0\n",
    "no-measure.csv": b"party,rating\nleft,1\n",
    "only-measure.csv": b"count\n1\n",
    "text-count.csv": b"party,rating,count\nleft,1,many\n",
    "no-count.csv": b"party,rating,count\nleft,1,\n",
    "negative-count.csv": b"party,rating,count\nleft,1,-3\nright,2,10\n",
    "zero-count.csv": b"party,rating,count\nleft,1,0\n",
    "twice-count.csv": b"party,rating,count\nleft,1,3\nleft,1,4\n",
    "not-one.csv": b"party,rating,probability\nleft,1,0.3\nright,1,0.2\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("input")
    for name, content in (MODELS | TABLES).items():
        (path / name).write_bytes(content)
    (path / "directory.csv").mkdir()
    pl.DataFrame({"party": [[1, 2], [3]]}).write_parquet(path / "lists.parquet")
    return path


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def fit(data, *more):
    return ["fit", data, "-o", "new.safetensors", "--rank", "1", *more]


def fit_marginals(*more):
    return ["fit", "--marginals", "-o", "new.safetensors", "--rank", "1", *more]


def ask(*more):
    return ["query", "good.safetensors", *more]


def identify(sizes, rank=2, *more):
    return ["identify", "--sizes", sizes, "--rank", str(rank), *more]


IMPUTE = ["impute", "good.safetensors", "rows.csv"]
SCORE = ["score", "good.safetensors", "rows.csv"]
POPULATION = ["population", "good.safetensors", "-n"]


def worst(count):
    return [*SCORE, "--worst", str(count)]


BAD_MODELS = [
    ("empty.safetensors", "does not begin with a header"),
    ("short.safetensors", "does not begin with a header"),
    ("truncated.safetensors", "not a whole model file"),
    ("half-header.safetensors", "its header is not JSON"),
    ("longer.safetensors", "not a whole model file"),
    ("pickle.safetensors", "not a model file"),
    ("claims-10GB.safetensors", "not a whole model file"),
    ("overflow.safetensors", "not a model file"),
    ("negative.safetensors", "not a whole model file"),
    ("text-offset.safetensors", "not a whole model file"),
    ("no-tensor.safetensors", "not a whole model file"),
    ("huge-header.safetensors", "does not begin with a header"),
    ("deep.safetensors", "not JSON"),
    ("list.safetensors", "not a JSON object"),
    ("bfloat.safetensors", "of a type that no model file has"),
    ("zero.safetensors", "has format version None"),
    ("other.safetensors", "not a jointpmf model"),
    ("bare.safetensors", "not a jointpmf model"),
    ("future.safetensors", "format version '2'"),
    ("bad-about.safetensors", "says about its model"),
    ("number-about.safetensors", "says about its model"),
    ("changed.safetensors", "checksum"),
    ("no-domain.safetensors", "domain .* cannot be read"),
    ("overflowing-level.safetensors", "domain .* cannot be read"),
    ("absent.safetensors", "No such file or directory"),
    ("directory.csv", "Is a directory"),
    ("rows.csv", "not a model file"),
    ("a\0b", "null"),
]

BAD_COMMANDS = [
    ("no such command", ["dance"], "no such command 'dance'"),
    ("no such option", ["info", "--loud"], "no such option"),
    ("nothing to fit", ["fit"], "missing"),
    ("no output", ["fit", "rows.csv"], "'--output'"),
    ("absent data", fit("absent.csv"), "absent.csv: No such file or directory"),
    ("a null character", fit("a\0.csv"), "null"),
    ("a directory", fit("directory.csv"), "directory.csv: the folder holds no file"),
    ("two tables", fit("rows.csv", "pairs.csv"), "one table of rows, not 2"),
    ("empty", fit("empty.csv"), "empty.csv is empty"),
    ("header only", fit("header.csv"), "header.csv has no rows"),
    ("header only, binned", fit("header.csv", "--bins", "age=2"), "header.csv has no rows"),
    ("ragged", fit("ragged.csv"), "more cells than the header"),
    ("a header twice", fit("twice.csv"), "names 'party' twice"),
    ("no header", fit("nameless.csv"), "column 1 of nameless.csv has no name"),
    ("binary junk", fit("junk.csv"), "neither text in UTF-8"),
    ("another encoding", fit("latin.csv"), "neither text in UTF-8"),
    ("a pickle", fit("pickle.csv"), "cannot read pickle.csv|UTF-8"),
    ("junk Parquet", fit("junk.parquet"), "cannot read junk.parquet"),
    ("short Parquet", fit("short.parquet"), "cannot read short.parquet"),
    ("junk NDJSON", fit("junk.ndjson"), "cannot read junk.ndjson"),
    ("a JSON list", fit("list.txt"), "one object per line"),
    ("lists as cells", fit("nested.ndjson"), "'party' holds cells that cannot be levels"),
    ("lists in Parquet", fit("lists.parquet"), "'party' holds cells that cannot be levels"),
    ("half an archive", fit("cut.csv.gz"), "cannot read cut.csv.gz"),
    ("continuous", fit("many-numbers.csv"), '--bins "x=8"'),
    ("identifiers", fit("ids.csv"), '--drop "id"'),
    ("a column without cells", fit("no-cell.csv"), "'b' has no observed cell"),
    ("an unknown column dropped", fit("rows.csv", "--drop", "colour"), "no column 'colour'"),
    ("an unknown column only", fit("rows.csv", "--only", "colour"), "no column 'colour'"),
    ("nothing left", fit("rows.csv", "--only", "age", "--drop", "age"), "no columns are left"),
    ("bins without a number", fit("rows.csv", "--bins", "age"), "write name=8"),
    ("bins of text", fit("rows.csv", "--bins", "age=many"), "'many'"),
    ("bins of nothing", fit("rows.csv", "--bins", "age=0"), "at least one bin"),
    ("edges that fall", fit("rows.csv", "--bins", "age=9,1"), "'age' must increase"),
    ("edges that miss", fit("rows.csv", "--bins", "age=0,30"), "outside of its bins"),
    ("bins of no column", fit("rows.csv", "--bins", "size=3"), "no variable 'size'"),
    ("bins of words", fit("rows.csv", "--bins", "party=2"), "'party' cannot be binned"),
    ("bins twice", fit("rows.csv", "--bins", "age=2", "--bins", "age=3"), "'age' are given twice"),
    ("a scale of one level", fit("rows.csv", "--levels", "left"), "as a<b<c, not 'left'"),
    ("a scale with a gap", fit("rows.csv", "--levels", "left<<right"), "as a<b<c"),
    (
        "a scale that misses a level",
        fit("rows.csv", "--levels", "left<centre"),
        "misses the level 'right' of column 'party'",
    ),
    (
        "a scale that misses a number",
        fit("rows.csv", "--levels", "rating=3<2"),
        "misses the level 1 of column 'rating'",
    ),
    (
        "scales twice",
        fit("rows.csv", "--levels", "party=left<right", "--levels", "party=right<left"),
        "levels of 'party' are given twice",
    ),
    ("scales of marginals", fit_marginals("pairs.csv", "--levels", "a<b"), "belong to rows"),
    ("a rank of zero", fit("rows.csv", "--rank", "0"), "rank must be auto or a whole number"),
    ("a rank of text", fit("rows.csv", "--rank", "two"), "not 'two'"),
    ("negative smoothing", fit("rows.csv", "--smoothing", "-1"), "smoothing"),
    ("no budget", fit("rows.csv", "--rank", "auto", "--max-iter", "-1"), "max_iter"),
    ("a negative budget", fit("rows.csv", "--max-iter", "-5"), "max_iter"),
    ("a seed of text", fit("rows.csv", "--seed", "x"), "'--seed'"),
    ("a negative seed", fit("rows.csv", "--seed", "-1"), "'--seed'"),
    ("weights of no column", fit("rows.csv", "--weights", "size"), "no column 'size'"),
    ("weights of text", fit("rows.csv", "--weights", "party"), "'party' holds 'left' in row 0"),
    ("a weight missing", fit("rows.csv", "--weights", "rating"), "'rating' holds no .* row 3"),
    ("a negative weight", fit("weights.csv", "--weights", "low"), "'low' holds '-1' in row 1"),
    ("an endless weight", fit("weights.csv", "--weights", "inf"), "'inf' holds 'inf' in row 1"),
    ("all weights zero", fit("weights.csv", "--weights", "none"), "'none' are all zero"),
    ("weights only", fit("rows.csv", "--weights", "age", "--only", "age"), "'age' cannot be a var"),
    ("no start", fit("rows.csv", "--starts", "0"), "'--starts'"),
    ("starts of text", fit("rows.csv", "--starts", "few"), "'--starts'"),
    ("starts for any rank", fit("rows.csv", "--rank", "auto", "--starts", "3"), "a given --rank"),
    ("another criterion", fit("rows.csv", "--criterion", "dic"), "not 'dic'"),
    ("a criterion and a rank", fit("rows.csv", "--criterion", "bic"), "several ranks, .* not 1"),
    ("ranks without criterion", fit("rows.csv", "--rank", "1-3"), "such as 1-8, need --criterion"),
    ("ranks of text", fit("rows.csv", "--classes", "--rank", "few"), "not 'few'"),
    ("ranks that fall", fit("rows.csv", "--classes", "--rank", "3-1"), "not '3-1'"),
    ("two criteria", fit("rows.csv", "--classes", "--criterion", "aic"), "is --criterion bic"),
    ("classes saved", fit("rows.csv", "--classes", "--checkpoint", "c"), "--checkpoint does not"),
    ("weighted tables", fit_marginals("pairs.csv", "--weights", "count"), "belong to rows"),
    ("starts of tables", fit_marginals("pairs.csv", "--starts", "3"), "belong to rows"),
    ("classes of tables", fit_marginals("pairs.csv", "--classes"), "belong to rows"),
    ("nowhere to write", ["fit", "rows.csv", "-o", "none/m"], "no directory"),
    (
        "a checkpoint in its place",
        ["fit", "rows.csv", "-o", "x", "--checkpoint", "./x"],
        "folder of",
    ),
    ("a directory to write", ["fit", "rows.csv", "-o", "directory.csv"], "is a directory"),
    ("a full disk", ["fit", "rows.csv", "--rank", "1", "-o", "/dev/full"], "No space left"),
    ("binned marginals", fit_marginals("pairs.csv", "--bins", "age=3"), "belong to rows"),
    ("no measure", fit_marginals("no-measure.csv"), "'count' or 'probability', not 'rating'"),
    ("only a measure", fit_marginals("only-measure.csv"), "a column per variable"),
    ("a count of text", fit_marginals("text-count.csv"), "text-count.csv holds 'many'"),
    ("no count", fit_marginals("no-count.csv"), "no-count.csv are suppressed"),
    ("a negative count", fit_marginals("negative-count.csv"), "negative"),
    ("all counts zero", fit_marginals("zero-count.csv"), "zero everywhere"),
    ("a cell twice", fit_marginals("twice-count.csv"), "a cell twice"),
    ("probabilities of a half", fit_marginals("not-one.csv"), "sum to 0.5"),
    ("an absent table", fit_marginals("pairs.csv", "absent.csv"), "absent.csv: No such file"),
    ("an absent list", ["check", "absent.toml"], "absent.toml: No such file"),
    ("nothing to check", ["check"], "missing"),
    ("a table to check of text", ["check", "text-count.csv"], "holds 'many'"),
    ("nothing asked", ask(), "'--of'"),
    ("an unknown variable", ask("--of", "colour"), "no variable 'colour'"),
    ("a variable twice", ask("--of", "age", "--of", "age"), "'age' twice"),
    ("asked and given", ask("--of", "age", "--given", "age=20"), "both asked for and given"),
    ("no level", ask("--of", "age", "--given", "party"), "write name=level"),
    ("an unknown level", ask("--of", "age", "--given", "party=green"), "no level 'green'"),
    ("one unknown of two", ask("--of", "age", "--given", "party=left|green"), "'green'"),
    ("an unknown evidence", ask("--of", "age", "--given", "colour=red"), "no variable 'colour'"),
    ("outside of all bins", ask("--of", "party", "--given", "age=99"), "no level '99'"),
    (
        "a contradiction",
        ask("--of", "age", "--given", "party=left", "--given", "party=right"),
        "'party' is given twice",
    ),
    ("the impossible", ask("--of", "age", "--given", "party=right"), "probability zero"),
    ("the top none", ask("--of", "age", "--top", "0"), "'--top'"),
    ("a negative number", ["sample", "good.safetensors", "-n", "-1"], "'--rows'"),
    ("an impossible draw", ["sample", "good.safetensors", "--given", "party=right"], "zero"),
    ("an unknown kind", ["sample", "good.safetensors", "-o", "out.docx"], "must end in"),
    ("another kind of sheet", ["sample", "good.safetensors", "-o", "out.ods"], "must end in"),
    ("a squeezed sheet", ["sample", "good.safetensors", "-o", "out.xlsx.gz"], "must end in"),
    ("a squeezed Arrow file", ["sample", "good.safetensors", "-o", "o.arrow.gz"], "must end in"),
    ("junk Arrow", fit("junk.arrow"), "cannot read junk.arrow"),
    ("half an Arrow file", fit("half.arrow"), "cannot read half.arrow"),
    ("a junk sheet", fit("junk.xlsx"), "junk.xlsx cannot be read as a spreadsheet"),
    ("a sheet without its name", fit("sheet.dat"), "looks like a spreadsheet"),
    ("a device", fit("/dev/zero"), "/dev/zero: it is a device, not a file"),
    ("a random device", fit("/dev/urandom"), "/dev/urandom: it is a device"),
    ("a device to score", ["score", "good.safetensors", "/dev/zero"], "it is a device"),
    ("a device to fill", ["impute", "good.safetensors", "/dev/zero"], "it is a device"),
    ("a device of classes", ["classes", "good.safetensors", "/dev/zero"], "it is a device"),
    ("a device of tables", fit_marginals("/dev/zero"), "it is a device"),
    ("a device to check", ["check", "/dev/zero"], "it is a device"),
    ("a device of a model", ["info", "/dev/zero"], "not a model file"),
    ("an empty device", fit("/dev/null"), "/dev/null is empty"),
    ("bins beyond memory", fit("rows.csv", "--bins", f"age={10**20}"), r"10\^20 bins of 'age'"),
    ("bins as a float", fit("rows.csv", "--bins", "age=1e20"), "whole number or edges .*'1e20'"),
    ("a rank of a fit", fit("rows.csv", "--rank", str(10**12)), "would take 7.28 TiB, more memory"),
    ("a rank of digits", fit("rows.csv", "--rank", str(10**25)), r"rank 10\^25 would take"),
    ("starts of digits", fit("rows.csv", "--starts", str(10**15)), "'--starts'"),
    ("replicates of digits", fit("rows.csv", "--replicates", str(10**15)), "'--replicates'"),
    ("the worst 1e20", worst("1e20"), "'--worst'"),
    ("the worst of digits", worst(10**20), "'--worst': .* less than or equal to 1000000000"),
    ("the worst none", worst(0), "'--worst'"),
    ("draws of digits", [*IMPUTE, "--draws", str(10**20)], "'--draws'"),
    ("rows beyond memory", ["sample", "good.safetensors", "-n", str(10**15)], "35.5 PiB"),
    ("rows of many digits", ["sample", "good.safetensors", "-n", str(10**30)], r"10\^30 rows"),
    ("people beyond memory", [*POPULATION, str(10**15)], r"10\^15 rows would take 35.5 PiB"),
    ("half a person", [*POPULATION, "0.5"], "'--rows'"),
    ("sizes beyond memory", identify(f"{10**12},2"), "1,000,000,000,002 levels would take 127 TiB"),
    ("a rank to identify", identify("2,2,2", 10**12), "would take 43.7 TiB"),
    ("an order to identify", identify("2,2,2", 2, "--order", str(10**20)), "there are 3"),
    ("a long name", ask("--of", "n" * 5000), "^.{0,420}$"),
    ("a long level", ask("--of", "age", "--given", "party=" + "n" * 5000), "^.{0,420}$"),
    ("a long path", fit("n" * 5000), "^.{0,420}$"),
    ("a long option", fit("rows.csv", "--criterion", "n" * 5000), "^.{0,420}$"),
    ("a long command", ["n" * 5000], "^.{0,420}$"),
    ("a name of two lines", ask("--of", "a\nb"), r"no variable 'a\\nb'"),
    ("a path of two lines", fit("a\nb.csv"), "cannot read a b.csv"),
    ("half a character", fit("\udcff.csv"), "cannot read .*.csv: No such file"),
    ("filled onto itself", [*IMPUTE, "-o", "rows.csv"], "or say --in-place"),
    ("scored onto itself", [*SCORE, "-o", "rows.csv"], "would replace the data rows.csv"),
    ("fitted onto itself", ["fit", "rows.csv", "-o", "rows.csv"], "would replace the data"),
    ("a squeezed Parquet", ["sample", "good.safetensors", "-o", "o.parquet.gz"], "must end in"),
    ("a full disk for rows", ["sample", "good.safetensors", "-o", "/dev/full"], "No space left"),
    (
        "an unknown level to fill",
        ["impute", "good.safetensors", "unknown-level.csv"],
        "'party' holds 'green' in row 1",
    ),
    (
        "an unknown number to score",
        ["score", "good.safetensors", "unknown-number.csv"],
        "'rating' holds '9' in row 1",
    ),
    ("outside of the bins", ["score", "good.safetensors", "outside.csv"], "'99' in row 1"),
    ("a text for a number", ["score", "good.safetensors", "text-age.csv"], "'old' in row 1"),
    ("other columns", ["score", "good.safetensors", "other-columns.csv"], "none of the variables"),
    (
        "an unknown strategy",
        ["impute", "good.safetensors", "rows.csv", "--strategy", "hope"],
        "not 'hope'",
    ),
    ("an unknown way", ["impute", "good.safetensors", "rows.csv", "--unknown", "x"], "not 'x'"),
    ("both from stdin", ["score", "-", "-"], "cannot both come from stdin"),
    (
        "filled to nowhere",
        ["impute", "good.safetensors", "rows.csv", "-o", "none/o.csv"],
        "No such file or directory",
    ),
    ("half filled", ["impute", "good.safetensors", "unknown-level.csv", "-o", "half.csv"], "green"),
    ("no sizes", ["identify"], "a model or --sizes"),
    ("sizes and a model", ["identify", "good.safetensors", "--sizes", "2,2"], "either"),
    ("sizes without rank", ["identify", "--sizes", "2,2"], "needs --rank"),
    ("tables of no variable", ["identify", "other-subsets.safetensors"], "cannot be read in its"),
    ("sizes of text", ["identify", "--sizes", "2,two", "--rank", "1"], "'2,two'"),
    ("a size of zero", ["identify", "--sizes", "2,0", "--rank", "1"], "'2,0'"),
]


def command(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def assert_one_sentence(code, err, says):
    assert code == 2, err
    assert err.startswith("jointpmf: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert "--debug" not in err
    assert re.search(says, err), err


def test_there_are_enough_cases():
    assert len(BAD_COMMANDS) + len(BAD_MODELS) >= 180


@pytest.mark.parametrize(
    ("arguments", "says"), [pytest.param(a, s, id=name) for name, a, s in BAD_COMMANDS]
)
def test_the_command_refuses(here, capsys, arguments, says):
    before = sorted(here.iterdir())
    code, _, err = command(arguments, capsys)
    assert_one_sentence(code, err, says)
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize(("name", "says"), BAD_MODELS)
def test_the_command_and_the_library_refuse_a_model(here, capsys, name, says):
    code, out, err = command(["info", name], capsys)
    assert_one_sentence(code, err, says)
    assert out == ""
    with pytest.raises(jp.JointPMFError, match=says) as caught:
        jp.load(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name, _ in BAD_MODELS if name in MODELS])
def test_a_bad_model_from_a_pipe_is_refused_too(here, capsys, monkeypatch, name):
    stdin = io.TextIOWrapper(io.BytesIO((here / name).read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    code, out, err = command(["info", "-"], capsys)
    assert_one_sentence(code, err, "the input")
    assert out == ""


@pytest.mark.parametrize("flip", [0xFF, 0x01, 0x20])
def test_a_header_with_any_byte_flipped_is_the_same_model_or_refused(tmp_path, flip):
    content = model(about='{"rows": "6"}')
    length = int.from_bytes(content[:8], "little")
    path = tmp_path / "m.safetensors"
    n_refused = 0
    for place in range(8 + length):
        changed = bytearray(content)
        changed[place] ^= flip
        path.write_bytes(changed)
        try:
            found = jp.load(path)
        except jp.JointPMFError:
            n_refused += 1
            continue
        assert found.domain == DOMAIN
        np.testing.assert_array_equal(found.weights, ONE_SIDED.weights)
        for one, other in zip(found.factors, ONE_SIDED.factors, strict=True):
            np.testing.assert_array_equal(one, other)
    assert n_refused > length / 2


def test_a_file_cut_anywhere_is_refused(tmp_path):
    content = model()
    path = tmp_path / "m.safetensors"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(jp.JointPMFError):
            jp.load(path)


def test_a_claimed_size_is_not_allocated(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(header({"weights": tensor([10**11], 0, 8 * 10**11)}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(jp.JointPMFError, match="not a whole model file"):
        jp.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_debug_shows_where(here):
    with pytest.raises(jp.JointPMFError):
        main(["info", "empty.safetensors", "--debug"])
