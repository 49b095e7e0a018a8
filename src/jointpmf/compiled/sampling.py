"""Drawing levels."""

from __future__ import annotations

from jointpmf.compiled.jit import compiled


@compiled
def draw_levels(cumulative, components, uniforms, out):
    """Set out[row] to the first level whose cumulative probability exceeds the row's uniform."""
    for row in range(len(out)):
        level = 0
        while uniforms[row] >= cumulative[components[row], level]:
            level += 1
        out[row] = level
