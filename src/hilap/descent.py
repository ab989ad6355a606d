"""Linear models around a prior: dual coordinate descent, one document after the other.

min over w:  1/2 |w - prior|^2  +  cost * sum over documents of loss(y_i w.x_i)

for the hinge, the squared hinge (Hsieh et al. 2008) and the logistic loss (Yu, Huang and Lin 2011). liblinear solves
the same problem for prior 0 only. In the dual, w = prior + sum a_i y_i x_i with 0 <= a_i (<= cost, for hinge and
logistic), so a prior only says where w starts, and the a_i of an earlier prior are a good start for a new one.

Documents are the rows of a CSR matrix; every document has one more feature, the constant 1, whose weight is the offset.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.compiling import compiled

HINGE, SQUARED, LOGISTIC = 0, 1, 2
LOSSES = {"hinge": HINGE, "squared_hinge": SQUARED, "logistic": LOGISTIC}

Floats = NDArray[np.float64]
Whole = NDArray[Any]  # int32 or int64

_NEWTON_STEPS = 50


@compiled
def margin(data: Floats, indices: Whole, start: int, end: int, w: Floats) -> Any:
    """w.x of one document; the last weight is the offset."""
    total = w[-1]
    for k in range(start, end):
        total += data[k] * w[indices[k]]
    return total


@compiled
def add(data: Floats, indices: Whole, start: int, end: int, factor: float, w: Floats) -> None:
    """Add factor times a document to w."""
    for k in range(start, end):
        w[indices[k]] += factor * data[k]
    w[-1] += factor


@compiled
def lengths(data: Floats, starts: Whole) -> Floats:
    """(n,) |x|^2 of every document, with its constant feature."""
    found = np.ones(len(starts) - 1)
    for i in range(len(found)):
        for k in range(starts[i], starts[i + 1]):
            found[i] += data[k] * data[k]
    return found


@compiled
def shuffle(order: Whole, count: int, state: np.uint64) -> Any:
    """Shuffle the first of `order`; gives the next state. Numba's own random numbers are shared by a whole thread."""
    for i in range(count - 1, 0, -1):
        state ^= state >> np.uint64(12)
        state ^= state << np.uint64(25)
        state ^= state >> np.uint64(27)
        j = np.int64((state * np.uint64(2685821657736338717)) >> np.uint64(33)) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return state


@compiled
def begin(
    data: Floats, indices: Whole, starts: Whole, rows: Whole, signs: NDArray[np.int8], alpha: Floats, w: Floats
) -> None:
    """Turn a prior in w into prior + sum a_i y_i x_i."""
    for i in range(len(rows)):
        if alpha[i] != 0.0:
            add(data, indices, starts[rows[i]], starts[rows[i] + 1], alpha[i] * signs[i], w)


@compiled
def descend_hinge(
    data: Floats,
    indices: Whole,
    starts: Whole,
    norms: Floats,
    rows: Whole,
    signs: NDArray[np.int8],
    cost: float,
    squared: bool,
    alpha: Floats,
    w: Floats,
    tolerance: float,
    passes: int,
    seed: int,
) -> int:
    """Change alpha and w until no gradient of the dual violates optimality by more than the tolerance.

    Variables that stay at a bound are set aside, and looked at again in the end (shrinking). Gradients that lie near
    each other are no end if they all have the same sign: then all variables still go the same way. Gives the number of
    passes; one more than allowed where that was not enough.
    """
    ridge = 0.5 / cost if squared else 0.0
    most = np.inf if squared else cost
    order = np.arange(len(rows))
    active = len(rows)
    high_before, low_before = np.inf, -np.inf
    state = np.uint64(seed) * np.uint64(7919) + np.uint64(88172645463325252)
    for step in range(passes):
        high, low = -np.inf, np.inf
        state = shuffle(order, active, state)
        k = 0
        while k < active:
            i = order[k]
            first, last = starts[rows[i]], starts[rows[i] + 1]
            gradient = signs[i] * margin(data, indices, first, last, w) - 1.0 + ridge * alpha[i]
            at_bound = (alpha[i] == 0.0 and gradient > high_before) or (alpha[i] == most and gradient < low_before)
            if at_bound:
                active -= 1
                order[k], order[active] = order[active], order[k]
                continue
            projected = gradient
            if alpha[i] == 0.0:
                projected = min(gradient, 0.0)
            elif alpha[i] == most:
                projected = max(gradient, 0.0)
            high, low = max(high, projected), min(low, projected)
            if abs(projected) > 1e-12:
                before = alpha[i]
                alpha[i] = min(max(before - gradient / (norms[rows[i]] + ridge), 0.0), most)
                add(data, indices, first, last, (alpha[i] - before) * signs[i], w)
            k += 1
        if high - low <= tolerance:
            if active == len(rows) and max(high, -low) <= tolerance:
                return step + 1
            active, high_before, low_before = len(rows), np.inf, -np.inf
            continue
        high_before = high if high > 0 else np.inf
        low_before = low if low < 0 else -np.inf
    return passes + 1


@compiled
def _logistic_root(a: float, b: float, old: float, cost: float) -> float:
    """The t in (0, cost) where a (t - old) + b + log(t / (cost - t)) = 0.

    The half of the interval with the root is known from the sign in the middle. There Newton's method is applied to the
    distance s from the end, on which the function is concave and rising; it can only jump beyond the end, never past it
    for good.
    """
    upper = a * (0.5 * cost - old) + b < 0  # then s = cost - t
    s = cost - old if upper else old
    if upper:
        b = -b
    before = s
    if s > 0.5 * cost:
        s *= 0.1
    for _ in range(_NEWTON_STEPS):
        value = a * (s - before) + b + np.log(s / (cost - s))
        if abs(value) < 1e-12:
            break
        further = s - value / (a + cost / (s * (cost - s)))
        s = 0.1 * s if further <= 0 else min(further, 0.5 * cost)
        if s < 1e-300:
            s = 1e-300
            break
    # Never the end itself, to which a smaller distance would be rounded: from there the next visit finds no number.
    return cost - max(s, 1e-15 * cost) if upper else s


