"""Gram matrices of the factors, products of them over subsets, and JᵀJ made of those products."""

from __future__ import annotations

import numpy as np

from jointpmf.compiled.jit import compiled, inner


@compiled
def factor_grams(factors, offsets, first, last, out):
    """Set out[n] to the Gram matrix of the columns of variable n, for first <= n < last."""
    rank = out.shape[1]
    for n in range(first, last):
        out[n, :, :] = 0.0
        for row in range(offsets[n], offsets[n + 1]):
            for f in range(rank):
                left = factors[row, f]
                for g in range(rank):
                    out[n, f, g] += left * factors[row, g]


@compiled
def cross_grams(left, right, offsets):
    """Return leftᵀ right of every variable's rows, (n, rank, rank)."""
    rank = left.shape[1]
    out = np.zeros((len(offsets) - 1, rank, rank))
    for n in range(len(out)):
        for i in range(offsets[n], offsets[n + 1]):
            for f in range(rank):
                for g in range(rank):
                    out[n, f, g] += left[i, f] * right[i, g]
    return out


@compiled
def subset_gram(grams, subsets, ptr, subset_weights, chosen, skip, weights):
    """Return the sum over the chosen subsets of the product of their Gram matrices, eq. 6.

    Variable `skip` is left out of the products; rows and columns are scaled by `weights`.
    """
    rank = grams.shape[1]
    product = np.empty((rank, rank))
    gram = np.zeros((rank, rank))
    for c in range(len(chosen)):
        s = chosen[c]
        product[:, :] = subset_weights[s]
        for k in range(ptr[s], ptr[s + 1]):
            if subsets[k] != skip:
                _multiply_onto(grams[subsets[k]], product)
        for f in range(rank):
            for g in range(rank):
                gram[f, g] += product[f, g]
    for f in range(rank):
        for g in range(rank):
            gram[f, g] *= weights[f] * weights[g]
    return gram


@compiled
def pair_grams(grams, subsets, ptr, subset_weights):
    """Return the Gram products of every two variables, (n, n, rank, rank), and of all, eq. 15.

    Those of i and j are summed over the subsets with both, and leave out both.
    """
    n_all, rank = grams.shape[0], grams.shape[1]
    pairs = np.zeros((n_all, n_all, rank, rank))
    whole = np.zeros((rank, rank))
    product = np.empty((rank, rank))
    for s in range(len(ptr) - 1):
        for a in range(ptr[s], ptr[s + 1] + 1):
            for b in range(a, ptr[s + 1] + 1):
                # a pair, one variable (a == b), or, past the end, none
                if b == ptr[s + 1] and a != b:
                    continue
                product[:, :] = subset_weights[s]
                for k in range(ptr[s], ptr[s + 1]):
                    if k not in (a, b):
                        _multiply_onto(grams[subsets[k]], product)
                if a == ptr[s + 1]:
                    _add_onto(product, whole)
                else:
                    _add_onto(product, pairs[subsets[a], subsets[b]])
                    if a != b:
                        _add_onto(product, pairs[subsets[b], subsets[a]])
    return pairs, whole


@inner
def _multiply_onto(matrix, out):
    for f in range(out.shape[0]):
        for g in range(out.shape[1]):
            out[f, g] *= matrix[f, g]


@inner
def _add_onto(matrix, out):
    for f in range(out.shape[0]):
        for g in range(out.shape[1]):
            out[f, g] += matrix[f, g]


@compiled
def gauss_newton_matrix(weights, factors, offsets, pairs, whole):
    """Return JᵀJ over the weights and then the rows of the factors, eq. 14."""
    rank = len(weights)
    size = rank + factors.size
    matrix = np.zeros((size, size))
    for f in range(rank):
        for g in range(rank):
            matrix[f, g] = whole[f, g]
    for i in range(len(offsets) - 1):
        for p in range(offsets[i], offsets[i + 1]):
            for f in range(rank):
                row = rank + p * rank + f
                for g in range(rank):
                    mixed = weights[f] * factors[p, g] * pairs[i, i, f, g]
                    matrix[row, g] = mixed
                    matrix[g, row] = mixed
                    matrix[row, rank + p * rank + g] = weights[f] * weights[g] * pairs[i, i, f, g]
                for j in range(len(offsets) - 1):
                    if i != j:
                        for q in range(offsets[j], offsets[j + 1]):
                            scale = weights[f] * factors[q, f]
                            for g in range(rank):
                                matrix[row, rank + q * rank + g] = (
                                    scale * weights[g] * factors[p, g] * pairs[i, j, f, g]
                                )
    return matrix


@compiled
def gauss_newton_product(weights, factors, offsets, pairs, whole, vector):
    """Return JᵀJ times a vector without forming JᵀJ."""
    rank = len(weights)
    out = np.zeros(len(vector))
    change = vector[rank:].reshape(factors.shape)
    result = out[rank:].reshape(factors.shape)
    for f in range(rank):
        for g in range(rank):
            out[f] += whole[f, g] * vector[g]
    n_all = len(offsets) - 1
    overlap = np.zeros((n_all, rank, rank))  # factorᵀ change
    for j in range(n_all):
        for q in range(offsets[j], offsets[j + 1]):
            for f in range(rank):
                for g in range(rank):
                    overlap[j, f, g] += factors[q, f] * change[q, g]
    for i in range(n_all):
        inner = np.zeros((rank, rank))
        for f in range(rank):
            for g in range(rank):
                inner[f, g] = weights[f] * pairs[i, i, f, g] * vector[g]
                out[g] += weights[f] * pairs[i, i, f, g] * overlap[i, g, f]
        for j in range(n_all):
            if j != i:
                for f in range(rank):
                    for g in range(rank):
                        inner[f, g] += (
                            weights[f] * weights[g] * pairs[i, j, f, g] * overlap[j, f, g]
                        )
        for p in range(offsets[i], offsets[i + 1]):
            for f in range(rank):
                for g in range(rank):
                    own = weights[f] * weights[g] * pairs[i, i, f, g] * change[p, g]
                    result[p, f] += factors[p, g] * inner[f, g] + own
    return out


@compiled
def implicit_product(weights, factors, weight_change, factor_change, offsets, others, moved):
    """Return the factors' part of JᵀJ times a change, from sums over all subsets (eq. 31)."""
    rank = len(weights)
    out = np.zeros_like(factors)
    for n in range(len(offsets) - 1):
        for i in range(offsets[n], offsets[n + 1]):
            for f in range(rank):
                total = 0.0
                for g in range(rank):
                    change = weight_change[g] * factors[i, g] + weights[g] * factor_change[i, g]
                    total += change * others[n, f, g] + weights[g] * factors[i, g] * moved[n, f, g]
                out[i, f] = weights[f] * total
    return out
