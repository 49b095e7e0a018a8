"""The figures of the house stay within their limits."""

import pytest

from support import house


@pytest.mark.parametrize("figure", house.figures(), ids=lambda figure: figure.what)
def test_a_figure_is_within_its_limit(figure):
    assert figure.value <= figure.limit, figure.where