@compiled
def descend_logistic(
    data: Floats,
    indices: Whole,
    starts: Whole,
    norms: Floats,
    rows: Whole,
    signs: NDArray[np.int8],
    cost: float,
    alpha: Floats,
    w: Floats,
    tolerance: float,
    passes: int,
    seed: int,
) -> int:
    """As `descend_hinge`; every alpha must lie inside (0, cost), where the logistic loss keeps it.

    A variable whose slope is below a tenth of the tolerance is left as it is: most documents that do not have a label
    are soon so, and looking is a quarter of the work of moving.
    """
    enough = 0.1 * tolerance
    order = np.arange(len(rows))
    state = np.uint64(seed) * np.uint64(7919) + np.uint64(88172645463325252)
    for step in range(passes):
        worst = 0.0
        state = shuffle(order, len(rows), state)
        for i in order:
            first, last = starts[rows[i]], starts[rows[i] + 1]
            agreement = signs[i] * margin(data, indices, first, last, w)
            slope = agreement + np.log(alpha[i] / (cost - alpha[i]))
            worst = max(worst, abs(slope))
            if abs(slope) > enough:
                before = alpha[i]
                alpha[i] = _logistic_root(norms[rows[i]], agreement, before, cost)
                add(data, indices, first, last, (alpha[i] - before) * signs[i], w)
        if worst <= tolerance:
            return step + 1
    return passes + 1


@compiled
def logistic_duals(
    data: Floats, indices: Whole, starts: Whole, signs: NDArray[np.int8], cost: float, w: Floats
) -> Floats:
    """(n,) the dual variables of the logistic loss that would be optimal if w were; always inside (0, cost)."""
    found = np.empty(len(signs))
    for i in range(len(signs)):
        z = signs[i] * margin(data, indices, starts[i], starts[i + 1], w)
        found[i] = cost / (1.0 + np.exp(min(max(z, -20.0), 20.0)))
    return found


@compiled
def total_loss(
    data: Floats, indices: Whole, starts: Whole, rows: Whole, signs: NDArray[np.int8], kind: int, w: Floats
) -> float:
    """The sum of a loss over documents."""
    total = 0.0
    for i in range(len(rows)):
        z = signs[i] * margin(data, indices, starts[rows[i]], starts[rows[i] + 1], w)
        if kind == LOGISTIC:
            total += np.log1p(np.exp(-abs(z))) + max(-z, 0.0)
        else:
            short = max(1.0 - z, 0.0)
            total += short * short if kind == SQUARED else short
    return total


@compiled
def multiply(
    data: Floats,
    indices: Whole,
    starts: Whole,
    values: NDArray[np.float32],
    columns: Whole,
    begins: Whole,
    result: Floats,
) -> None:
    """Add (n, F) times (F, L) to (n, L), both CSR, feature after feature: rows do not know of each other."""
    for i in range(len(result)):
        line = result[i]
        for k in range(starts[i], starts[i + 1]):
            f, x = indices[k], data[k]
            for j in range(begins[f], begins[f + 1]):
                line[columns[j]] += x * values[j]


@compiled
def cross_hinge(
    data: Floats,
    indices: Whole,
    starts: Whole,
    norms: Floats,
    part: NDArray[np.int64],
    parts: int,
    target: NDArray[np.bool_],
    cost: float,
    squared: bool,
    tolerance: float,
    passes: int,
    margins: Floats,
    w: Floats,
) -> None:
    """A linear SVM, cross-fitted: for each part of the documents, a model of the others gives the margins of the part.

    A model without examples, or without counterexamples, is -1 or 1 everywhere. Every model begins anew: with the
    variables of the one before, most of whose documents it shares, it takes as many passes.

    Parameters
    ----------
    data, indices, starts, norms
        The documents, as everywhere here.
    part, parts
        (R, n) the part of each document in each of R partitions, and how many parts each has.
    target
        (n,) whether a document is an example.
    cost, squared, tolerance, passes
        As of `descend_hinge`.
    margins
        (R, n) is filled with the margins of documents by models that have not seen them.
    w
        (F + 1,) the mean of all models is added to it.
    """
    repeats, n = part.shape
    own = np.empty_like(w)
    for number in range(repeats * parts):
        repeat, left_out = number // parts, number % parts
        rows = np.flatnonzero(part[repeat] != left_out)
        positive = target[rows].sum()
        own[:] = 0.0
        if positive == 0 or positive == len(rows):
            own[-1] = -1.0 if positive == 0 else 1.0
        else:
            signs, alpha = np.where(target[rows], 1, -1).astype(np.int8), np.zeros(len(rows))
            goal = (tolerance, passes, number)
            descend_hinge(data, indices, starts, norms, rows, signs, cost, squared, alpha, own, *goal)
        w += own / (repeats * parts)
        for i in range(n):
            if part[repeat, i] == left_out:
                margins[repeat, i] = margin(data, indices, starts[i], starts[i + 1], own)


__all__ = [
    "HINGE",
    "LOGISTIC",
    "LOSSES",
    "SQUARED",
    "add",
    "begin",
    "cross_hinge",
    "descend_hinge",
    "descend_logistic",
    "lengths",
    "logistic_duals",
    "margin",
    "multiply",
    "shuffle",
    "total_loss",
]
