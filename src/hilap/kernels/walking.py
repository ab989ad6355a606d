"""Walks: states, probabilities of open actions, choices, placing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilap.kernels.compiling import Floats, Whole, compiled
from hilap.kernels.sums import AT_ONCE, add_rows, dot, four_dots, log_softmax

SLICE = 60  # hidden units handled together: their rows of the second layer stay in the nearest cache
BLOCK = 32  # walks taken side by side
ROOM = 1_000_000  # their labels together: fewer walks where a taxonomy is huge, so that their tables stay in the cache
NOTHING, OPEN, PLACED = 0, 1, 2  # what a label is to a walk; PLACED + t: placed at step t


class Weights(NamedTuple):
    """The numbers of a policy, as the kernels read them."""

    label: Floats  # (A, C) label embeddings; the last row is the root's
    stop: Floats  # (C,) the embedding of stop
    of_label: Floats  # (H, C) the label's part of the first layer
    halves: Floats  # (A, H) the label's half of the first layer, where it is known
    known: NDArray[np.bool_]  # (A,)
    into_state: Floats  # (H, C) the second layer, a row for each hidden unit
    state_bias: Floats  # (C,)
    bias: Floats  # (A,) added to the action scores
    temperature: Floats  # (1,)


class Edges(NamedTuple):
    """A taxonomy as ragged rows: what lies below each place (the last is the root), what each label places."""

    below: Whole  # (L + 2,) starts
    children: Whole  # ascending in each row
    places: Whole  # (L + 1,) starts
    placed: Whole  # the label itself and, with the rule `ancestors`, all above it


class Standing(NamedTuple):
    """Where R walks stand."""

    status: NDArray[np.int32]  # (R, L) NOTHING, OPEN or PLACED + step
    frontier: NDArray[np.int32]  # (R, L) the open labels, ascending
    width: Whole  # (R,) how many are open


@compiled
def project(weights: Weights, at: Whole, count: int) -> None:
    """Compute W_l l for the first of the places `at` where it is not known yet, four at a time."""
    new, n = np.empty(count + 3, np.int64), 0
    for i in range(count):
        if not weights.known[at[i]]:
            new[n] = at[i]
            n += 1
            weights.known[at[i]] = True
    for i in range(n, n + 3):
        new[i] = new[0]  # always four, so that a row's bits do not depend on how many there are
    table, halves = weights.label, weights.halves
    for first in range(0, len(weights.of_label) if n else 0, SLICE):
        for i in range(0, n, 4):
            p, q, r, s = new[i], new[i + 1], new[i + 2], new[i + 3]
            for k in range(first, min(first + SLICE, len(weights.of_label))):
                found = four_dots(weights.of_label[k], table[p], table[q], table[r], table[s])
                halves[p, k], halves[q, k], halves[r, k], halves[s, k] = found


@compiled
def states_of(weights: Weights, half: Floats, docs: Whole, at: Whole, count: int, states: Floats, first: int) -> None:
    """Rows of s_t = ReLU(W1 ReLU(half[docs] + halves[at]) + b), from `first` on, for the first of `docs` and `at`.

    Zeros of the inner ReLU cost nothing.
    """
    project(weights, at, count)
    width = states.shape[1]
    index, factor = np.empty(SLICE + AT_ONCE, np.int64), np.empty(SLICE + AT_ONCE, half.dtype)
    for r in range(first, first + count):
        for j in range(width):
            states[r, j] = weights.state_bias[j]
    for begin in range(0, half.shape[1], SLICE):
        end = min(begin + SLICE, half.shape[1])
        for i in range(count):
            mine, place, n = half[docs[i]], weights.halves[at[i]], 0
            for k in range(begin, end):
                value = mine[k] + place[k]
                index[n], factor[n] = k, value
                n += not value <= 0  # what is not a number goes on
            add_rows(states[first + i], weights.into_state, index, factor, n)
    for r in range(first, first + count):
        for j in range(width):
            if states[r, j] < 0:
                states[r, j] = 0


@compiled
def open_log_probs(
    weights: Weights, state: Floats, labels: NDArray[np.int32], flat: Floats, stops: bool, found: Floats
) -> None:
    """(N + 1,) log pi of some labels, and of stop where that is open; `flat` (L,) or empty."""
    n = len(labels)
    for i in range(n):
        j = labels[i]
        value = dot(weights.label[j], state) + weights.bias[j]
        if len(flat):
            value += flat[j]
        found[i] = value / weights.temperature[0]
    if stops:
        found[n] = (dot(weights.stop, state) + weights.bias[-1]) / weights.temperature[0]
        log_softmax(found[: n + 1])
    else:
        found[n] = -np.inf
        log_softmax(found[:n])


@compiled
def log_probs_of(
    weights: Weights, states: Floats, docs: Whole, open_: NDArray[np.bool_], flat: Floats, found: Floats
) -> None:
    """(R, A) log pi where `open_` (R, A) are open; `found` comes filled with minus infinity."""
    n_labels = open_.shape[1] - 1
    labels, values = np.empty(n_labels, np.int32), np.empty(n_labels + 1, states.dtype)
    for r in range(len(states)):
        count = 0
        for j in range(n_labels):
            labels[count] = j
            count += open_[r, j]
        if count or open_[r, n_labels]:
            mine = flat[docs[r]] if len(flat) else flat[:0].ravel()
            open_log_probs(weights, states[r], labels[:count], mine, bool(open_[r, n_labels]), values)
            for i in range(count):
                found[r, labels[i]] = values[i]
            found[r, n_labels] = values[count]


@compiled
def pick(values: Floats, labels: NDArray[np.int32], follow: NDArray[np.bool_], uniform: float) -> int:
    """The position chosen: the best for a negative `uniform`, else drawn. With `follow` (L,) only oracle actions."""
    n = len(labels)
    some = False
    if len(follow):
        for i in range(n):
            some |= follow[labels[i]]
    best, total = -1, 0.0
    for i in range(n + 1):
        if not len(follow) or (follow[labels[i]] if i < n else not some):
            total += np.exp(np.float64(values[i]))
            if best < 0 or values[i] > values[best]:
                best = i
    if uniform < 0:
        return best
    left = uniform * total
    for i in range(n + 1):
        if not len(follow) or (follow[labels[i]] if i < n else not some):
            left -= np.exp(np.float64(values[i]))
            if left < 0:
                return i
    return best  # rounding used the last of it up


@compiled
def start(edges: Edges, standing: Standing) -> None:
    """All walks at the root: the top labels are open. The status comes filled with NOTHING."""
    first, end = edges.below[-2], edges.below[-1]
    for r in range(len(standing.width)):
        standing.width[r] = end - first
        for k in range(first, end):
            standing.frontier[r, k - first] = edges.children[k]
            standing.status[r, edges.children[k]] = OPEN


@compiled
def take(edges: Edges, standing: Standing, r: int, action: int, step: int) -> None:
    """Place a label, and what comes with it, in walk r; open what lies below; keep the frontier ascending."""
    status, frontier = standing.status[r], standing.frontier[r]
    opens = 0
    for p in range(edges.places[action], edges.places[action + 1]):
        label = edges.placed[p]
        if status[label] < PLACED:
            status[label] = PLACED + step
            opens += edges.below[label + 1] - edges.below[label]
    count = 0
    for i in range(standing.width[r]):
        frontier[count] = frontier[i]
        count += status[frontier[i]] == OPEN
    fresh = np.empty(opens, np.int32)
    for p in range(edges.places[action], edges.places[action + 1]):
        label = edges.placed[p]
        if status[label] != PLACED + step:
            continue
        new = 0
        for k in range(edges.below[label], edges.below[label + 1]):
            child = edges.children[k]
            if status[child] == NOTHING:
                status[child] = OPEN
                fresh[new] = child
                new += 1
        i, k, end = count - 1, new - 1, count + new - 1
        count += new
        while k >= 0:  # two ascending lists into one, from the back
            if i >= 0 and frontier[i] > fresh[k]:
                frontier[end] = frontier[i]
                i -= 1
            else:
                frontier[end] = fresh[k]
                k -= 1
            end -= 1
    standing.width[r] = count


@compiled
def clear(edges: Edges, standing: Standing, r: int, actions: Whole) -> None:
    """Forget a walk that took these actions, without looking at all labels."""
    for k in range(edges.below[-2], edges.below[-1]):
        standing.status[r, edges.children[k]] = NOTHING
    for action in actions:
        if action == len(edges.places) - 1:
            break
        for p in range(edges.places[action], edges.places[action + 1]):
            label = edges.placed[p]
            standing.status[r, label] = NOTHING
            for k in range(edges.below[label], edges.below[label + 1]):
                standing.status[r, edges.children[k]] = NOTHING


@compiled
def repeated(docs: Whole) -> bool:
    """Whether two neighbours are the same."""
    same = False
    for i in range(1, len(docs)):
        same |= docs[i] == docs[i - 1]
    return same


@compiled
def recall(docs: Whole, stood: Whole, state: Whole, r: int, at: int, step: int) -> int:
    """The number of the state of walk r at a place, if a walk of its document has stood there already, or -1.

    Walks of one document stand side by side, and those before r have taken this step already.
    """
    first = r
    while first > 0 and docs[first - 1] == docs[r]:
        first -= 1
    q = first
    while q < len(docs) and docs[q] == docs[r]:
        for t in range(step + 1 if q < r else step):
            if stood[q, t] == at:
                return int(state[q, t])
        q += 1
    return -1


@compiled
def stand(docs: Whole, stood: Whole, state: Whole, r: int, at: int, step: int, number: int, several: bool) -> bool:
    """Note where walk r stands, and the number of its state: that of a known one, or a new one. Whether it is new."""
    known = recall(docs, stood, state, r, at, step) if several else -1
    stood[r, step] = at
    state[r, step] = number if known < 0 else known
    return known < 0


@compiled
def decide(
    weights: Weights,
    edges: Edges,
    standing: Standing,
    r: int,
    state: Floats,
    flat: Floats,
    follow: NDArray[np.bool_],
    uniform: float,
    step: int,
    values: Floats,
) -> tuple[int, float]:
    """One step of walk r: score what is open, choose, place. The action and its log-probability."""
    labels = standing.frontier[r, : standing.width[r]]
    open_log_probs(weights, state, labels, flat, True, values)
    chosen = pick(values, labels, follow, uniform)
    if chosen == len(labels):
        standing.width[r] = 0
        return len(weights.bias) - 1, values[chosen]
    action = int(labels[chosen])
    take(edges, standing, r, action, step)
    return action, values[chosen]


@compiled
def walk(
    weights: Weights,
    edges: Edges,
    half: Floats,
    docs: Whole,
    flat: Floats,
    follow: NDArray[np.bool_],
    uniform: NDArray[np.float64],
    actions: Whole,
    log_prob: NDArray[np.float64],
) -> int:
    """Whole walks of documents `docs` (R,) from the root to stop, at most T steps, BLOCK of them side by side.

    Where neighbours are walks of one document, the state at a place is computed once for all of them.

    `half` (B, H) and `flat` (B, L) or empty describe the documents; `follow` (R, L) or empty are sets whose oracle
    actions alone are taken; `uniform` (T, R) decides the draws, negative for the best action, and may have length 1 on
    either side. Writes `actions` (R, T), which come as stop, and adds to `log_prob` (R,). Gives back the number of
    steps at which some walk had a choice.
    """
    n_labels, steps, most = len(weights.bias) - 1, 0, actions.shape[1]
    size = max(1, min(BLOCK, len(docs), ROOM // (n_labels + 1)))
    standing = Standing(
        np.zeros((size, n_labels), np.int32), np.empty((size, n_labels), np.int32), np.zeros(size, np.int64)
    )
    several = repeated(docs)
    memory = np.empty((size * most if several else size, len(weights.stop)), half.dtype)
    values, no_logits, no_sets = np.empty(n_labels + 1, half.dtype), flat[:0].ravel(), follow[:0].ravel()
    at, stood, state = np.empty(size, np.int64), np.empty((size, most), np.int64), np.empty((size, most), np.int64)
    new_docs, new_at = np.empty(size, np.int64), np.empty(size, np.int64)
    for first in range(0, len(docs), size):
        n, used, mine = min(size, len(docs) - first), 0, docs[first : first + size]
        start(edges, standing)
        for r in range(n):
            at[r] = n_labels
            for t in range(most):
                stood[r, t] = -1
        for t in range(most):
            new, going, used = 0, 0, used if several else 0
            for r in range(n):
                going += standing.width[r] > 0
                if standing.width[r] and stand(mine, stood, state, r, at[r], t, used + new, several):
                    new_docs[new], new_at[new] = mine[r], at[r]
                    new += 1
            if not going:
                break
            states_of(weights, half, new_docs, new_at, new, memory, used)
            steps, used = max(steps, t + 1), used + new
            for r in range(n):
                if standing.width[r]:
                    row = first + r
                    logits, right = flat[mine[r]] if len(flat) else no_logits, follow[row] if len(follow) else no_sets
                    draw, now = uniform[t % len(uniform), row % uniform.shape[1]], memory[state[r, t]]
                    at[r], chance = decide(weights, edges, standing, r, now, logits, right, draw, t, values)
                    actions[row, t] = at[r]
                    log_prob[row] += chance
        for r in range(n):
            clear(edges, standing, r, actions[first + r])
    return steps


@compiled
def mark(edges: Edges, actions: Whole, placed: NDArray[np.bool_]) -> None:
    """(R, L) the sets that the walks `actions` (R, T) place; they come filled with False."""
    for r in range(len(actions)):
        for action in actions[r]:
            if action == len(edges.places) - 1:
                break
            for p in range(edges.places[action], edges.places[action + 1]):
                placed[r, edges.placed[p]] = True


@compiled
def longer(array: Any, size: int) -> Any:
    """The array with room for so many, and for more soon."""
    if size <= len(array):
        return array
    more = np.empty(max(size, 2 * len(array)), array.dtype)
    for i in range(len(array)):
        more[i] = array[i]
    return more


@compiled
def retrace(edges: Edges, actions: Whole) -> tuple[Whole, Whole, Whole, Whole, Whole]:
    """What could be chosen and what was placed, decision by decision, in walks (R, T), walk after walk.

    Returns (M,) the walk of each decision, (M + 1,) starts and (P,) the actions open at it, ascending and stop last,
    (M + 1,) starts and (Q,) the labels it placed. A walk's decisions are its steps 0, 1, 2, ...
    """
    n, n_labels = len(actions), len(edges.places) - 1
    standing = Standing(np.zeros((1, n_labels), np.int32), np.empty((1, n_labels), np.int32), np.zeros(1, np.int64))
    row, starts, new_starts = np.empty(64, np.int64), np.zeros(65, np.int64), np.zeros(65, np.int64)
    items, new = np.empty(1024, np.int64), np.empty(64, np.int64)
    m = 0
    for r in range(n):
        start(edges, standing)
        for t in range(actions.shape[1]):
            count = standing.width[0]
            if not count:
                break
            row, starts, new_starts = longer(row, m + 1), longer(starts, m + 2), longer(new_starts, m + 2)
            items = longer(items, starts[m] + count + 1)
            for i in range(count):
                items[starts[m] + i] = standing.frontier[0, i]
            items[starts[m] + count] = n_labels
            row[m], starts[m + 1], end, action = r, starts[m] + count + 1, new_starts[m], actions[r, t]
            if action == n_labels:
                standing.width[0] = 0
            else:
                take(edges, standing, 0, action, t)
                for p in range(edges.places[action], edges.places[action + 1]):
                    if standing.status[0, edges.placed[p]] == PLACED + t:
                        new = longer(new, end + 1)
                        new[end] = edges.placed[p]
                        end += 1
            m += 1
            new_starts[m] = end
        clear(edges, standing, 0, actions[r])
    return row[:m], starts[: m + 1], items[: starts[m]], new_starts[: m + 1], new[: new_starts[m]]
