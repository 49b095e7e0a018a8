"""Products of matrices inside compiled loops, against numpy."""

import numpy as np
import pytest

from jointpmf.compiled.blas import add_product, gemm_address
from jointpmf.compiled.jit import compiled

ROWS, INNER, COLUMNS, PLACE = 5, 3, 4, 2


@compiled
def _add(gemm, left, is_left, right, is_right, out):
    shape = (ROWS, INNER, COLUMNS)
    left_width, right_width = ROWS if is_left else INNER, INNER if is_right else COLUMNS
    a, b = (left, PLACE, left_width, is_left), (right, PLACE, right_width, is_right)
    add_product(gemm, 2.0, shape, a, b, (out, PLACE, COLUMNS + 1))


@pytest.mark.parametrize("is_left", [False, True])
@pytest.mark.parametrize("is_right", [False, True])
def test_a_product_is_added(is_left, is_right):
    generator = np.random.default_rng(0)
    left, right = generator.random((ROWS, INNER)), generator.random((INNER, COLUMNS))
    before = generator.random((ROWS, COLUMNS + 1))
    flat = [
        np.concatenate([np.zeros(PLACE), (matrix.T if is_transposed else matrix).ravel()])
        for matrix, is_transposed in ((left, is_left), (right, is_right), (before, False))
    ]
    _add(gemm_address(), flat[0], is_left, flat[1], is_right, flat[2])
    before[:, :COLUMNS] += 2.0 * left @ right
    np.testing.assert_allclose(flat[2][PLACE:].reshape(before.shape), before, atol=1e-14)
