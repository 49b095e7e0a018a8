import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import jointpmf as jp
from jointpmf.errors import shown

AGE = jp.Variable("age", levels=("young", "middle", "old"), edges=(0, 30, 60, 120))


def test_a_code_is_a_levels_position():
    variable = jp.Variable("size", levels=("small", "large", "huge"))
    assert [variable.code(level) for level in variable.levels] == [0, 1, 2]


@pytest.mark.parametrize(
    ("levels", "asked"),
    [
        ((1, 2, 3), np.int8(2)),
        ((1, 2, 3), np.float64(2.0)),
        (("a", "b"), np.str_("b")),
        ((False, True), np.bool_(True)),
        ((np.int64(1), np.int64(2)), 2),
    ],
)
def test_a_numpy_scalar_is_the_level_it_equals(levels, asked):
    variable = jp.Variable("x", levels=levels)
    assert variable.code(asked) == 1
    assert asked in variable
    assert {type(level).__module__ for level in variable.levels} == {"builtins"}


def test_a_variable_contains_its_levels_only():
    variable = jp.Variable("vote", levels=("no", "yes"))
    assert "yes" in variable
    assert "maybe" not in variable
    assert ["yes"] not in variable


def test_an_unknown_level_is_named_with_its_variable_and_the_levels_it_has():
    with pytest.raises(jp.JointPMFError, match=r"'vote' has no level 'maybe'.*'no', 'yes'"):
        jp.Variable("vote", levels=("no", "yes")).code("maybe")


def test_a_long_list_of_levels_is_cut_in_the_message():
    with pytest.raises(jp.JointPMFError, match="0, 1, 2, 3, 4, 5, 6, 7 and 42 more"):
        jp.Variable("x", levels=range(50)).code("z")


@pytest.mark.parametrize(
    "level",
    [
        pd.Series(range(1000), name="age"),
        pl.Series(range(1000)),
        np.eye(100),
        "a" * 10**6,
        list(range(10**5)),
    ],
    ids=lambda level: type(level).__name__,
)
def test_a_level_that_is_no_level_is_shown_on_one_short_line(level):
    with pytest.raises(jp.JointPMFError, match="'vote' has no level") as caught:
        jp.Variable("vote", levels=("no", "yes")).code(level)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 160


def test_what_is_short_is_shown_as_it_is():
    assert [shown(item) for item in ("a  b", 2.5, "x\ny")] == ["'a  b'", "2.5", "'x\\ny'"]
    assert len(shown("b" * 500)) == 80


@pytest.mark.parametrize(
    ("number", "level"),
    [(0, "young"), (29.9, "young"), (30, "middle"), (np.float32(59), "middle"), (60, "old")],
)
def test_a_number_falls_in_the_bin_whose_lower_edge_it_reaches(number, level):
    assert AGE.code(number) == AGE.code(level)


def test_the_last_bin_includes_its_upper_edge():
    assert AGE.code(120) == 2


@pytest.mark.parametrize("number", [-0.1, 120.1, math.inf, math.nan, True, "31"])
def test_what_lies_in_no_bin_is_an_unknown_level(number):
    with pytest.raises(jp.JointPMFError, match="'age' has no level"):
        AGE.code(number)


def test_infinite_edges_take_every_number():
    variable = jp.Variable("x", levels=("low", "high"), edges=(-math.inf, 0, math.inf))
    assert [variable.code(x) for x in (-1e300, -1e-300, 0, 1e300, math.inf)] == [0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("levels", "values"),
    [
        ((1, 2, 5), (1.0, 2.0, 5.0)),
        ((0.5, -2), (0.5, -2.0)),
        ((False, True), (0.0, 1.0)),
        (("a", "b"), None),
        (("a", 1), None),
    ],
)
def test_levels_that_are_numbers_are_their_own_values(levels, values):
    assert jp.Variable("x", levels=levels).values == values


def test_given_values_are_kept_as_floats():
    variable = jp.Variable("mood", levels=("bad", "good"), values=[-1, np.int64(1)])
    assert variable.values == (-1.0, 1.0)
    assert {type(value) for value in variable.values} == {float}


