"""Rows whose levels are exchanged or drawn anew, so that their tables come nearer to given ones."""

from __future__ import annotations

import numpy as np

from jointpmf.compiled.jit import compiled, inner


@inner
def uniform(seed):
    """Return the next random number in [0, 1) of a splitmix64 generator."""
    seed[0] += np.uint64(0x9E3779B97F4A7C15)
    z = seed[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 9007199254740992.0


@inner
def excess_of(cell, targets, state):
    """Return how many people too many are in a cell; none where it has no target."""
    share, is_shown, slot = targets
    people, size, _ = state
    if not is_shown[cell]:
        return 0.0
    s = slot[cell]
    return people[cell] if s < 0 else people[cell] - share[cell] * size[s]


@inner
def add_person(cell, sign, targets, state, square):
    """Put a row into a cell (sign 1) or take it out (−1); return by how much that changes the cost.

    The cost is Σ excess² over the cells that have a target. Those of a slice change with its size:
    `pull` is Σ share · excess of a slice and `square` is Σ share², so that the sum over the slice
    need not be made again (docs/math.md, eq. 52).
    """
    share, is_shown, slot = targets
    people, size, pull = state
    s = slot[cell]
    if s < 0:
        change = 1.0 + 2.0 * sign * people[cell] if is_shown[cell] else 0.0
        people[cell] += sign
        return change
    change = square[s] - 2.0 * sign * pull[s]
    pull[s] -= sign * square[s]
    if is_shown[cell]:
        p = share[cell]
        change += 1.0 + 2.0 * (sign * (people[cell] - p * size[s]) - p)
        pull[s] += sign * p
    people[cell] += sign
    size[s] += sign
    return change


@inner
def set_level(row, v, new, codes, cells, maps, targets, state, square):
    """Give a row another level of a variable; return by how much that changes the cost."""
    ptr, table, at, shift = maps
    old = codes[row, v]
    codes[row, v] = new
    change = 0.0
    for j in range(ptr[v], ptr[v + 1]):
        before = cells[row, table[j]]
        after = before + shift[at[j] + new] - shift[at[j] + old]
        if before != after:
            cells[row, table[j]] = after
            if before >= 0:
                change += add_person(before, -1.0, targets, state, square)
            if after >= 0:
                change += add_person(after, 1.0, targets, state, square)
    return change


@inner
def move(row, other, v, new, old, codes, cells, maps, targets, state, square):
    """Give a row a new level, and another row, if there is one, the old level of the first."""
    change = 0.0
    for k in range(1 if other < 0 else 2):
        at, level = (row, new) if k == 0 else (other, old)
        change += set_level(at, v, level, codes, cells, maps, targets, state, square)
    return change


@inner
def is_in_excess(row, cells, targets, state):
    """Tell whether a table has too many people where a row is."""
    for cell in cells[row]:  # noqa: SIM110 (numba has no generators in any)
        if cell >= 0 and excess_of(cell, targets, state) > 0.5:
            return True
    return False


@compiled
def improve(model, codes, cells, maps, targets, state, square, temperature, all_rows, seed):
    """Propose a move for each level of each row, and make those that bring tables nearer.

    Half of the moves exchange the levels of two rows of one component, which leaves the rows as
    likely as they were; the others draw a level anew from the row's component. Only rows in cells
    that have too many people are moved, unless `all_rows`. A move that raises the cost is made
    with probability exp(−rise / temperature). Returns how many moves were proposed, and by how
    much they changed the cost.
    """
    variables, offsets, component, begins, cumulative = model
    n_proposed, total = 0, 0.0
    for row in range(len(codes)):
        if not (all_rows or is_in_excess(row, cells, targets, state)):
            continue
        f = component[row]
        for v in variables:
            n_proposed += 1
            old, other = np.int64(codes[row, v]), -1
            if uniform(seed) < 0.5:
                other = begins[f] + int(uniform(seed) * (begins[f + 1] - begins[f]))
                new = np.int64(codes[other, v])
            else:
                new = np.searchsorted(
                    cumulative[f, offsets[v] : offsets[v + 1]], uniform(seed), side="right"
                )
            if new == old:
                continue
            change = move(row, other, v, new, old, codes, cells, maps, targets, state, square)
            if change < 1e-6 or uniform(seed) * np.exp(change / temperature) < 1.0:
                total += change
            else:
                move(row, other, v, old, new, codes, cells, maps, targets, state, square)
    return n_proposed, total
