"""Splits: documents divided into parts by seed, by group, or with every label's documents spread evenly.

`split` divides examples. `split_rows` says only which row goes where, so that a file larger than memory can be split in
two passes: one for the labels, one to copy the lines.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.corpus.examples import Examples
from hilap.errors import CorpusError, SettingError, did_you_mean, require

By: TypeAlias = Literal["random", "group", "stratified"]
Shares: TypeAlias = Mapping[str, float] | Sequence[float]
Rows: TypeAlias = NDArray[np.int64]

WAYS: tuple[By, ...] = ("random", "group", "stratified")
_NAMES = {2: ("train", "test"), 3: ("train", "valid", "test")}


def split(examples: Examples, shares: Shares, *, seed: int, by: By = "random") -> dict[str, Examples]:
    """Divide examples into parts; within a part they keep their order.

    Parameters
    ----------
    examples
        What to divide. Where it has groups, `by="group"` and `by="stratified"` keep every group in one part.
    shares
        The name of each part and its share, together 1. A plain sequence of two is train and test, of three train,
        valid and test.
    seed
        The same seed gives the same parts.
    by
        `random`; `group`, so that no group is in two parts; or `stratified`, so that each label's documents are spread
        over the parts as the shares ask (iterative stratification, Sechidis et al. 2011).

    Examples
    --------
    >>> from hilap.taxonomy import Taxonomy
    >>> examples = Examples.of(Taxonomy.of({"a": []}), [["a"]] * 10)
    >>> {name: len(part) for name, part in split(examples, [0.7, 0.1, 0.2], seed=0).items()}
    {'train': 7, 'valid': 1, 'test': 2}
    """
    groups = None if by == "random" else examples.groups
    rows = split_rows(examples.labels, shares, seed=seed, by=by, groups=groups)
    return {name: examples.take(chosen) for name, chosen in rows.items()}


def split_rows(
    labels: Any, shares: Shares, *, seed: int, by: By = "random", groups: Sequence[Hashable] | None = None
) -> dict[str, Rows]:
    """The rows of each part, ascending, for an indicator matrix (documents, labels), dense or sparse.

    `random` looks at the number of rows only: the same seed and number give the same parts. `groups` names each row's
    group; it is needed for `group`, keeps groups whole for `stratified`, and contradicts `random`.
    """
    named = named_shares(shares)
    require(by in WAYS, "by", f"one of {', '.join(WAYS)}{_hint(by)}", by)
    require(isinstance(seed, (int, np.integer)) and seed >= 0, "seed", "a whole number, 0 or more", seed)
    if by == "random" and groups is not None:
        raise SettingError("groups are given, but by='random' does not look at them; use by='group' or 'stratified'")
    if by == "group" and groups is None:
        raise CorpusError("by='group' needs documents with groups, but these have none; give groups, or another 'by'")
    matrix = sparse.csr_array(labels)
    fractions = np.array(list(named.values()))
    rng = np.random.default_rng(seed)
    numbers = None if groups is None else _group_numbers(groups, matrix.shape[0])
    if by == "random":
        parts = _random(matrix.shape[0], fractions, rng)
    elif by == "group" and numbers is not None:
        parts = _by_group(numbers, fractions, rng)
    else:
        parts = _stratified(matrix, numbers, fractions, rng)
    return _as_rows(parts, named)


def named_shares(shares: Shares) -> dict[str, float]:
    """Shares by the name of their part, checked: each above 0, together 1.

    Examples
    --------
    >>> named_shares([0.8, 0.2])
    {'train': 0.8, 'test': 0.2}
    """
    if isinstance(shares, Mapping):
        named = {str(name): share for name, share in shares.items()}
    else:
        values = list(shares)
        names = _NAMES.get(len(values), [f"part_{i + 1}" for i in range(len(values))])
        named = dict(zip(names, values, strict=True))
    if not named:
        raise SettingError("shares must name at least one part, got none")
    for name, share in named.items():
        numeric = isinstance(share, (int, float, np.integer, np.floating)) and not isinstance(share, bool)
        require(numeric and 0 < share < np.inf, f"the share of {name!r}", "a number above 0", share)
    total = float(sum(named.values()))
    if abs(total - 1) > 1e-6:
        raise SettingError(f"shares must add up to 1, got {total:g} from {named}; divide each by {total:g}")
    return {name: float(share) for name, share in named.items()}


def part_sizes(n: int, fractions: NDArray[np.float64]) -> Rows:
    """How many of n documents each part gets: the largest remainders are rounded up, earlier parts first.

    Examples
    --------
    >>> part_sizes(87_375, np.array([0.9, 0.1])).tolist()
    [78638, 8737]
    """
    exact = np.round(n * fractions, 9)  # so that 0.1 + 0.2 and its kin do not decide who is rounded up
    sizes = np.floor(exact).astype(np.int64)
    left_over = max(n - int(sizes.sum()), 0)
    sizes[np.argsort(sizes - exact, kind="stable")[:left_over]] += 1
    return sizes


def _random(n: int, fractions: NDArray[np.float64], rng: np.random.Generator) -> Rows:
    parts = np.empty(n, dtype=np.int64)
    parts[rng.permutation(n)] = np.repeat(np.arange(len(fractions)), part_sizes(n, fractions))
    return parts


def _by_group(numbers: Rows, fractions: NDArray[np.float64], rng: np.random.Generator) -> Rows:
    """Large groups first, each to the part that lacks most; groups of one size in random order."""
    sizes = np.bincount(numbers)
    order = rng.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    wanted = len(numbers) * fractions
    parts = np.empty(len(sizes), dtype=np.int64)
    parts[order] = _choose_weighted(wanted, wanted, sizes[order], sizes[order], rng)
    return parts[numbers]


def _stratified(
    matrix: sparse.csr_array, numbers: Rows | None, fractions: NDArray[np.float64], rng: np.random.Generator
) -> Rows:
    """Spread every label's documents; a group is one unit that carries the sum of its documents' labels."""
    units = sparse.csr_array((matrix != 0).astype(np.int64))
    n = matrix.shape[0]
    if numbers is None:
        return _iterative(units, np.ones(n, dtype=np.int64), fractions, rng)
    sizes = np.bincount(numbers)
    ones = np.ones(n, dtype=np.int64)
    members = sparse.csr_array((ones, (numbers, np.arange(n))), shape=(len(sizes), n))
    return _iterative(sparse.csr_array(members @ units), sizes, fractions, rng)[numbers]


def _iterative(units: sparse.csr_array, sizes: Rows, fractions: NDArray[np.float64], rng: np.random.Generator) -> Rows:
    """Iterative stratification: the label with the fewest documents left is spread next.

    All documents of one label are placed at once: while they are, only this label's and the parts' own wants decide,
    and both fall in step. So the outcome is that of the published one-by-one algorithm, without its loop.
    """
    count, n_labels = units.shape
    shuffled = rng.permutation(n_labels)  # so that labels with equally many documents come in random order
    units = units[:, shuffled]
    by_label = units.tocsc()
    total = np.asarray(units.sum(axis=0)).ravel()
    wanted = np.outer(fractions, total)  # (parts, labels) documents of a label that a part still lacks
    wanted_all = fractions * sizes.sum()
    done = np.iinfo(np.int64).max
    left = np.where(total > 0, total, done)
    parts = np.full(count, -1, dtype=np.int64)
    while n_labels and left[label := int(left.argmin())] < done:
        mine = slice(by_label.indptr[label], by_label.indptr[label + 1])
        free = parts[by_label.indices[mine]] < 0
        chosen, weights = by_label.indices[mine][free], by_label.data[mine][free]
        order = rng.permutation(len(chosen))
        order = order[np.argsort(-weights[order], kind="stable")]
        chosen, weights = chosen[order], weights[order]
        parts[chosen] = _choose(wanted[:, label], wanted_all, weights, sizes[chosen], rng)
        placed = units[chosen]
        np.subtract.at(wanted, (np.repeat(parts[chosen], np.diff(placed.indptr)), placed.indices), placed.data)
        np.subtract.at(wanted_all, parts[chosen], sizes[chosen])
        np.subtract.at(left, placed.indices, placed.data)
        left[placed.indices[left[placed.indices] == 0]] = done
    rest = np.flatnonzero(parts < 0)  # documents without labels fill up what the parts still lack
    rest = rest[rng.permutation(len(rest))]
    rest = rest[np.argsort(-sizes[rest], kind="stable")]
    parts[rest] = _choose(wanted_all, wanted_all, sizes[rest], sizes[rest], rng)
    return parts


def _choose(
    wanted: NDArray[np.float64],
    wanted_all: NDArray[np.float64],
    weights: Rows,
    sizes: Rows,
    rng: np.random.Generator,
) -> Rows:
    """A part for each unit in turn: the one that lacks most of the label, then most of all, then by chance."""
    if not ((weights == 1).all() and (sizes == 1).all()):
        return _choose_weighted(wanted, wanted_all, weights, sizes, rng)
    # Each choice lowers both wants of the chosen part by one, so the choices are the m largest of all wants to come.
    m, k = len(weights), len(wanted)
    most = np.minimum(m, np.ceil(np.maximum(wanted - wanted.min(), 0) + m / k + 2)).astype(np.int64)
    part = np.repeat(np.arange(k), most)
    turn = np.concatenate([np.arange(length) for length in most])
    for_label, for_all = np.round(wanted[part] - turn, 9), np.round(wanted_all[part] - turn, 9)
    best_first = np.lexsort((rng.random(len(part)), -for_all, -for_label))
    return part[best_first[:m]]


def _choose_weighted(
    wanted: NDArray[np.float64],
    wanted_all: NDArray[np.float64],
    weights: Rows,
    sizes: Rows,
    rng: np.random.Generator,
) -> Rows:
    """The same for units of different weight, one after another: each depends on where the last one went."""
    lacking = wanted.tolist()
    lacking_all = wanted_all.tolist()
    chance = rng.random((len(weights), len(lacking)))
    chosen = np.empty(len(weights), dtype=np.int64)
    for i, (weight, size) in enumerate(zip(weights.tolist(), sizes.tolist(), strict=True)):
        row = chance[i]
        at = max(range(len(lacking)), key=lambda j: (round(lacking[j], 9), round(lacking_all[j], 9), row[j]))
        lacking[at] -= weight
        lacking_all[at] -= size
        chosen[i] = at
    return chosen


def _group_numbers(groups: Sequence[Hashable], n: int) -> Rows:
    if len(groups) != n:
        raise CorpusError(f"there are {n} documents but {len(groups)} groups; give one group for each document")
    seen: dict[Hashable, int] = {}
    return np.fromiter((seen.setdefault(group, len(seen)) for group in groups), dtype=np.int64, count=n)


def _as_rows(parts: Rows, shares: Mapping[str, float]) -> dict[str, Rows]:
    rows = {name: np.flatnonzero(parts == i) for i, name in enumerate(shares)}
    for name, mine in rows.items():
        if not len(mine):
            raise CorpusError(
                f"the part {name!r} would be empty: {len(parts):,} documents at a share of {shares[name]:g}; "
                "give more documents (or more groups), or a larger share"
            )
    return rows


def _hint(by: object) -> str:
    near = did_you_mean(str(by), WAYS)
    return f" (did you mean {near!r}?)" if near and near != by else ""
