"""The inner loops of TextCNN on the CPU, compiled: the highest answer of each filter, and its gradient.

What a word adds to a filter's answer at each place of its span is worked out once for every different word of a batch,
by one product. A window's answer is then the sum of a few rows, compared with the highest so far as soon as it is
known: no table of windows or of answers is made. Of all answers of a filter in a document one has a gradient, so the
way back looks at the words of that window and at no other.

Every document is computed by itself, in one order: its bits do not depend on its batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.compiling import compiled

Floats = NDArray[Any]
Whole = NDArray[np.int64]
Places = NDArray[np.int32]


# Rows are told by their number: a slice for each would cost as much as what is done with it.


@compiled
def _set(total: Floats, rows: Floats, row: int) -> None:
    for f in range(len(total)):
        total[f] = rows[row, f]


@compiled
def _add(total: Floats, rows: Floats, row: int) -> None:
    for f in range(len(total)):
        total[f] += rows[row, f]


@compiled
def _keep_highest(highest: Floats, where: Places, d: int, total: Floats, window: int) -> None:
    for f in range(len(total)):
        higher = total[f] > highest[d, f] or total[f] != total[f]  # what is not a number must not get lost
        highest[d, f] = total[f] if higher else highest[d, f]
        where[d, f] = window if higher else where[d, f]


@compiled
def highest_answers(span: int, adds: Floats, words: Whole, starts: Whole, highest: Floats, where: Places) -> None:
    """Fill (B, filters) `highest` with each filter's highest answer in each document, and `where` with its window.

    Parameters
    ----------
    span
        How many words a window has.
    adds
        (words * span, filters) what a word adds to a filter's answer at each place of its span.
    words, starts
        The words of all documents, and (B + 1,) where each document's start.
    highest, where
        A window is counted by the place of its first word in the document; the first windows have theirs before it,
        where there is nothing. A document without words has the answer 0.
    """
    total = np.empty(adds.shape[1], adds.dtype)
    for d in range(len(highest)):
        begin, n = starts[d], starts[d + 1] - starts[d]
        highest[d] = -np.inf if n else 0
        where[d] = 0
        for window in range(1 - span if n else 0, n):
            first = max(window, 0)
            _set(total, adds, words[begin + first] * span + first - window)
            for place in range(first + 1, min(window + span, n)):
                _add(total, adds, words[begin + place] * span + place - window)
            _keep_highest(highest, where, d, total, window)


@compiled
def _add_times(total: Floats, row: Floats, times: float) -> None:
    for i in range(len(total)):
        total[i] += row[i] * times


@compiled
def gradient_of_answers(
    grad: Floats,
    where: Places,
    words: Whole,
    starts: Whole,
    vectors: Floats,
    weight: Floats,
    of_vectors: Floats,
    of_weight: Floats,
) -> None:
    """Add to `of_vectors` and `of_weight` what (B, filters) `grad` asks of them; an empty `of_vectors` is left so.

    Parameters
    ----------
    grad, where, words, starts
        Of the highest answers, and the windows they are from, as `highest_answers` takes and fills them.
    vectors, weight
        (words, D) and (filters, span, D); their gradients come as zeros.
    """
    span = weight.shape[1]
    for d in range(len(grad)):
        document = words[starts[d] : starts[d + 1]]
        for f in range(grad.shape[1]):
            asked, window = grad[d, f], where[d, f]
            if asked != 0:
                for place in range(max(window, 0), min(window + span, len(document))):
                    word, at = document[place], place - window
                    _add_times(of_weight[f, at], vectors[word], asked)
                    if len(of_vectors):
                        _add_times(of_vectors[word], weight[f, at], asked)


__all__ = ["gradient_of_answers", "highest_answers"]
