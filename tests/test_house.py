"""The figures of the house stay within their limits."""

import pytest

from support.house import FIGURES


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.__name__)
def test_a_figure_is_within_its_limit(figure):
    found = figure()
    assert found.value <= found.limit, found.where
