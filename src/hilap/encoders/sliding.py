"""The inner loops of bow-CNN on the CPU, compiled: a region differs from the one before it by two words at most.

So the sum of a region's rows is carried along the text: the row of the word that leaves is taken away, that of the word
that enters is added, and what the filters answer goes straight into the pools. Work does not depend on the size of the
regions, and no table of regions is made. The gradient goes the same way back: what all regions from here to the end
ask for is carried along, given to the word that enters here, and taken from the word that leaves here.

Every document is computed by itself, in one order: its bits do not depend on its batch. They are those of the sum of a
region to about the seventh digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.compiling import compiled

Floats = NDArray[Any]
Whole = NDArray[np.int64]
NOTHING = 0  # the word that says nothing


@compiled
def _step(total: Floats, enters: Floats, leaves: Floats, answer: Floats) -> None:
    """Move on by one region."""
    zero = total.dtype.type(0)
    for f in range(len(total)):
        total[f] += enters[f] - leaves[f]
        answer[f] = max(total[f], zero)


@compiled
def _neighbours(words: Whole, last: Whole, before: Whole, after: Whole) -> None:
    """Where the same word stands next to the left (-1: nowhere) and to the right (their number: nowhere).

    `last` has a place for each word of the vocabulary; it comes as -1, and is left so.
    """
    for place in range(len(words)):
        before[place], after[place] = last[words[place]], len(words)
        if before[place] >= 0:
            after[before[place]] = place
        last[words[place]] = place
    for place in range(len(words)):
        last[words[place]] = -1


@compiled
def _moves(words: Whole, size: int, last: Whole, enters: Whole, leaves: Whole) -> None:
    """For each region after the first, the word that enters and the one that leaves; NOTHING where none does.

    A word that leaves on the left while it stands, or enters, on the right stays.
    """
    before, after = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
    _neighbours(words, last, before, after)
    for begin in range(1, len(enters)):
        end = begin + size - 1
        enters[begin] = words[end] if before[end] < begin - 1 else NOTHING
        leaves[begin] = words[begin - 1] if after[begin - 1] > end else NOTHING


@compiled
def _first_words(words: Whole, size: int) -> Whole:
    """The different words of the first region."""
    found, count = np.empty(min(size, len(words)), np.int64), 0
    for place in range(len(found)):
        new = words[place] != NOTHING
        for i in range(count):
            new = new and found[i] != words[place]
        if new:
            found[count] = words[place]
            count += 1
    return found[:count]


@compiled
def _low(pool: int, regions: int, pools: int) -> int:
    """The first region of a pool."""
    return pool * regions // pools


@compiled
def _high(pool: int, regions: int, pools: int) -> int:
    """The region behind the last of a pool."""
    return ((pool + 1) * regions + pools - 1) // pools


# Loops where numpy has a word for it: numba compiles the words several times slower.


@compiled
def _add(kept: Floats, answer: Floats) -> None:
    for f in range(len(answer)):
        kept[f] += answer[f]


@compiled
def _take(kept: Floats, answer: Floats) -> None:
    for f in range(len(answer)):
        kept[f] -= answer[f]


@compiled
def _note(passed: NDArray[np.bool_], answer: Floats) -> None:
    for f in range(len(answer)):
        passed[f] = answer[f] > 0


@compiled
def _keep_highest(kept: Floats, best: NDArray[np.int32], answer: Floats, region: int) -> None:
    for f in range(len(answer)):
        if answer[f] > kept[f]:
            kept[f], best[f] = answer[f], region


@compiled
def pooled_regions(
    size: int,
    tokens: Whole,
    starts: Whole,
    table: Floats,
    bias: Floats,
    found: Floats,
    passed: NDArray[np.bool_],
    best: NDArray[np.int32],
) -> None:
    """Fill (B, pools, filters) `found`, which comes as zeros, with what the pools of each document keep.

    Parameters
    ----------
    size
        How many words a region has.
    tokens, starts
        The words of all documents, and (B + 1,) where each document's start.
    table, bias
        (words, filters) and (filters,).
    found
        The j-th pool keeps the mean or the highest of regions floor(j n / pools) to ceil((j + 1) n / pools).
    passed
        (regions of all documents, filters) is filled with which answers are above 0; or empty, where no gradient is
        wanted.
    best
        (B, pools, filters), for pools that keep the highest answer, is filled with the region it is from; it comes as
        -1. Empty for pools that keep the mean.
    """
    pools, average = found.shape[1], len(best) == 0
    answer, total = np.empty_like(bias), np.empty_like(bias)
    rest, last, row = np.zeros_like(bias), np.full(len(table), -1), 0
    for d in range(len(found)):
        words = tokens[starts[d] : starts[d + 1]]
        regions = max(1, len(words) - size + 1)
        enters, leaves = np.zeros(regions, np.int64), np.zeros(regions, np.int64)
        _moves(words, size, last, enters, leaves)
        total[:] = bias
        _step(total, rest, rest, answer)
        for word in _first_words(words, size):
            _step(total, table[word], rest, answer)
        first = 0
        for region in range(regions):
            if enters[region] != NOTHING or leaves[region] != NOTHING:
                _step(
                    total,
                    rest if enters[region] == NOTHING else table[enters[region]],
                    rest if leaves[region] == NOTHING else table[leaves[region]],
                    answer,
                )
            if len(passed):
                _note(passed[row], answer)
                row += 1
            while _high(first, regions, pools) <= region:
                first += 1
            pool = first
            while pool < pools and _low(pool, regions, pools) <= region:
                if average:
                    _add(found[d, pool], answer)
                else:
                    _keep_highest(found[d, pool], best[d, pool], answer, region)
                pool += 1
        if average:
            for pool in range(pools):
                found[d, pool] /= _high(pool, regions, pools) - _low(pool, regions, pools)


@compiled
def gradient_of_regions(
    size: int,
    tokens: Whole,
    starts: Whole,
    grad: Floats,
    passed: NDArray[np.bool_],
    best: NDArray[np.int32],
    of_table: Floats,
    of_bias: Floats,
) -> None:
    """Add the gradient of `pooled_regions`, from (B, pools, filters) `grad`, to that of its table and bias."""
    pools, average = grad.shape[1], len(best) == 0
    later, last = np.empty_like(of_bias), np.full(len(of_table), -1)
    row = len(passed)
    for d in range(len(grad) - 1, -1, -1):
        words = tokens[starts[d] : starts[d + 1]]
        regions = max(1, len(words) - size + 1)
        enters, leaves = np.zeros(regions, np.int64), np.zeros(regions, np.int64)
        _moves(words, size, last, enters, leaves)
        later[:] = 0
        pool_behind = pools
        for region in range(regions - 1, -1, -1):
            row -= 1
            while pool_behind and _low(pool_behind - 1, regions, pools) > region:
                pool_behind -= 1
            pool = pool_behind - 1
            while pool >= 0 and _high(pool, regions, pools) > region:
                if average:
                    count = _high(pool, regions, pools) - _low(pool, regions, pools)
                    share = of_bias.dtype.type(1 / count)
                    for f in range(len(later)):
                        later[f] += share * grad[d, pool, f] * passed[row, f]
                else:
                    for f in range(len(later)):
                        if best[d, pool, f] == region:
                            later[f] += grad[d, pool, f]
                pool -= 1
            if enters[region] != NOTHING:
                _add(of_table[enters[region]], later)
            if leaves[region] != NOTHING:
                _take(of_table[leaves[region]], later)
        for word in _first_words(words, size):
            _add(of_table[word], later)
        _add(of_bias, later)


__all__ = ["NOTHING", "gradient_of_regions", "pooled_regions"]
