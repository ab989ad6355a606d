"""Graphs of words: which words stand near each other in a text, and the neighbourhoods of the most frequent ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.compiling import compiled

Whole = NDArray[Any]


@compiled
def _nodes(tokens: Whole, skip: NDArray[np.bool_], number: Whole, words: Whole) -> tuple[int, Whole]:
    """Number the different words of a text in the order of their coming: how many, and each word's number (or -1)."""
    found = np.empty(len(tokens), np.int64)
    count = 0
    for i in range(len(tokens)):
        token = tokens[i]
        if skip[token]:
            found[i] = -1
            continue
        if number[token] < 0:
            number[token] = count
            words[count] = token
            count += 1
        found[i] = number[token]
    for k in range(count):
        number[words[k]] = -1
    return count, found


@compiled
def _near(places: Whole, count: int, window: int) -> Whole:
    """(count, count) how often two words stand in one window; words that are skipped take no place in it."""
    kept = places[places >= 0]
    near = np.zeros((count, count), np.int64)
    for i in range(len(kept)):
        for j in range(i + 1, min(i + window, len(kept))):
            if kept[i] != kept[j]:
                near[kept[i], kept[j]] += 1
                near[kept[j], kept[i]] += 1
    return near


@compiled
def _ranked(scores: Whole) -> Whole:
    """Positions by falling score, equal ones in their order."""
    return np.argsort(-scores, kind="mergesort")


@compiled
def _neighbourhood(near: Whole, first: int, seen: NDArray[np.bool_], row: Whole) -> int:
    """The nearest words around one, breadth first, those that stand near it most often first. How many there are."""
    row[0] = first
    seen[first] = True
    count, at = 1, 0
    while at < count and count < len(row):
        here = row[at]
        at += 1
        order = _ranked(near[here])
        for k in order:
            if near[here, k] == 0 or count == len(row):
                break
            if not seen[k]:
                seen[k] = True
                row[count] = k
                count += 1
    for k in range(count):
        seen[row[k]] = False
    return count


@compiled
def neighbourhoods(tokens: Whole, starts: Whole, skip: NDArray[np.bool_], window: int, grids: Whole) -> None:
    """Write the grids (B, N, g) of B texts; they come filled with nothing.

    `tokens` (M,) are word numbers, text after text from `starts` (B + 1,); `skip` (V,) says which words are no nodes.
    Row n of a grid is the neighbourhood of the text's n-th word: the most frequent come first, of equal ones those
    with more company, then the earlier.
    """
    number, words = np.full(len(skip), -1, np.int64), np.empty(len(skip), np.int64)
    row = np.empty(grids.shape[2], np.int64)
    for text in range(len(starts) - 1):
        count, places = _nodes(tokens[starts[text] : starts[text + 1]], skip, number, words)
        if count == 0:
            continue
        near = _near(places, count, window)
        scores = near.sum(axis=1)
        for place in places:
            if place >= 0:
                scores[place] += 1_000_000  # frequency before company
        seen = np.zeros(count, np.bool_)
        order = _ranked(scores)
        for n in range(min(count, grids.shape[1])):
            size = _neighbourhood(near, order[n], seen, row)
            for k in range(size):
                grids[text, n, k] = words[row[k]]


__all__ = ["neighbourhoods"]
