"""Codes: their type, their layout, and holes."""

import math

import numpy as np

import jointpmf as jp
from jointpmf.data.codes import Codes


def test_codes_are_column_major_in_the_smallest_type():
    rows = np.zeros((4, 2), int)
    arrays = [Codes(jp.Domain.of_sizes([2, size]), rows).array for size in (127, 128, 40000)]
    assert [array.dtype for array in arrays] == [np.int8, np.int16, np.int32]
    assert all(array.flags.f_contiguous for array in arrays)


def test_codes_may_be_whole_floats_with_nan_for_missing():
    codes = Codes(jp.Domain.of_sizes([2, 3]), [[1.0, math.nan], [-1.0, 2.0]])
    assert codes.array.tolist() == [[1, -1], [-1, 2]]
    assert codes.array.dtype == np.int8
