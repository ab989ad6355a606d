"""What is wrong with a taxonomy file, or odd about it: every finding with its line and with what to do.

Errors keep a taxonomy from being built. Warnings are probably mistakes. Notes are worth knowing and often meant.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from hilap.errors import did_you_mean
from hilap.taxonomy.draft import Draft
from hilap.taxonomy.finding import Finding, Known, finding, in_order, quoted, spelled
from hilap.taxonomy.oddities import oddities

MOST_COMPARED = 200_000  # ids looked at for did-you-mean, in all: a large file full of mistakes stays fast


def lint(draft: Draft) -> list[Finding]:
    r"""Everything worth saying about a draft: errors first, then warnings, then notes; within each by line.

    Examples
    --------
    >>> from hilap.taxonomy.draft import Entry
    >>> draft = Draft("food.jsonl", "jsonl", [Entry("bars", "Bars", ("fod",), 1), Entry("food", "Food", (), 2)])
    >>> print(*lint(draft), sep="\n")
    food.jsonl:1: error: parent 'fod' of label 'bars' is not in the taxonomy; did you mean 'food'?
    """
    known = Known.of(draft)
    wrong = [*_errors(draft, known)]
    return in_order([*wrong, *oddities(draft, known, sound=not wrong)])


def errors_of(draft: Draft) -> list[Finding]:
    """The errors alone, by line: what keeps a draft from becoming a taxonomy."""
    return in_order(_errors(draft, Known.of(draft)))


def _errors(draft: Draft, known: Known) -> Iterator[Finding]:
    if not draft.entries:
        message = f"there is no label in it, read as {draft.format}; is this the right file and format?"
        yield Finding("error", "empty", message, draft.where(0), 0)
        return
    yield from _duplicate_ids(draft, known)
    yield from _unknown_parents(draft, known)
    yield from _cycles(draft, known)
    yield from _bad_aliases(draft, known)


def _duplicate_ids(draft: Draft, known: Known) -> Iterator[Finding]:
    for entry in known.repeated:
        first = known.entries[known.index[entry.label]]
        before = f" (first on line {first.line})" if first.line else ""
        message = f"label {quoted(entry.label)} is given twice{before}; ids must be unique: rename or remove one"
        yield finding(draft, "error", "duplicate-id", message, entry)


def _unknown_parents(draft: Draft, known: Known) -> Iterator[Finding]:
    hints: dict[str, str] = {}
    by_name: dict[str, list[str]] = {}
    for entry in draft.entries:
        for parent in dict.fromkeys(entry.parents):
            if parent in known.index:
                continue
            if not hints:
                for other in known.entries:
                    by_name.setdefault(other.name, []).append(other.label)
            if parent not in hints:
                may_compare = (len(hints) + 1) * len(known.entries) <= MOST_COMPARED or len(hints) < 2
                hints[parent] = _hint(parent, entry.label, draft, known, by_name.get(parent, []), may_compare)
            message = f"parent {quoted(parent)} of label {quoted(entry.label)} is not in the taxonomy; {hints[parent]}"
            yield finding(draft, "error", "unknown-parent", message, entry, (entry.label, parent))


def _hint(parent: str, label: str, draft: Draft, known: Known, of_that_name: Sequence[str], may_compare: bool) -> str:
    if parent in draft.aliases:
        return f"it is another id of {quoted(draft.aliases[parent])}: write that"
    if len(of_that_name) == 1:
        return f"it is the name of label {quoted(of_that_name[0])}: parents are given by id"
    near = did_you_mean(parent, (other for other in known.index if other != label)) if may_compare else None
    return f"did you mean {quoted(near)}?" if near else "add it as a label of its own"


def _cycles(draft: Draft, known: Known) -> Iterator[Finding]:
    """One cycle for each knot: the shortest through the knot's first label."""
    for entry in known.entries:
        if entry.label in entry.parents:
            own = quoted(entry.label)
            message = f"the taxonomy has a cycle: {own} -> {own}; a label cannot be its own parent: remove that parent"
            yield finding(draft, "error", "cycle", message, entry)
    knot = known.components("strong")
    inside = knot[known.child] == knot[known.parent]
    above: dict[int, list[int]] = {}
    for child, parent in zip(known.child[inside].tolist(), known.parent[inside].tolist(), strict=True):
        above.setdefault(child, []).append(parent)
    seen: set[int] = set()
    for start in above:  # in the order of the file, as edges are sorted by child
        if int(knot[start]) not in seen:
            seen.add(int(knot[start]))
            cycle = [known.entries[i] for i in _shortest_cycle(start, above)]
            message = f"the taxonomy has a cycle: {spelled(cycle, ' -> ')}; remove one of these parents"
            yield finding(draft, "error", "cycle", message, cycle[0], [entry.label for entry in cycle[:-1]])


def _shortest_cycle(start: int, above: dict[int, list[int]]) -> list[int]:
    """From a label to its parents and on, until the label is met again: breadth first, so by the shortest way."""
    came_from: dict[int, int] = {}
    queue = deque([start])
    while start not in came_from:
        at = queue.popleft()
        for parent in above[at]:
            if parent not in came_from:
                came_from[parent] = at
                queue.append(parent)
    steps = [start, came_from[start]]
    while steps[-1] != start:
        steps.append(came_from[steps[-1]])
    return steps[::-1]


def _bad_aliases(draft: Draft, known: Known) -> Iterator[Finding]:
    for alias, label in draft.aliases.items():
        if alias in known.index:
            message = f"{quoted(alias)} is a label and also another id of {quoted(label)}; remove one of the two"
        elif label not in known.index:
            message = f"{quoted(alias)} is another id of {quoted(label)}, which is not in the taxonomy; add that label"
        else:
            continue
        line = known.entries[known.index[alias]].line if alias in known.index else 0
        yield Finding("error", "alias", message, draft.where(line), line, (alias, label))


__all__ = ["Finding", "errors_of", "lint"]
