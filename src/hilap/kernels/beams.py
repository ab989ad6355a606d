"""Beam search over label sets, document after document: what `hilap.decoding.beam` does, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hilap.kernels.compiling import Floats, Whole, compiled
from hilap.kernels.walking import NOTHING, OPEN, PLACED, Edges, Standing, Weights, open_log_probs, states_of, take


class Hypotheses(NamedTuple):
    """The unfinished and finished walks of one document, W places."""

    standing: Standing
    total: NDArray[np.float64]  # (W,) log-probability
    key: Whole  # (W,) the sum of the placed labels' words
    at: Whole  # (W,)
    done: NDArray[np.bool_]  # (W,)


class Candidates(NamedTuple):
    """The best continuations so far, best first, K places."""

    value: NDArray[np.float64]  # (K,)
    parent: Whole  # (K,)
    action: Whole  # (K,)
    key: Whole  # (K,) of the set that it leads to


@compiled
def push(found: Candidates, count: int, value: float, parent: int, action: int) -> int:
    """Put a continuation where it belongs, behind its equals; the worst falls out. How many there are."""
    most = len(found.value)
    if value == -np.inf or (count == most and not value > found.value[most - 1]):
        return count
    place = min(count, most - 1)
    while place > 0 and value > found.value[place - 1]:
        found.value[place] = found.value[place - 1]
        found.parent[place] = found.parent[place - 1]
        found.action[place] = found.action[place - 1]
        place -= 1
    found.value[place], found.parent[place], found.action[place] = value, parent, action
    return min(count + 1, most)


@compiled
def same_set(edges: Edges, status: NDArray[np.int32], p: int, q: int, action: int) -> bool:
    """Whether two walks have placed the same labels, once both have taken the action."""
    stop = len(edges.places) - 1
    for label in range(status.shape[1]):
        if (status[p, label] >= PLACED) != (status[q, label] >= PLACED):
            covered = False
            if action < stop:
                for k in range(edges.places[action], edges.places[action + 1]):
                    covered |= edges.placed[k] == label
            if not covered:
                return False
    return True


@compiled
def merge(edges: Edges, now: Hypotheses, found: Candidates, count: int, words: Whole) -> None:
    """Add up the probabilities of equal continuations at the best of them; the others get none."""
    status, stop = now.standing.status, len(edges.places) - 1
    lead, parts = np.empty(count, np.int64), np.zeros(count)
    for c in range(count):
        p, action = found.parent[c], found.action[c]
        key = now.key[p]
        if action < stop:
            for k in range(edges.places[action], edges.places[action + 1]):
                if status[p, edges.placed[k]] < PLACED:
                    key += words[edges.placed[k]]
        found.key[c], lead[c] = key, c
        for b in range(c):
            alike = lead[b] == b and found.key[b] == key and found.action[b] == action
            if alike and same_set(edges, status, found.parent[b], p, action):
                lead[c] = b
                break
        parts[lead[c]] += np.exp(found.value[c] - found.value[lead[c]])
    for c in range(count):
        found.value[c] = found.value[c] + np.log(parts[c]) if lead[c] == c else -np.inf


@compiled
def ranked(values: NDArray[np.float64]) -> Whole:
    """Positions in falling order of values, equal ones as they stand."""
    order = np.arange(len(values))
    for i in range(1, len(values)):
        here, j = order[i], i
        while j > 0 and values[here] > values[order[j - 1]]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = here
    return order


@compiled
def follow(edges: Edges, now: Hypotheses, then: Hypotheses, w: int, parent: int, action: int, step: int) -> None:
    """Place w of `then`: the parent's walk after the action."""
    old, new = now.standing, then.standing
    for label in range(old.status.shape[1]):
        new.status[w, label] = old.status[parent, label]
    then.at[w], then.done[w] = now.at[parent], action == len(edges.places) - 1
    new.width[w] = 0
    if then.done[w]:
        return
    for i in range(old.width[parent]):
        new.frontier[w, i] = old.frontier[parent, i]
    new.width[w] = old.width[parent]
    take(edges, new, w, action, step)
    then.at[w] = action


@compiled
def begin(edges: Edges, now: Hypotheses) -> None:
    """One hypothesis, at the root."""
    standing = now.standing
    for label in range(standing.status.shape[1]):
        standing.status[0, label] = NOTHING
    first, end = edges.below[-2], edges.below[-1]
    standing.width[0] = end - first
    for k in range(first, end):
        standing.frontier[0, k - first] = edges.children[k]
        standing.status[0, edges.children[k]] = OPEN
    now.total[0], now.key[0], now.at[0], now.done[0] = 0.0, 0, len(edges.places) - 1, False


