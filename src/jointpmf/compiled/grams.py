"""Products of the Gram matrices of the factors over subsets, and JᵀJ times a vector from them."""

from __future__ import annotations

from jointpmf.compiled.jit import compiled


@compiled
def subset_gram(grams, subsets, ptr, subset_weights, chosen, skip, weights, product, out):
    """Set `out` to the sum over the chosen subsets of the product of their Gram matrices, eq. 6.

    Variable `skip` is left out of the products; rows and columns are scaled by `weights`.
    `product` is memory for one.
    """
    rank = len(weights)
    for f in range(rank):
        for g in range(rank):
            out[f, g] = 0.0
    for c in range(len(chosen)):
        s = chosen[c]
        for f in range(rank):
            for g in range(rank):
                product[f, g] = subset_weights[s] * weights[f] * weights[g]
        for k in range(ptr[s], ptr[s + 1]):
            n = subsets[k]
            if n != skip:
                for f in range(rank):
                    for g in range(rank):
                        product[f, g] *= grams[n, f, g]
        for f in range(rank):
            for g in range(rank):
                out[f, g] += product[f, g]


@compiled
def add_pair_grams(grams, subsets, ptr, subset_weights, product, out):
    """Add to out[i, j] the Gram products of the subsets with i and j, without both (eq. 15).

    Here i comes before j in the subset, or is it. The last row and column of `out` have the
    products of all variables of each subset. Each Gram matrix is a row of numbers, and `product`
    is memory for one.
    """
    none, size = len(grams), len(product)
    for s in range(len(ptr) - 1):
        end = ptr[s + 1]
        for a in range(ptr[s], end + 1):
            for b in range(a, end + 1 if a == end else end):
                for f in range(size):
                    product[f] = subset_weights[s]
                for k in range(ptr[s], end):
                    if k != a and k != b:
                        n = subsets[k]  # read in the loop it would keep it from being vectorised
                        for f in range(size):
                            product[f] *= grams[n, f]
                i, j = none, none
                if a < end:
                    i, j = subsets[a], subsets[b]
                for f in range(size):
                    out[i, j, f] += product[f]


@compiled
def set_cross_grams(left, right, offsets, out):
    """Set out[n] to leftᵀ right of the rows of variable n."""
    rank = left.shape[1]
    for n in range(len(out)):
        for f in range(rank):
            for g in range(rank):
                out[n, f, g] = 0.0
        for i in range(offsets[n], offsets[n + 1]):
            for f in range(rank):
                for g in range(rank):
                    out[n, f, g] += left[i, f] * right[i, g]


@compiled
def set_factor_product(weights, factors, weight_change, factor_change, offsets, others, moved, out):
    """Set `out` to the factors' part of JᵀJ times a change, eq. 15."""
    rank = len(weights)
    for n in range(len(offsets) - 1):
        for i in range(offsets[n], offsets[n + 1]):
            for f in range(rank):
                total = 0.0
                for g in range(rank):
                    change = weight_change[g] * factors[i, g] + weights[g] * factor_change[i, g]
                    total += change * others[n, f, g] + weights[g] * factors[i, g] * moved[n, f, g]
                out[i, f] = weights[f] * total
