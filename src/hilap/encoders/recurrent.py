"""The inner loops of a GRU on the CPU, compiled: row after row, step after step.

What the inputs add to the gates is one product for all steps, made before; what the states add is here. The way back
leaves what each step asks of the gates, so that the gradients of the weights are one product for all steps again.

Every row is computed by itself, in one order: its bits do not depend on its batch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilap.compiling import compiled

Floats = NDArray[Any]
Whole = NDArray[np.int64]
WIDTH = 16
"""Weights come with zeros behind them up to a multiple of this width, so that no loop has a slow rest."""

# exp(x) = 2^n exp(r) with r at most ln(2) / 2 away from 0, where 13 terms of its series are exact to the last bits.
# The loops that call it run on several numbers at a time; with the C library's, one number after the other, the gates
# took most of the time of a step. The first part of ln(2) has so few digits that n times it is exact.
_PER_LN2 = 1 / math.log(2)
_LN2_BEGIN, _LN2_REST = 0.6931471796706319, 8.893134238886677e-10
_SERIES = tuple(1 / math.factorial(power) for power in range(14))
_MOST = 700.0  # beyond, a double overflows; gates have long been 0 or 1


def _exp(x: float) -> float:
    """The exponential of a double."""
    if x > _MOST:
        x = _MOST
    if x < -_MOST:
        x = -_MOST
    n = np.floor(x * _PER_LN2 + 0.5)
    r = (x - n * _LN2_BEGIN) - n * _LN2_REST
    total = _SERIES[13]
    for power in range(12, -1, -1):
        total = total * r + _SERIES[power]
    # 2^n is a double with no digits and the exponent n. By way of 32 bits, which is how several are turned at a time.
    power_of_two: float = np.int64((np.int64(np.int32(n)) + 1023) << 52).view(np.float64)
    return total * power_of_two


def _sigmoids(found: Floats, first: Floats, second: Floats) -> None:
    """Of the sums of two rows."""
    for i in range(len(found)):
        found[i] = 1.0 / (1.0 + exp(-(np.float64(first[i]) + np.float64(second[i]))))


def _new_state(found: Floats, given: Floats, reset: Floats, added: Floats) -> None:
    """tanh(given + reset * added)."""
    for i in range(len(found)):
        found[i] = 1.0 - 2.0 / (1.0 + exp(2.0 * (np.float64(given[i]) + np.float64(reset[i]) * np.float64(added[i]))))


def _add_products(total: Floats, rows: Floats, factors: Floats) -> None:
    """Add (K, N) rows, each times its factor: three at a time, so that the sums are fetched and put back less often."""
    full = len(factors) // 3 * 3
    for k in range(0, full, 3):
        first, second, third = factors[k], factors[k + 1], factors[k + 2]
        for i in range(len(total)):
            total[i] += rows[k, i] * first + rows[k + 1, i] * second + rows[k + 2, i] * third
    for k in range(full, len(factors)):
        for i in range(len(total)):
            total[i] += rows[k, i] * factors[k]


exp = compiled(_exp, fast={"contract"})
sigmoids = compiled(_sigmoids, fast={"contract"})
new_state = compiled(_new_state, fast={"contract"})
add_products = compiled(_add_products, fast={"contract"})


@compiled
def _set(total: Floats, row: Floats) -> None:
    for i in range(len(total)):
        total[i] = row[i]


@compiled
def _mix(found: Floats, new: Floats, update: Floats, before: Floats) -> None:
    for i in range(len(found)):
        found[i] = new[i] + update[i] * (before[i] - new[i])


@compiled
def _at(step: int, start: int, end: int, backward: bool) -> int:
    """Where the vector of a step is."""
    return end - 1 - step if backward else start + step


@compiled
def states_of_rows(
    inputs: Floats, weight: Floats, bias: Floats, starts: Whole, backward: bool, states: Floats, gates: Floats
) -> None:
    """Fill (M, H) `states`, and (M, 4H) `gates` unless it is empty, which the gradient needs.

    Parameters
    ----------
    inputs
        (M, 3H) what the vectors of all rows add to reset, update and new state, as torch orders them.
    weight, bias
        (H, 3H) and (3H,) what the state before adds to them, with zeros behind: the weight as torch has it, turned.
    starts
        (S + 1,) where each row starts.
    backward
        Whether rows are read from their end.
    gates
        Reset, update, new state, and what the state before added to the new one.
    """
    hidden = states.shape[1]
    added, nothing = np.empty_like(bias), np.zeros(hidden, inputs.dtype)
    scratch = np.empty(4 * hidden, inputs.dtype)
    for row in range(len(starts) - 1):
        before = nothing
        for step in range(starts[row + 1] - starts[row]):
            at = _at(step, starts[row], starts[row + 1], backward)
            noted = gates[at] if len(gates) else scratch
            _set(added, bias)
            if step > 0:
                add_products(added, weight, before)
            of_state = added[2 * hidden : 3 * hidden]
            sigmoids(noted[: 2 * hidden], inputs[at], added)
            new = noted[2 * hidden : 3 * hidden]
            new_state(new, inputs[at, 2 * hidden :], noted, of_state)
            _set(noted[3 * hidden :], of_state)
            _mix(states[at], new, noted[hidden:], before)
            before = states[at]


@compiled
def _ask(
    here: Floats, before: Floats, gates: Floats, of_inputs: Floats, of_added: Floats, asked: Floats, hidden: int
) -> None:
    """The gradients of one step, and in `asked` what goes past the gates to the state before."""
    one = gates.dtype.type(1)  # a plain 1 would make doubles of all
    for j in range(hidden):
        reset, update = gates[j], gates[hidden + j]
        new, added = gates[2 * hidden + j], gates[3 * hidden + j]
        of_state = here[j] + asked[j]
        of_new = of_state * (one - update) * (one - new * new)
        of_reset = of_new * added * reset * (one - reset)
        of_update = of_state * (before[j] - new) * update * (one - update)
        of_inputs[j] = of_reset
        of_inputs[hidden + j] = of_update
        of_inputs[2 * hidden + j] = of_new
        of_added[j] = of_reset
        of_added[hidden + j] = of_update
        of_added[2 * hidden + j] = of_new * reset
        asked[j] = of_state * update


@compiled
def gradient_of_rows(
    grad: Floats,
    weight: Floats,
    starts: Whole,
    backward: bool,
    states: Floats,
    gates: Floats,
    of_inputs: Floats,
    of_added: Floats,
    befores: Floats,
) -> None:
    """Fill (M, 3H) `of_inputs` and `of_added`, the gradients of what inputs and states add to the gates.

    Parameters
    ----------
    grad
        (M, H) of the states.
    weight
        (3H, H) what the state before adds, as torch has it, with zeros behind.
    starts, backward, states, gates
        As `states_of_rows` takes and fills them.
    befores
        (M, H) is filled with the state before each step.
    """
    hidden = states.shape[1]
    asked, nothing = np.empty(weight.shape[1], grad.dtype), np.zeros(hidden, grad.dtype)
    for row in range(len(starts) - 1):
        asked[:] = 0
        for step in range(starts[row + 1] - starts[row] - 1, -1, -1):
            at = _at(step, starts[row], starts[row + 1], backward)
            earlier = states[_at(step - 1, starts[row], starts[row + 1], backward)] if step > 0 else nothing
            _set(befores[at], earlier)
            _ask(grad[at], earlier, gates[at], of_inputs[at], of_added[at], asked, hidden)
            if step > 0:
                add_products(asked, weight, of_added[at])


__all__ = ["WIDTH", "gradient_of_rows", "states_of_rows"]
