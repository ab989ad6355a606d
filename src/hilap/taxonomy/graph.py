"""The taxonomy: an immutable tree or DAG of labels, with sparse arrays inside.

A label has a stable *id* (a string, unique), a display *name* (free, may occur twice) and, where someone wrote one, a
*definition*: prose that says what the label means, empty where there is none. The root is not a label: the labels
without parents hang below it, at level 1. Sets of labels are Python collections of ids at the door and sparse
indicator matrices inside: row = document, column = label, in the order of `Taxonomy.labels`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.errors import TaxonomyError, did_you_mean

Indices: TypeAlias = NDArray[np.int32]
Indicator: TypeAlias = sparse.csr_array
"""A sparse (documents, labels) matrix of zeros and ones, int32."""

FORMAT = 1
MOST_CLOSURE_ENTRIES = 100_000_000  # about a gigabyte while building; a chain of 100,000 labels has 50 times as many
_SQUARING_LEVELS = 64  # beyond these the closure is built from the top down: squaring a deep matrix does things twice
_SQUARING_STEPS = 1_000_000_000


class Taxonomy:
    """An immutable tree or DAG of labels.

    Build one with `Taxonomy.of`, or read one from a file with `hilap.read_taxonomy`.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"], "Beer Bars": ["Bars"], "Caribbean": ["Food"]})
    >>> taxonomy.ancestors("Beer Bars")
    ('Food', 'Bars')
    >>> taxonomy.close(["Beer Bars"])
    ('Food', 'Bars', 'Beer Bars')
    >>> taxonomy.is_consistent(["Beer Bars"])
    False
    """

    def __init__(
        self,
        labels: Sequence[str],
        parents: Sequence[Iterable[str]],
        names: Sequence[str] | None = None,
        aliases: Mapping[str, str] | None = None,
        definitions: Sequence[str] | None = None,
    ) -> None:
        self.labels: tuple[str, ...] = _strings(labels, "label ids")
        self.names: tuple[str, ...] = self.labels if names is None else _strings(names, "names")
        if not len(self.labels) == len(self.names) == len(parents):
            raise TaxonomyError(
                "labels, parents and names must be of one length, "
                f"got {len(self.labels)}, {len(parents)} and {len(self.names)}"
            )
        self.definitions: tuple[str, ...] = _definitions(definitions, len(self.labels))
        """What each label means, on one line (`one_line`); empty where nobody said it."""
        self._index: dict[str, int] = {label: i for i, label in enumerate(self.labels)}
        if len(self._index) != len(self.labels):
            raise TaxonomyError(f"label {_first_repeated(self.labels)!r} is given twice; ids must be unique")
        self.aliases: dict[str, str] = dict(sorted((aliases or {}).items()))
        """Other ids under which a label is known (`alt_id` in OBO) -> the label's id."""
        for alias, label in self.aliases.items():
            if alias in self._index or label not in self._index:
                raise TaxonomyError(f"alias {alias!r} of {label!r} must be a new id for a label of the taxonomy")
        self.parent_matrix: sparse.csr_array = _parent_matrix(self.labels, parents, self._index)
        """(L, L) bool, [child, parent]."""
        self.child_matrix: sparse.csr_array = self.parent_matrix.T.tocsr()
        """(L, L) bool, [parent, child]."""
        self.levels, self.longest_levels = _levels(self.parent_matrix, self.child_matrix, self.labels)
        """(L,) each: the length of the shortest and of the longest way from the root; top labels are at level 1."""
        self.order: Indices = np.argsort(self.longest_levels, kind="stable").astype(np.int32)
        """Label indices with every parent before its children."""

    # -- building ---------------------------------------------------------------------------------------------------

    @classmethod
    def of(
        cls,
        parents: Mapping[str, Iterable[str]],
        names: Mapping[str, str] | None = None,
        aliases: Mapping[str, str] | None = None,
        definitions: Mapping[str, str] | None = None,
    ) -> Taxonomy:
        """Build a taxonomy from a mapping of label id to the ids of its parents (none for a top label).

        A label without a name is called by its id; one without a definition has an empty one. Labels that are only
        named as parents are an error: a typing mistake there would silently grow a new branch.

        Examples
        --------
        >>> taxonomy = Taxonomy.of({"A": [], "B": ["A"]}, definitions={"B": "What is not A."})
        >>> taxonomy.definitions
        ('', 'What is not A.')
        """
        labels = list(parents)
        _check_given(names, definitions, parents, "which is not a label of the taxonomy")
        called = [(names or {}).get(label, label) for label in labels]
        meant = [definitions.get(label, "") for label in labels] if definitions else None
        return cls(labels, [parents[label] for label in labels], called, aliases, meant)

    def extended(
        self,
        parents: Mapping[str, Iterable[str]],
        names: Mapping[str, str] | None = None,
        definitions: Mapping[str, str] | None = None,
    ) -> Taxonomy:
        """A new taxonomy with further labels behind the present ones, whose indices stay as they are."""
        for label in parents:
            if label in self:
                raise TaxonomyError(f"label {label!r} is in the taxonomy already and cannot be added")
        _check_given(names, definitions, parents, "which is not among the labels to be added")
        everything: dict[str, Iterable[str]] = {label: self.parents(label) for label in self.labels}
        everything.update(parents)
        called = dict(zip(self.labels, self.names, strict=True)) | dict(names or {})
        meant = dict(zip(self.labels, self.definitions, strict=True)) | dict(definitions or {})
        aliases = {alias: label for alias, label in self.aliases.items() if alias not in parents}
        return Taxonomy.of(everything, called, aliases, meant)

    def canonical(self) -> Taxonomy:
        """The same content with the labels in sorted order. Equal fingerprints have equal canonical forms."""
        labels = sorted(self.labels)
        above = [self.parents(label) for label in labels]
        names, definitions = [self.name(label) for label in labels], [self.definition(label) for label in labels]
        return Taxonomy(labels, above, names, self.aliases, definitions)

    # -- single labels ----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self._index

    def index(self, label: str) -> int:
        """The column of a label."""
        try:
            return self._index[label]
        except (KeyError, TypeError):  # a list, say, cannot even be looked up
            raise self.unknown(label) from None

    def unknown(self, label: str) -> TaxonomyError:
        """The error that an unknown label gets."""
        near = did_you_mean(str(label), self.labels)
        hint = (
            f"did you mean {near!r}?"
            if near
            else f"the taxonomy has {len(self):,} labels; ids, not names, are asked for"
        )
        return TaxonomyError(f"label {label!r} is not in the taxonomy; {hint}")

    def name(self, label: str) -> str:
        """The display name of a label."""
        return self.names[self.index(label)]

    def definition(self, label: str) -> str:
        """What a label means, in prose; empty where nobody said it."""
        return self.definitions[self.index(label)]

    def parents(self, label: str) -> tuple[str, ...]:
        """The ids of a label's parents; none for a top label."""
        return self._named(_row(self.parent_matrix, self.index(label)))

    def children(self, label: str | None = None) -> tuple[str, ...]:
        """The ids of a label's children, or of the root's where no label is given."""
        return self.top_labels if label is None else self._named(_row(self.child_matrix, self.index(label)))

    def ancestors(self, label: str) -> tuple[str, ...]:
        """All labels above a label, nearest to the root first."""
        above = _row(self.closure, self.index(label))
        return self._named(self._root_first(above[above != self.index(label)]))

    def descendants(self, label: str) -> tuple[str, ...]:
        """All labels below a label, nearest to the root first."""
        below = _row(self.descendant_matrix, self.index(label))
        return self._named(self._root_first(below[below != self.index(label)]))

    def path(self, label: str) -> tuple[str, ...]:
        """One path from a top label down to a label: through the first parent at every step."""
        steps = [self.index(label)]
        while len(above := _row(self.parent_matrix, steps[-1])):
            steps.append(int(above[0]))
        return self._named(np.array(steps[::-1], dtype=np.int32))

    def level(self, label: str) -> int:
        """The length of the shortest way from the root; a top label is at level 1."""
        return int(self.levels[self.index(label)])

    # -- the whole --------------------------------------------------------------------------------------------------

    @cached_property
    def top_labels(self) -> tuple[str, ...]:
        """The labels without parents: the root's children."""
        return self._named(np.flatnonzero(np.diff(self.parent_matrix.indptr) == 0))

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The labels without children."""
        return self._named(np.flatnonzero(np.diff(self.child_matrix.indptr) == 0))

    @cached_property
    def is_tree(self) -> bool:
        """Whether no label has more than one parent."""
        return bool((np.diff(self.parent_matrix.indptr) <= 1).all())

    @property
    def depth(self) -> int:
        """The number of levels, along the longest ways (the paper's count); 0 for a taxonomy without labels."""
        return int(self.longest_levels.max(initial=0))

    @property
    def n_edges(self) -> int:
        """The number of parent-child pairs, without those from the root."""
        return int(self.parent_matrix.nnz)

    @cached_property
    def closure(self) -> sparse.csr_array:
        """(L, L) bool, [label, ancestor or the label itself]."""
        # Every label has at least as many ancestors as there are levels above it.
        if int(self.longest_levels.sum(dtype=np.int64)) > MOST_CLOSURE_ENTRIES:
            raise self._too_deep()
        if self.depth > _SQUARING_LEVELS:
            return self._closure_from_the_top()
        reach = (self.parent_matrix + _identity(len(self))).astype(bool).tocsr()
        while int(np.diff(reach.indptr).astype(np.int64)[reach.indices].sum()) <= _SQUARING_STEPS:
            further = (reach @ reach).astype(bool)
            if further.nnz == reach.nnz:
                reach.sort_indices()
                return reach
            reach = further
        return self._closure_from_the_top()

    def _closure_from_the_top(self) -> sparse.csr_array:
        """A label's ancestors are its parents and theirs. Squaring is faster where cheap; this is never costly."""
        rows: list[Indices] = [np.empty(0, dtype=np.int32)] * len(self)
        left = MOST_CLOSURE_ENTRIES
        for i in self.order.tolist():
            above = [rows[p] for p in _row(self.parent_matrix, i)]
            mine = np.concatenate([*above, np.array([i], dtype=np.int32)])
            rows[i] = mine if len(above) < 2 else np.unique(mine)
            left -= len(rows[i])
            if left < 0:
                raise self._too_deep()
        indices = np.concatenate(rows)
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
        closure = sparse.csr_array((np.ones(len(indices), dtype=bool), indices, starts), shape=(len(self),) * 2)
        closure.sort_indices()
        return closure

    def _too_deep(self) -> TaxonomyError:
        return TaxonomyError(
            f"the taxonomy is too deep to list all ancestors: {len(self):,} labels on {self.depth:,} levels; "
            "cut it, or read fewer levels"
        )

    @cached_property
    def descendant_matrix(self) -> sparse.csr_array:
        """(L, L) bool, [label, descendant or the label itself]."""
        return self.closure.T.tocsr()

    @cached_property
    def _strict_closure(self) -> sparse.csr_array:
        strict = (self.closure.astype(np.int8) - _identity(len(self)).astype(np.int8)).tocsr()
        strict.eliminate_zeros()
        return strict.astype(bool)

    # -- sets of labels ---------------------------------------------------------------------------------------------

    def close(self, labels: Iterable[str]) -> tuple[str, ...]:
        """The labels with all their ancestors, nearest to the root first."""
        return self._named(self._root_first(self._closed(self._indices(labels))))

    def most_specific(self, labels: Iterable[str]) -> tuple[str, ...]:
        """The labels that are no ancestor of another label in the set."""
        given = self._indices(labels)
        above = np.zeros(len(self), dtype=bool)
        above[_rows(self._strict_closure, given)] = True
        return self._named(self._root_first(given[~above[given]]))

    def is_consistent(self, labels: Iterable[str]) -> bool:
        """Whether every parent of every label is in the set too."""
        given = self._indices(labels)
        return len(self._closed(given)) == len(given)

    def lowest_common_ancestors(self, labels: Iterable[str]) -> tuple[str, ...]:
        """The deepest labels at or above all the given ones: one or none in a tree, perhaps several in a DAG."""
        given = self._indices(labels)
        if not len(given):
            return ()
        counts = np.bincount(_rows(self.closure, given), minlength=len(self))
        return self.most_specific(self._named(np.flatnonzero(counts == len(given))))

    def encode(self, label_sets: Iterable[Iterable[str]], *, close: bool = False) -> Indicator:
        """Sets of label ids as a sparse indicator matrix (documents, labels), closed upward if asked.

        Examples
        --------
        >>> Taxonomy.of({"A": [], "B": ["A"]}).encode([["B"], []], close=True).toarray()
        array([[1, 1],
               [0, 0]], dtype=int32)
        """
        try:
            sets = [
                s if isinstance(s, (list, tuple, set, frozenset)) else _collected(s) for s in _collected(label_sets)
            ]
            lengths = np.fromiter(map(len, sets), dtype=np.int64, count=len(sets))
            found = map(self._index.__getitem__, chain.from_iterable(sets))
            columns = np.fromiter(found, dtype=np.int32, count=int(lengths.sum()))
        except KeyError as error:
            raise self.unknown(error.args[0]) from None
        except TypeError as error:
            raise TaxonomyError(f"one collection of label ids for each document is needed ({error})") from None
        return self.from_indices(columns, np.concatenate([[0], np.cumsum(lengths)]), close=close)

    def from_indices(self, columns: NDArray[Any], starts: NDArray[Any], *, close: bool = False) -> Indicator:
        """An indicator matrix from label indices, row after row, and where each row starts (CSR without data)."""
        ends_well = len(starts) and starts[0] == 0 and starts[-1] == len(columns) and (np.diff(starts) >= 0).all()
        if not ends_well or (len(columns) and not 0 <= columns.min() <= columns.max() < len(self)):
            raise TaxonomyError(
                f"label indices must be from 0 to {len(self) - 1}, and starts must rise from 0 to their number"
            )
        ones = np.ones(len(columns), dtype=bool)
        matrix = sparse.csr_array((ones, columns, starts), shape=(len(starts) - 1, len(self)))
        matrix.sum_duplicates()
        return self.close_matrix(matrix) if close else _as_indicator(matrix)

    def decode(self, matrix: Any) -> list[tuple[str, ...]]:
        """The label ids of each row of an indicator matrix (sparse or dense), in the order of `labels`."""
        rows = self._checked(matrix)
        names = self._named(rows.indices.tolist())
        return [names[start:end] for start, end in pairwise(rows.indptr.tolist())]

    def close_matrix(self, matrix: Any) -> Indicator:
        """Every row of an indicator matrix with all ancestors added."""
        return _as_indicator(self._checked(matrix) @ self.closure)

    def most_specific_matrix(self, matrix: Any) -> Indicator:
        """Every row of an indicator matrix without the labels that are an ancestor of another one in the row."""
        rows = self._checked(matrix)
        above = (rows @ self._strict_closure).astype(bool)
        return _as_indicator(rows.astype(np.int8) - rows.multiply(above).astype(np.int8))

    def inconsistent_rows(self, matrix: Any) -> NDArray[np.bool_]:
        """(documents,) True where a row has a label without one of its ancestors."""
        rows = self._checked(matrix)
        closed = rows @ self.closure
        return np.asarray(np.diff(closed.indptr) != np.diff(rows.indptr))

    # -- identity ---------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Same labels in the same order (so that indicator matrices mean the same), names, definitions and edges."""
        if not isinstance(other, Taxonomy):
            return NotImplemented
        return (
            self.labels == other.labels
            and self.names == other.names
            and self.definitions == other.definitions
            and self.aliases == other.aliases
            and np.array_equal(self.parent_matrix.indptr, other.parent_matrix.indptr)
            and np.array_equal(self.parent_matrix.indices, other.parent_matrix.indices)
        )

    def __hash__(self) -> int:
        return hash((self.labels, self.names))

    def __repr__(self) -> str:
        kind = "tree" if self.is_tree else "DAG"
        return f"<Taxonomy: {kind} of {len(self):,} labels on {self.depth} levels, {self.fingerprint[:12]}>"

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content: ids, names, definitions and edges, whatever their order in the file.

        A label without a definition counts as it did before there were any, so older fingerprints stay true.
        """
        digest = hashlib.sha256(b"hilap-taxonomy-1\n")
        for i in sorted(range(len(self)), key=self.labels.__getitem__):
            above = sorted(self.labels[p] for p in _row(self.parent_matrix, i))
            meant = [self.definitions[i]] if self.definitions[i] else []
            line = json.dumps([self.labels[i], self.names[i], above, *meant], ensure_ascii=True)
            digest.update(line.encode() + b"\n")
        for alias, label in self.aliases.items():
            digest.update(json.dumps([alias, label], ensure_ascii=True).encode() + b"\n")
        return digest.hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The taxonomy as plain JSON values; `from_json` gives it back."""
        return {"format": FORMAT, "labels": [*self.records()], "aliases": dict(self.aliases)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Taxonomy:
        """The taxonomy that `to_json` wrote, with or without definitions."""
        if not isinstance(value, Mapping) or value.get("format") != FORMAT or not isinstance(value.get("labels"), list):
            raise TaxonomyError(
                f"this is no taxonomy as hilap writes it: an object with format {FORMAT} and labels is needed"
            )
        aliases = value.get("aliases", {})
        if not isinstance(aliases, Mapping) or not all(isinstance(label, str) for label in chain(*aliases.items())):
            raise TaxonomyError(f"aliases must be an object of ids, got {aliases!r}")
        for number, record in enumerate(value["labels"], start=1):
            if not _is_record(record):
                raise TaxonomyError(f"label {number} of this taxonomy lacks label, name or parents, got {record!r}")
            if not isinstance(record.get("definition", ""), str):
                given = f"{record['definition']!r:.200}"
                raise TaxonomyError(f"the definition of label {record['label']!r} must be a text, got {given}")
        rows = value["labels"]
        names, definitions = [r["name"] for r in rows], [r.get("definition", "") for r in rows]
        return cls([r["label"] for r in rows], [r["parents"] for r in rows], names, aliases, definitions)

    def records(self) -> Iterator[dict[str, Any]]:
        """One `{"label", "name", "parents"}` for each label, in order: the lines of our JSONL format.

        A label that has a definition has it here, below `"definition"`; the others have no such key.
        """
        for i, (label, name, meant) in enumerate(zip(self.labels, self.names, self.definitions, strict=True)):
            record = {"label": label, "name": name, "parents": list(self._named(_row(self.parent_matrix, i)))}
            yield {**record, "definition": meant} if meant else record

    # -- inside -----------------------------------------------------------------------------------------------------

    def _named(self, indices: Any) -> tuple[str, ...]:
        return tuple(self.labels[i] for i in indices)

    def _indices(self, labels: Iterable[str]) -> Indices:
        return np.array(sorted({self.index(label) for label in _collected(labels)}), dtype=np.int32)

    def _closed(self, indices: Indices) -> Indices:
        return np.unique(_rows(self.closure, indices))

    def _root_first(self, indices: NDArray[Any]) -> NDArray[Any]:
        return indices[np.lexsort((indices, self.longest_levels[indices]))]

    def _checked(self, matrix: Any) -> sparse.csr_array:
        needed = f"an indicator matrix with {len(self)} columns is needed, one a label"
        try:
            given = matrix if sparse.issparse(matrix) else np.asarray(matrix)
        except ValueError:  # rows of different lengths
            raise TaxonomyError(f"{needed}, got rows that make no matrix") from None
        if given.dtype.kind not in "biuf":
            raise TaxonomyError(f"{needed}, got {type(matrix).__name__} of {given.dtype}")
        if given.ndim != 2 or given.shape[1] != len(self):
            raise TaxonomyError(f"{needed}, got shape {given.shape}")
        rows = sparse.csr_array(given)
        if rows.dtype != bool:
            strange = ~((rows.data >= 0) & (rows.data == np.floor(rows.data)))  # entries given twice add up: 2 is fine
            if strange.any():
                raise TaxonomyError(
                    f"{needed}, 1 where a document has it and 0 where not, got the value {rows.data[strange][0]}"
                )
            rows = rows.astype(bool)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        if rows.nnz and not rows.data.all():
            rows = rows.copy()
            rows.eliminate_zeros()
        return rows


def _strings(values: Iterable[str], what: str) -> tuple[str, ...]:
    found = tuple(values)
    for value in found:
        if not isinstance(value, str):
            raise TaxonomyError(f"{what} must be strings, got {value!r}")
    return found


def one_line(text: str) -> str:
    r"""A text on one line: line ends, tabs and runs of blanks become a blank, as prose means the same with them.

    So a definition can stand in a cell, a line or a document alike, and comes back from each of them as it was.

    Examples
    --------
    >>> one_line(" Bars that\n  serve beer. ")
    'Bars that serve beer.'
    """
    return " ".join(text.split())


def _definitions(given: Sequence[str] | None, n_labels: int) -> tuple[str, ...]:
    if given is None:
        return ("",) * n_labels
    found = tuple(one_line(text) if text else "" for text in _strings(given, "definitions"))
    if len(found) != n_labels:
        raise TaxonomyError(
            f"one definition for each of {n_labels} labels is needed (empty for none), got {len(found)}"
        )
    return found


def _check_given(
    names: Mapping[str, str] | None, definitions: Mapping[str, str] | None, labels: Mapping[str, Any], unknown: str
) -> None:
    """Names and definitions are for labels that are there."""
    for what, given in (("name", names), ("definition", definitions)):
        for label in given or {}:
            if label not in labels:
                raise TaxonomyError(f"a {what} is given for {label!r}, {unknown}")


def _collected(labels: Iterable[Any]) -> list[Any]:
    if isinstance(labels, str):
        raise TaxonomyError(f"a collection of labels is needed, got the string {labels!r}; write [{labels!r}]")
    return list(labels)


def _is_record(value: Any) -> bool:
    """Whether this is one `{"label", "name", "parents"}` as `Taxonomy.records` gives it."""
    if not isinstance(value, Mapping) or not isinstance(value.get("parents"), list):
        return False
    return all(isinstance(word, str) for word in (value.get("label"), value.get("name"), *value["parents"]))


def _parent_matrix(
    labels: tuple[str, ...], parents: Sequence[Iterable[str]], index: Mapping[str, int]
) -> sparse.csr_array:
    starts: list[int] = [0]
    columns: list[int] = []
    for label, above in zip(labels, parents, strict=True):
        if isinstance(above, str) or not isinstance(above, Iterable):
            given = "the string " if isinstance(above, str) else ""
            raise TaxonomyError(f"the parents of {label!r} must be a list of labels, got {given}{above!r}")
        mine = []
        for parent in above:
            if not isinstance(parent, str) or parent not in index:
                near = did_you_mean(str(parent), labels)
                hint = f"did you mean {near!r}?" if near else "add it as a label of its own"
                raise TaxonomyError(f"parent {parent!r} of label {label!r} is not in the taxonomy; {hint}")
            mine.append(index[parent])
        columns.extend(dict.fromkeys(mine))
        starts.append(len(columns))
    data = np.ones(len(columns), dtype=np.bool_)
    arrays = (data, np.array(columns, dtype=np.int32), np.array(starts, dtype=np.int32))
    matrix = sparse.csr_array(arrays, shape=(len(labels), len(labels)))
    matrix.sort_indices()
    return matrix


def _levels(
    parent_matrix: sparse.csr_array, child_matrix: sparse.csr_array, labels: tuple[str, ...]
) -> tuple[Indices, Indices]:
    """Shortest and longest ways from the root: peel the graph from the top, a label once all its parents are gone.

    Plain Python on lists: once for each edge and at building only, and a deep chain costs no more than a flat tree,
    which it would if numpy peeled one thin generation after the other.
    """
    waiting = np.diff(parent_matrix.indptr).tolist()
    starts, children = child_matrix.indptr.tolist(), child_matrix.indices.tolist()
    shortest, longest = [0] * len(labels), [0] * len(labels)
    peeled = [i for i, parents in enumerate(waiting) if not parents]
    for i in peeled:
        shortest[i] = longest[i] = 1
    for i in peeled:  # grows while we go
        below = shortest[i] + 1
        for child in children[starts[i] : starts[i + 1]]:
            shortest[child] = min(shortest[child] or below, below)
            longest[child] = longest[i] + 1  # labels come by longest way, so the last parent's word counts
            waiting[child] -= 1
            if not waiting[child]:
                peeled.append(child)
    if len(peeled) < len(labels):
        cycle = find_cycle(parent_matrix, np.setdiff1d(np.arange(len(labels)), peeled))
        steps = " -> ".join(repr(labels[i]) for i in cycle)
        raise TaxonomyError(f"the taxonomy has a cycle: {steps}; remove one of these parents")
    return np.array(shortest, dtype=np.int32), np.array(longest, dtype=np.int32)


def find_cycle(parent_matrix: sparse.csr_array, suspects: NDArray[Any]) -> list[int]:
    """One cycle, from child to parent and back to the child, among labels none of which was reached from the top."""
    stuck = set(suspects.tolist())
    seen: dict[int, int] = {}
    steps: list[int] = []
    at = min(stuck)
    while at not in seen:  # every stuck label has a stuck parent, so this must come round
        seen[at] = len(steps)
        steps.append(at)
        at = next(int(p) for p in _row(parent_matrix, at) if int(p) in stuck)
    return [*steps[seen[at] :], at]


def _row(matrix: sparse.csr_array, i: int) -> Indices:
    return np.asarray(matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]])


def _rows(matrix: sparse.csr_array, rows: Indices) -> Indices:
    return np.asarray(matrix[rows].indices) if len(rows) else np.empty(0, dtype=np.int32)


def _identity(n: int) -> sparse.csr_array:
    return sparse.eye_array(n, dtype=bool, format="csr")


def _as_indicator(matrix: Any) -> Indicator:
    """Any sparse matrix of truths as int32 ones, sorted. Not int8: some libraries add it up and overflow."""
    rows = sparse.csr_array(matrix)
    rows.eliminate_zeros()
    rows.sort_indices()
    data = np.ones(rows.nnz, dtype=np.int32)
    return sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def _first_repeated(labels: Iterable[str]) -> str:
    seen: set[str] = set()
    return next(label for label in labels if label in seen or seen.add(label))  # type: ignore[func-returns-value]