def test_variables_are_equal_and_hash_alike_when_all_they_say_is_equal():
    variable = jp.Variable("x", levels=[0, 1])
    assert variable == jp.Variable("x", levels=(0, 1))
    assert hash(variable) == hash(jp.Variable("x", levels=(0, 1)))
    assert variable != jp.Variable("x", levels=(1, 0))
    assert variable != jp.Variable("x", levels=(0, 1), values=(5, 6))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"name": 3}, "name must be a string, not 3", id="name"),
        pytest.param({"levels": ()}, "'x' has no level", id="no level"),
        pytest.param({"levels": "abc"}, "'x' must be a list .*not the str 'abc'", id="text"),
        pytest.param({"levels": b"abc"}, "'x' must be a list .*not the bytes", id="bytes"),
        pytest.param({"levels": {"a"}}, "'x' must be a list .*not the set", id="set"),
        pytest.param({"levels": frozenset("a")}, "'x' must be .*not the frozenset", id="frozenset"),
        pytest.param({"levels": 5}, "'x' must be a list .*not the int 5", id="number"),
        pytest.param({"levels": None}, "'x' must be a list .*None", id="levels None"),
        pytest.param({"levels": np.eye(2)}, "'x' must be hashable", id="rows of an array"),
        pytest.param({"levels": (1, 10**400)}, "values of variable 'x'", id="beyond floats"),
        pytest.param({"levels": ("a", "b", "a")}, "'x' has a level twice", id="twice"),
        pytest.param({"levels": (1, True)}, "'x' has a level twice", id="equal"),
        pytest.param({"levels": ("a", None)}, "'x' has a missing value", id="None"),
        pytest.param({"levels": (1.0, math.nan)}, "'x' has a missing value", id="NaN"),
        pytest.param({"levels": ("a", pd.NaT)}, "'x' has a missing value", id="NaT"),
        pytest.param({"levels": ("a", pd.NA)}, "'x' has a missing value", id="NA"),
        pytest.param({"levels": (["a"], ["b"])}, "'x' must be hashable", id="unhashable"),
        pytest.param({"values": (1, 2)}, "'x' has 3 levels but 2 values", id="values"),
        pytest.param({"values": (1, 2, math.inf)}, "'x' .*not finite", id="infinite value"),
        pytest.param({"values": (1, 2, math.nan)}, "'x' .*not finite", id="NaN value"),
        pytest.param({"values": (1, 2, "three")}, "'x'", id="value of text"),
        pytest.param({"edges": (0, 1)}, "'x' has 3 bins but 2 edges", id="edges"),
        pytest.param({"edges": (0, 2, 1, 3)}, "'x'", id="falling edges"),
        pytest.param({"edges": (0, 1, 1, 3)}, "'x'", id="equal edges"),
        pytest.param({"edges": (0, 1, math.nan, 3)}, "'x'", id="NaN edge"),
    ],
)
def test_a_variable_that_makes_no_sense_is_refused_by_name(arguments, message):
    with pytest.raises(jp.JointPMFError, match=message):
        jp.Variable(**{"name": "x", "levels": ("a", "b", "c"), **arguments})


def domain_of_three():
    names = ("a", "b", "c")
    return jp.Domain([jp.Variable(name, levels=range(k + 1)) for k, name in enumerate(names)])


def test_a_domain_lists_its_variables_in_order():
    domain = domain_of_three()
    assert domain.names == ("a", "b", "c")
    assert domain.sizes == (1, 2, 3)
    assert domain.offsets.tolist() == [0, 1, 3, 6]
    assert len(domain) == 3
    assert [variable.name for variable in domain] == ["a", "b", "c"]


def test_a_domain_finds_a_variable_by_its_name():
    domain = domain_of_three()
    assert domain["b"] is domain.variables[1]
    assert domain.index("c") == 2
    assert domain.indices(["c", "a"]) == (2, 0)
    assert "b" in domain
    assert "d" not in domain


@pytest.mark.parametrize("ask", [jp.Domain.index, jp.Domain.__getitem__])
@pytest.mark.parametrize("name", ["d", 0, ["a"]])
def test_an_unknown_variable_is_named_with_those_there_are(ask, name):
    with pytest.raises(jp.JointPMFError, match=r"there is no variable .*'a', 'b', 'c'"):
        ask(domain_of_three(), name)


def test_a_projection_keeps_the_order_asked():
    domain = domain_of_three()
    assert domain.project(["c", "a"]) == jp.Domain([domain["c"], domain["a"]])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "a"], "'a' twice"),
        (["a", "d"], "no variable 'd'"),
        ("abc", r"such as \['abc'\]"),
        (5, "names, not 5"),
    ],
)
def test_a_projection_on_names_that_make_no_sense_is_refused(names, message):
    with pytest.raises(jp.JointPMFError, match=message):
        domain_of_three().project(names)


def test_sizes_are_computed_once():
    domain = jp.Domain.of_sizes([2, 3])
    assert domain.sizes is domain.sizes


def test_a_domain_of_sizes_names_and_numbers_for_the_user():
    domain = jp.Domain.of_sizes([2, np.int64(3)])
    assert domain.names == ("x0", "x1")
    assert [variable.levels for variable in domain] == [(0, 1), (0, 1, 2)]
    assert domain["x1"].values == (0.0, 1.0, 2.0)


def test_a_domain_of_sizes_takes_names():
    assert jp.Domain.of_sizes([2, 3], names=["a", "b"]).names == ("a", "b")


@pytest.mark.parametrize("size", [0, -1, 2.0, True, None, "2"])
def test_a_size_that_is_no_positive_whole_number_is_refused(size):
    with pytest.raises(jp.JointPMFError, match=f"size must be .* not {size!r}"):
        jp.Domain.of_sizes([2, size])


def test_names_and_sizes_must_be_as_many():
    with pytest.raises(jp.JointPMFError, match="3 names for 2 sizes"):
        jp.Domain.of_sizes([2, 3], names=["a", "b", "c"])


def test_a_domain_cannot_name_a_variable_twice():
    with pytest.raises(jp.JointPMFError, match="names 'a' twice"):
        jp.Domain.of_sizes([2, 3, 4], names=["a", "b", "a"])


@pytest.mark.parametrize(
    ("variables", "message"),
    [(["a"], "not of 'a'"), (5, "Variables, not 5"), (AGE, r"Variables, not Variable\(name='age'")],
)
def test_a_domain_is_made_of_variables(variables, message):
    with pytest.raises(jp.JointPMFError, match=message):
        jp.Domain(variables)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5,), "list of sizes.*not 5"),
        (("23",), "list of sizes.*not '23'"),
        (([2, 3], 5), "list of names, not 5"),
        (([2, 3], "ab"), "list of names.*not the text 'ab'"),
    ],
)
def test_sizes_and_names_are_lists(arguments, message):
    with pytest.raises(jp.JointPMFError, match=message):
        jp.Domain.of_sizes(*arguments)
