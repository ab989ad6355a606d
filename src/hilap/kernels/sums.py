"""Products, sums of rows, softmax; products of states and labels for some pairs only, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilap.kernels.compiling import Floats, Whole, compiled

AT_ONCE = 6  # rows added in one pass over a result: more registers than that spill


def _dot(a: Floats, b: Floats) -> Any:
    total = a.dtype.type(0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


def _four_dots(a: Floats, b: Floats, c: Floats, d: Floats, e: Floats) -> Any:
    ab, ac, ad, ae = a.dtype.type(0), a.dtype.type(0), a.dtype.type(0), a.dtype.type(0)
    for i in range(len(a)):
        ab += a[i] * b[i]
        ac += a[i] * c[i]
        ad += a[i] * d[i]
        ae += a[i] * e[i]
    return ab, ac, ad, ae


dot = compiled(_dot, reorder=True)
four_dots = compiled(_four_dots, reorder=True)


@compiled
def add_rows(result: Floats, table: Floats, index: Whole, factor: Floats, count: int) -> None:
    """Add `factor[i] * table[index[i]]` for all i below count; both lists need room for AT_ONCE more."""
    while count % AT_ONCE:
        index[count], factor[count] = 0, 0
        count += 1
    for i in range(0, count, AT_ONCE):
        f0, f1, f2, f3, f4, f5 = factor[i], factor[i + 1], factor[i + 2], factor[i + 3], factor[i + 4], factor[i + 5]
        t0, t1, t2 = table[index[i]], table[index[i + 1]], table[index[i + 2]]
        t3, t4, t5 = table[index[i + 3]], table[index[i + 4]], table[index[i + 5]]
        for j in range(len(result)):
            low = f2 * t2[j] + (f1 * t1[j] + (f0 * t0[j] + result[j]))
            result[j] = f5 * t5[j] + (f4 * t4[j] + (f3 * t3[j] + low))


@compiled
def log_softmax(values: Floats) -> None:
    """In place. The normaliser is added up from the left, in float64."""
    top = values[0]
    for i in range(1, len(values)):
        top = max(top, values[i])
    total = 0.0
    for i in range(len(values)):
        values[i] -= top
        total += np.exp(values[i])
    shift = values.dtype.type(np.log(total))
    for i in range(len(values)):
        values[i] -= shift


# -- pairs -----------------------------------------------------------------------------------------------------------


@compiled
def pair_products(states: Floats, label: Floats, stop: Floats, starts: Whole, items: Whole, found: Floats) -> None:
    """(P,) states[m] . label[items[p]] for the pairs p of each m; the item behind the last label is stop."""
    n_labels = len(label) - 1
    for m in range(len(states)):
        for p in range(starts[m], starts[m + 1]):
            found[p] = dot(stop if items[p] == n_labels else label[items[p]], states[m])


@compiled
def gradient_of_states(grad: Floats, label: Floats, stop: Floats, starts: Whole, items: Whole, found: Floats) -> None:
    """(M, C) the gradient of `pair_products` for the states; `found` comes filled with zeros."""
    n_labels, most = len(label) - 1, 0
    for m in range(len(found)):
        most = max(most, starts[m + 1] - starts[m])
    index, factor = np.empty(most + AT_ONCE, np.int64), np.empty(most + AT_ONCE, grad.dtype)
    for m in range(len(found)):
        count = 0
        for p in range(starts[m], starts[m + 1]):
            if items[p] == n_labels:
                for j in range(len(stop)):
                    found[m, j] += grad[p] * stop[j]
            else:
                index[count], factor[count] = items[p], grad[p]
                count += 1
        add_rows(found[m], label, index, factor, count)


@compiled
def gradient_of_labels(grad: Floats, states: Floats, starts: Whole, items: Whole, found: Floats) -> None:
    """(A, C) the gradient of `pair_products` for the labels and, in the last row, stop; `found` comes as zeros."""
    ends, place, most = np.zeros(len(found) + 1, np.int64), np.zeros(len(found), np.int64), 0
    for p in range(len(items)):
        ends[items[p] + 1] += 1
    for j in range(len(found)):
        most, place[j] = max(most, ends[j + 1]), ends[j]
        ends[j + 1] += ends[j]
    rows, values = np.empty(len(items), np.int64), np.empty(len(items), grad.dtype)
    for m in range(len(states)):
        for p in range(starts[m], starts[m + 1]):
            rows[place[items[p]]], values[place[items[p]]] = m, grad[p]
            place[items[p]] += 1
    index, factor = np.empty(most + AT_ONCE, np.int64), np.empty(most + AT_ONCE, grad.dtype)
    for j in range(len(found)):
        count = ends[j + 1] - ends[j]
        for i in range(count):
            index[i], factor[i] = rows[ends[j] + i], values[ends[j] + i]
        add_rows(found[j], states, index, factor, count)


@compiled
def segment_log_softmax(values: Floats, starts: Whole) -> None:
    """In place, each segment for itself."""
    for m in range(len(starts) - 1):
        if starts[m + 1] > starts[m]:
            log_softmax(values[starts[m] : starts[m + 1]])


@compiled
def gradient_of_log_softmax(grad: Floats, found: Floats, starts: Whole, result: Floats) -> None:
    """(P,) from the gradient for (P,) log-probabilities `found`: grad - exp(found) * the segment's sum of grad."""
    for m in range(len(starts) - 1):
        total = 0.0
        for p in range(starts[m], starts[m + 1]):
            total += grad[p]
        for p in range(starts[m], starts[m + 1]):
            result[p] = grad[p] - np.exp(found[p]) * total