@compiled
def hypotheses(width: int, n_labels: int) -> Hypotheses:
    """Room for so many."""
    standing = Standing(
        np.zeros((width, n_labels), np.int32), np.empty((width, n_labels), np.int32), np.zeros(width, np.int64)
    )
    return Hypotheses(
        standing, np.zeros(width), np.zeros(width, np.int64), np.zeros(width, np.int64), np.zeros(width, np.bool_)
    )


class Memory(NamedTuple):
    """The states of one document at the places it has stood at."""

    number: Whole  # (A,) of the state at each place, or -1
    visited: Whole  # the places, in the order of their numbers
    states: Floats


@compiled
def remember(
    weights: Weights, half: Floats, doc: int, now: Hypotheses, n: int, memory: Memory, used: int
) -> tuple[bool, int]:
    """Compute the states that are missing. Whether any walk goes on, and how many states there are now."""
    fresh, docs = np.empty(n, np.int64), np.full(n, doc)
    new, going = 0, False
    for w in range(n):
        if not now.done[w] and now.standing.width[w]:
            going = True
            if memory.number[now.at[w]] < 0:
                fresh[new] = memory.visited[used + new] = now.at[w]
                memory.number[now.at[w]] = used + new
                new += 1
    if new:
        states_of(weights, half, docs, fresh, new, memory.states, used)
    return going, used + new


@compiled
def expand(
    weights: Weights, now: Hypotheses, n: int, memory: Memory, logits: Floats, found: Candidates, values: Floats
) -> int:
    """The best continuations of all walks; those that have ended go on as they are. How many there are."""
    count, stop = 0, len(weights.bias) - 1
    for w in range(n):
        labels = now.standing.frontier[w, : now.standing.width[w]]
        if now.done[w] or not len(labels):
            count = push(found, count, now.total[w], w, stop)
            continue
        open_log_probs(weights, memory.states[memory.number[now.at[w]]], labels, logits, True, values)
        for i in range(len(labels)):
            count = push(found, count, now.total[w] + values[i], w, labels[i])
        count = push(found, count, now.total[w] + values[len(labels)], w, stop)
    return count


@compiled
def advance(edges: Edges, now: Hypotheses, then: Hypotheses, found: Candidates, count: int, step: int) -> int:
    """The best continuations become the walks of the next step. How many there are."""
    n = 0
    for c in ranked(found.value[:count])[: len(now.total)]:
        if found.value[c] == -np.inf:
            break
        follow(edges, now, then, n, found.parent[c], found.action[c], step)
        then.total[n], then.key[n] = found.value[c], found.key[c]
        n += 1
    return n


@compiled
def finish(
    edges: Edges,
    now: Hypotheses,
    n: int,
    found: Candidates,
    words: Whole,
    sets: NDArray[np.bool_],
    log_probs: NDArray[np.float64],
) -> None:
    """All walks end here, stopped or not: equal sets are one."""
    count = 0
    for w in range(n):
        count = push(found, count, now.total[w], w, len(edges.places) - 1)
    merge(edges, now, found, count, words)
    order = ranked(found.value[:count])
    for w in range(count):
        c = order[w]
        if found.value[c] == -np.inf:
            break
        log_probs[w] = found.value[c]
        for label in range(sets.shape[1]):
            sets[w, label] = now.standing.status[found.parent[c], label] >= PLACED


@compiled
def search(
    weights: Weights,
    edges: Edges,
    half: Floats,
    flat: Floats,
    words: Whole,
    room: int,
    steps: int,
    sets: NDArray[np.bool_],
    log_probs: NDArray[np.float64],
) -> None:
    """The best sets of every document: writes (B, W, L) `sets`, which come as False, and (B, W) `log_probs`, as -inf.

    `words` (L,) are random, the same always; `room` continuations are looked at in each step. A state depends on the
    document and the place alone, so it is computed once for all hypotheses that ever stand there.
    """
    n_docs, width, n_labels = sets.shape
    now, then = hypotheses(width, n_labels), hypotheses(width, n_labels)
    found = Candidates(np.empty(room), np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64))
    most = min(n_labels + 1, 1 + steps * width)
    states = np.empty((most, len(weights.stop)), half.dtype)
    memory = Memory(np.full(n_labels + 1, -1, np.int64), np.empty(most, np.int64), states)
    values, no_logits = np.empty(n_labels + 1, half.dtype), flat[:0].ravel()
    for doc in range(n_docs):
        begin(edges, now)
        logits = flat[doc] if len(flat) else no_logits
        n, used = 1, 0
        for t in range(steps):
            going, used = remember(weights, half, doc, now, n, memory, used)
            if not going:
                break
            count = expand(weights, now, n, memory, logits, found, values)
            merge(edges, now, found, count, words)
            n = advance(edges, now, then, found, count, t)
            now, then = then, now
        finish(edges, now, n, found, words, sets[doc], log_probs[doc])
        for i in range(used):
            memory.number[memory.visited[i]] = -1


__all__ = ["search"]
