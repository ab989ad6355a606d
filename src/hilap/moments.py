"""One step of Adam over all rows of a weight, some of which have a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.compiling import compiled

Floats = NDArray[Any]
Whole = NDArray[np.int64]


def _move(weight: Floats, mean: Floats, square: Floats, grad: Floats, constants: Floats) -> None:
    """Some numbers, in place; an empty gradient is one of zeros."""
    rate, first, second, per_root, small, decay = constants
    one = constants.dtype.type(1)  # a plain 1 would make doubles of all
    if len(grad):  # twice the same, so that the many rows without a gradient read none
        for i in range(len(weight)):
            here = grad[i] + decay * weight[i]
            mean[i] = first * mean[i] + (one - first) * here
            square[i] = second * square[i] + (one - second) * here * here
            weight[i] -= rate * mean[i] / (np.sqrt(square[i]) * per_root + small)
    else:
        for i in range(len(weight)):
            here = decay * weight[i]
            mean[i] = first * mean[i] + (one - first) * here
            square[i] = second * square[i] + (one - second) * here * here
            weight[i] -= rate * mean[i] / (np.sqrt(square[i]) * per_root + small)


move = compiled(_move, fast={"contract"})


@compiled
def adam_rows(weight: Floats, mean: Floats, square: Floats, rows: Whole, grads: Floats, constants: Floats) -> None:
    """Move the (W * N,) numbers of a weight and its moments, in place.

    Parameters
    ----------
    rows, grads
        (U,) the rows with a gradient, sorted, and (U, N) their gradients.
    constants
        Of the weight's own type, that all is computed in: the rate over its correction, the shares of the old moments,
        one over the root of the correction of the squares, the smallest divisor, and the decay of weights.
    """
    width, done = grads.shape[1], 0
    nothing = grads[:0].reshape(-1)
    for k in range(len(rows)):  # rows without a gradient lie together, and go as one
        begin, end = rows[k] * width, (rows[k] + 1) * width
        move(weight[done:begin], mean[done:begin], square[done:begin], nothing, constants)
        move(weight[begin:end], mean[begin:end], square[begin:end], grads[k], constants)
        done = end
    move(weight[done:], mean[done:], square[done:], nothing, constants)
