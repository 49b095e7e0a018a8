"""Bins hold what their edges say, and every number falls in exactly one of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointpmf.data.binning import bin_codes, binned_variable, bins_by_name, check_inside
from jointpmf.domain import MISSING
from jointpmf.errors import JointPMFError

FINITE = st.floats(-1e6, 1e6)


def binned(numbers, bins):
    numbers = np.array(numbers, float)
    return binned_variable("x", numbers, np.zeros(len(numbers), bool), bins)


@given(st.lists(FINITE, min_size=1, max_size=40), st.integers(1, 10))
def test_bins_by_count_are_all_used_and_stand_for_their_cells_mean(numbers, n_bins):
    variable = binned(numbers, n_bins)
    codes = bin_codes(np.array(numbers), variable.edges)
    assert variable.size <= n_bins
    assert set(codes.tolist()) == set(range(variable.size))
    means = [np.mean(np.array(numbers)[codes == b]) for b in range(variable.size)]
    np.testing.assert_allclose(variable.values, means)


@given(st.lists(FINITE, max_size=20), st.lists(FINITE, min_size=2, max_size=6, unique=True))
def test_a_number_has_the_code_that_its_variable_gives_it(numbers, edges):
    variable = binned([min(edges)], sorted(edges))
    for number, code in zip(numbers, bin_codes(np.array(numbers), variable.edges), strict=True):
        inside = variable.edges[0] <= number <= variable.edges[-1]
        assert code == (variable.code(number) if inside else MISSING)


@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        ([0, 1, 2], ("0..1", "1..2")),
        ([-np.inf, 1, np.inf], ("<1", ">=1")),
        ([-np.inf, np.inf], ("all",)),
        ([0.12341, 0.12342, 1], ("0.12341..0.12342", "0.12342..1")),
    ],
)
def test_labels_tell_the_edges_apart(edges, labels):
    assert binned([0.5], edges).levels == labels


def test_an_empty_bin_stands_for_its_middle_or_its_finite_end():
    assert binned([3.5], [-np.inf, 0, 2, 3, 4, np.inf]).values == (0, 1, 2.5, 3.5, 4)


def test_a_number_outside_is_named_with_its_row():
    missing = np.array([True, False, True, False])
    with pytest.raises(JointPMFError, match=r"'x' holds 9 in row 3, outside of its bins from 0 to"):
        check_inside("x", np.array([1.0, 9.0]), missing, [0, 2])


@pytest.mark.parametrize("bins", [0, True, "abc", [1], [2, 1], [0, np.nan, 1], [[0, 1]]])
def test_bad_bins_name_their_column(bins):
    with pytest.raises(JointPMFError, match="'x'"):
        binned([0.5], bins)


@pytest.mark.parametrize("bins", [0, True, "3", {"y": 3}])
def test_bins_belong_to_columns(bins):
    with pytest.raises(JointPMFError, match="bins"):
        bins_by_name(bins, ["x"])
