"""The linter's warnings and notes: what can be built, but is probably not what was meant, or is worth knowing."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.errors import TaxonomyError
from hilap.taxonomy.draft import Draft, Entry
from hilap.taxonomy.finding import Finding, Known, Severity, finding, quoted, spelled
from hilap.taxonomy.graph import Taxonomy

ROOT_SHARE = 0.9  # a top label with this share of all labels below it looks like the root


def oddities(draft: Draft, known: Known, *, sound: bool) -> Iterator[Finding]:
    """All warnings and notes on a draft. One that is not sound (has errors) is not searched for redundant edges."""
    yield from _similar_ids(draft, known)
    yield from _orphans(draft, known)
    yield from _same_names(draft, known)
    yield from _chains(draft, known)
    yield from _repeated_parents(draft, known)
    yield from _remarks(draft)
    taxonomy = None if known.is_forest or not sound else _build(known)
    yield from _top_labels(draft, known, taxonomy)
    if taxonomy is not None:
        yield from _redundant_edges(draft, known, taxonomy)


def _similar_ids(draft: Draft, known: Known) -> Iterator[Finding]:
    groups: dict[str, list[Entry]] = {}
    for entry in known.entries:
        groups.setdefault(unicodedata.normalize("NFC", entry.label.strip()).casefold(), []).append(entry)
    for group in groups.values():
        if len(group) > 1:
            message = (
                f"ids {spelled(group, ' and ', most=5)} differ only in case, blanks or Unicode form; "
                "if they are one label, write it one way"
            )
            yield finding(draft, "warning", "similar-id", message, group[1], [entry.label for entry in group])


def _orphans(draft: Draft, known: Known) -> Iterator[Finding]:
    if not len(known.child):
        return  # a flat list: nobody has a parent, so nobody was forgotten
    for i in np.flatnonzero((known.given == 0) & (known.n_children == 0)).tolist():
        entry = known.entries[i]
        message = f"label {quoted(entry.label)} has neither parents nor children; give it a parent if it was forgotten"
        yield finding(draft, "warning", "orphan", message, entry)


def _same_names(draft: Draft, known: Known) -> Iterator[Finding]:
    number: dict[str, int] = {}
    names = np.array([number.setdefault(e.name.casefold(), len(number)) for e in known.entries], dtype=np.int64)
    tops = np.flatnonzero(known.given == 0)
    child = np.concatenate([known.child, tops])
    parent = np.concatenate([known.parent, np.full(len(tops), -1)])
    order = np.lexsort((child, names[child], parent))
    child, parent = child[order], parent[order]
    begins = np.flatnonzero(np.append(True, (np.diff(parent) != 0) | (np.diff(names[child]) != 0)))
    sizes = np.diff(np.append(begins, len(child)))
    for begin, size in zip(begins[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        group = [known.entries[i] for i in child[begin : begin + size].tolist()]
        above = int(parent[begin])
        place = "at the top" if above < 0 else f"below {quoted(known.entries[above].label)}"
        message = (
            f"labels {spelled(group, ' and ', most=5)} {place} have one name, {quoted(group[0].name)}; "
            "rename them so that people can tell them apart, or merge them"
        )
        yield finding(draft, "warning", "duplicate-sibling-name", message, group[1], [e.label for e in group])


def _chains(draft: Draft, known: Known) -> Iterator[Finding]:
    """Runs of labels where each has one child and that child no other parent.

    One such step is common and often meant, so it is a note; two and more in a row look like a mistake.
    """
    only = (known.n_children[known.parent] == 1) & (known.n_parents[known.child] == 1)
    after = dict(zip(known.parent[only].tolist(), known.child[only].tolist(), strict=True))
    for head in sorted(after.keys() - set(after.values())):  # what runs in a circle has no head
        steps = [head]
        while steps[-1] in after:
            steps.append(after[steps[-1]])
        links = [known.entries[i] for i in steps]
        message = f"{spelled(links, ' > ')}: each has only one child; merge them unless documents end in between"
        severity: Severity = "warning" if len(links) > 2 else "note"
        yield finding(draft, severity, "single-child-chain", message, links[0], [entry.label for entry in links])


def _repeated_parents(draft: Draft, known: Known) -> Iterator[Finding]:
    for entry in known.entries:
        if len(entry.parents) > 1 and len(set(entry.parents)) < len(entry.parents):
            parent = Counter(entry.parents).most_common(1)[0][0]
            message = f"parent {quoted(parent)} of label {quoted(entry.label)} is given twice; once is enough"
            yield finding(draft, "warning", "redundant-edge", message, entry, (entry.label, parent))


def _remarks(draft: Draft) -> Iterator[Finding]:
    for line, remark in draft.remarks:
        yield Finding("note", "remark", remark, draft.where(line), line)


def _build(known: Known) -> Taxonomy:
    return Taxonomy(known.labels, [entry.parents for entry in known.entries])


def _top_labels(draft: Draft, known: Known, taxonomy: Taxonomy | None) -> Iterator[Finding]:
    """Several top labels are legal, as the root is not a label; a lonely few beside a giant are suspicious."""
    tops = np.flatnonzero(known.given == 0)
    if len(tops) < 2:
        return
    below = _counts_below(known, taxonomy)
    largest = tops[np.argmax(below[tops])]
    others = [known.entries[i] for i in tops.tolist() if i != largest]
    size = len(known.entries)
    alone = all(below[i] < (1 - ROOT_SHARE) * size for i in tops.tolist() if i != largest)
    if alone and below[largest] >= ROOT_SHARE * size:
        giant = known.entries[largest]
        message = (
            f"nearly all labels are below {quoted(giant.label)}, but {spelled(others, ', ', most=5)} "
            f"{'is' if len(others) == 1 else 'are'} beside it; put {quoted(giant.label)} among the parents there"
        )
        yield finding(draft, "warning", "several-roots", message, others[0], [entry.label for entry in others])
        return
    message = (
        f"there are {len(tops):,} top labels, and the root above them is understood; "
        "if one of them is meant as the root, give it to the others as parent"
    )
    yield finding(
        draft, "note", "several-roots", message, known.entries[tops[0]], [known.entries[i].label for i in tops.tolist()]
    )


def _counts_below(known: Known, taxonomy: Taxonomy | None) -> NDArray[np.int64]:
    """(n,) how many labels are below each top label; zeros where that cannot be told cheaply."""
    if known.is_forest:  # then the piece a top label belongs to is all its own
        pieces = known.components("weak")
        return np.bincount(pieces)[pieces] - 1
    try:
        closure = taxonomy.closure if taxonomy is not None else None
    except TaxonomyError:  # too deep; the search for redundant edges says so
        closure = None
    if closure is None:
        return np.zeros(len(known.entries), dtype=np.int64)
    return np.bincount(closure.indices, minlength=len(known.entries)) - 1


def _redundant_edges(draft: Draft, known: Known, taxonomy: Taxonomy) -> Iterator[Finding]:
    """Edges to a label that another parent is already below."""
    try:
        closure = taxonomy.closure
    except TaxonomyError as error:
        message = f"redundant edges were not looked for: {error}"
        yield Finding("note", "redundant-edge", message, draft.where(0), 0)
        return
    several = np.flatnonzero(known.n_parents > 1)
    direct = taxonomy.parent_matrix[several].astype(np.int32)
    ways = direct @ closure.astype(np.int32)  # [label, ancestor]: how many parents are at the ancestor or below it
    edges = direct.multiply(ways).tocoo()
    again = edges.data > 1
    for row, column in zip(edges.row[again].tolist(), edges.col[again].tolist(), strict=True):
        entry, far = known.entries[several[row]], known.entries[column].label
        near = next(p for p in entry.parents if p != far and column in _row(closure, known.index[p]))
        message = (
            f"parent {quoted(far)} of label {quoted(entry.label)} is redundant, as it is above parent "
            f"{quoted(near)} anyway; remove it"
        )
        yield finding(draft, "warning", "redundant-edge", message, entry, (entry.label, far, near))


def _row(matrix: sparse.csr_array, i: int) -> NDArray[np.int32]:
    return np.asarray(matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]])


__all__ = ["oddities"]
