"""From what a file gives as labels to the indices of a taxonomy.

A label is given as an id, an alias, a name that only one label has, or a path of names or ids from a top label down.
Every distinct string is looked up once; after that it costs one look in a dictionary.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from hilap.corpus.values import is_number
from hilap.errors import CorpusError, did_you_mean
from hilap.taxonomy.graph import Taxonomy

Given: TypeAlias = "str | tuple[str, ...]"
"""A label as given: one string, or a path as the tuple of its steps."""

SEPARATORS = (" > ", " :: ", "/")
"""What is tried between the steps of a path where nothing was said."""


class BadLabelsError(Exception):
    """The labels of a line are not of a form that can be labels: the line is bad."""


class UnresolvedError(Exception):
    """A label is well formed, but the taxonomy does not tell which label is meant."""


class _NotPlainError(Exception):
    """A label is no string: it must be brought into form first."""


class _Memory(dict[Given, int]):
    """Label as given -> index; what is not there yet is found once and remembered."""

    def __init__(self, known: dict[Given, int], find: Callable[[Given], int]) -> None:
        super().__init__(known)
        self._find = find

    def __missing__(self, given: Any) -> int:
        if not _is_plain(given):
            raise _NotPlainError
        self[given] = index = self._find(given)
        return index


class Resolver:
    """Finds the labels of documents in a taxonomy.

    Parameters
    ----------
    taxonomy
        Where the labels are looked up.
    path_separator
        What stands between the steps of a path; None tries ' > ', ' :: ' and '/'.
    strangers
        What unknown labels get: "error" raises, "collect" gives each a negative index (-1 for `unknown[0]`, -2 for
        `unknown[1]`, ...), so that the caller can count or add them.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"food": [], "bars": ["food"]}, {"food": "Food", "bars": "Bars"})
    >>> Resolver(taxonomy).indices(["bars", "Food", "Food > Bars"])
    [1, 0, 1]
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        path_separator: str | None = None,
        strangers: Literal["error", "collect"] = "error",
    ) -> None:
        self.taxonomy = taxonomy
        self.unknown: list[Given] = []
        self._separators = SEPARATORS if path_separator is None else (path_separator,)
        self._collect = strangers == "collect"
        self._by_name: dict[str, list[int]] | None = None
        self._ids: dict[Given, int] = {label: i for i, label in enumerate(taxonomy.labels)}
        self._ids.update({alias: self._ids[label] for alias, label in taxonomy.aliases.items()})
        self._memory = _Memory(self._ids, self._found_or_stranger)

    @property
    def rules(self) -> list[Any]:
        """What decides, beside the taxonomy, which label is meant: plain values."""
        return [list(self._separators), self._collect]

    def indices(self, given: list[Any]) -> list[int]:
        """The index of every given label."""
        memory = self._memory
        try:
            return [memory[label] for label in given]
        except (TypeError, _NotPlainError):  # numbers, objects or lists among them
            return [memory[plain(label)] for label in given]

    def find(self, given: Given) -> int | None:
        """The index of a label, None where the taxonomy has no such label."""
        if isinstance(given, tuple):
            return self._one_of(self._walk(given)[-1], given)
        if given in self._ids:
            return self._ids[given]
        if given in self._named:
            return self._one_of(self._named[given], given)
        for steps in self._splits(given):
            if found := self._walk(steps)[-1]:
                return self._one_of(found, given)
        return None

    def steps(self, given: Given) -> tuple[tuple[str, ...], str]:
        """A label that is not in the taxonomy as the steps of a path, one step if it is none, and their separator."""
        if isinstance(given, tuple):
            return given, self._separators[0]
        for separator in self._separators:
            parts = _split(given, separator)
            if len(parts) > 1:
                return parts, separator
        return (given,), self._separators[0]

    def reach(self, steps: Sequence[str]) -> list[list[int]]:
        """For every step of a path the labels it may stand for, as far as the taxonomy goes."""
        return [found for found in self._walk(steps) if found]

    def _found_or_stranger(self, given: Given) -> int:
        index = self.find(given)
        if index is not None:
            return index
        if not self._collect:
            raise UnresolvedError(f"label {shown(given)!r} is not in the taxonomy; {self._hint(given)}")
        self.unknown.append(given)
        return -len(self.unknown)

    def _one_of(self, found: Sequence[int], given: Given) -> int | None:
        if len(found) > 1:
            candidates = ", ".join(repr(self.taxonomy.labels[i]) for i in found[:5])
            more = f" and {len(found) - 5} more" if len(found) > 5 else ""
            raise UnresolvedError(f"label {shown(given)!r} is ambiguous; give one of the ids {candidates}{more}")
        return found[0] if found else None

    @property
    def _named(self) -> dict[str, list[int]]:
        if self._by_name is None:
            self._by_name = {}
            for i, name in enumerate(self.taxonomy.names):
                self._by_name.setdefault(name, []).append(i)
        return self._by_name

    def _splits(self, given: str) -> Iterator[tuple[str, ...]]:
        for separator in self._separators:
            parts = _split(given, separator)
            if len(parts) > 1:
                yield parts

    def _walk(self, steps: Sequence[str]) -> list[list[int]]:
        """For every step the labels of that id or name below those of the step before; stops after an empty one."""
        above = self.taxonomy.parent_matrix
        reached: list[list[int]] = []
        for depth, step in enumerate(steps):
            known = dict.fromkeys([*([self._ids[step]] if step in self._ids else []), *self._named.get(step, [])])
            found = []
            for i in known:
                parents = above.indices[above.indptr[i] : above.indptr[i + 1]].tolist()
                if (not parents) if depth == 0 else not set(reached[-1]).isdisjoint(parents):
                    found.append(i)
            reached.append(found)
            if not found:
                break
        return reached

    def _hint(self, given: Given) -> str:
        steps, separator = self.steps(given)
        way = self.reach(steps)
        if way:  # a path that starts well: look among the labels below the last step that is right
            below = {c for i in way[-1] for c in self.taxonomy.children(self.taxonomy.labels[i])}
            near = did_you_mean(steps[len(way)], [*below, *(self.taxonomy.name(label) for label in below)])
            if near:
                return f"did you mean {separator.join([*steps[: len(way)], near])!r}?"
        elif near := did_you_mean(shown(given), [*map(shown, self._ids), *self._named]):
            return f"did you mean {near!r}?"
        return "add it to the taxonomy, or read with unknown='drop'"


def plain(label: Any) -> Given:
    """One given label as a string, or as a tuple where it is a path."""
    if isinstance(label, dict) and "label" in label:
        label = label["label"]
    if isinstance(label, (list, tuple)):
        steps = tuple(_text(step) for step in label)
        if not steps:
            raise BadLabelsError("a label is an empty list; a path needs at least one step")
        return steps if len(steps) > 1 else steps[0]
    return _text(label)


def shown(given: Given) -> str:
    """A label as it is written in messages."""
    return given if isinstance(given, str) else " > ".join(given)


def grow(taxonomy: Taxonomy, strangers: Iterable[Given], path_separator: str | None = None) -> Taxonomy:
    """The taxonomy with unknown labels added: paths below what is there, all others as top labels.

    Examples
    --------
    >>> taxonomy = grow(Taxonomy.of({"food": []}), ["food > bars", "shops"])
    >>> taxonomy.labels, taxonomy.parents("food > bars")
    (('food', 'food > bars', 'shops'), ('food',))
    """
    resolver = Resolver(taxonomy, path_separator=path_separator)
    paths: list[tuple[tuple[str, ...], str]] = []
    plains: list[tuple[tuple[str, ...], str]] = []
    for given in strangers:
        steps, separator = resolver.steps(given)
        (plains if len(steps) == 1 else paths).append((steps, separator))
    branch = _Branch(resolver)
    for steps, separator in paths:
        branch.add(steps, separator)
    grown = branch.taxonomy()
    # A plain label may be the first step of a path, but is no step farther down: `02` and `01/02` are two labels.
    tops = [steps[0] for steps, _ in plains if steps[0] not in grown]
    return grown.extended(dict.fromkeys(tops, ())) if tops else grown


class _Branch:
    """New labels that grow out of a taxonomy, until they are added all at once."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._parents: dict[str, tuple[str, ...]] = {}
        self._names: dict[str, str] = {}
        self._below: dict[tuple[str | None, str], str] = {}  # (parent, step) -> the new label there

    def add(self, steps: tuple[str, ...], separator: str) -> None:
        labels = self._resolver.taxonomy.labels
        way = self._resolver.reach(steps)
        at: str | None = None
        if way:
            if len(way[-1]) > 1:
                candidates = ", ".join(repr(labels[i]) for i in way[-1][:5])
                raise UnresolvedError(
                    f"label {shown(steps)!r} cannot be added: step {steps[len(way) - 1]!r} may be any of {candidates}"
                )
            at = labels[way[-1][0]]
        for step in steps[len(way) :]:
            at = self._below.get((at, step)) or self._sprout(at, step, separator, steps)

    def taxonomy(self) -> Taxonomy:
        start = self._resolver.taxonomy
        return start.extended(self._parents, self._names) if self._parents else start

    def _sprout(self, parent: str | None, step: str, separator: str, steps: tuple[str, ...]) -> str:
        label = step if parent is None else f"{parent}{separator}{step}"
        start = self._resolver.taxonomy
        if label in start or label in start.aliases or label in self._parents:
            known = start.aliases.get(label, label)
            place = f"; it is at {' > '.join(start.path(known))!r}" if known in start else ""
            raise UnresolvedError(
                f"label {shown(steps)!r} cannot be added: id {label!r} is taken{place}; paths start at a top label"
            )
        self._parents[label] = () if parent is None else (parent,)
        self._names[label] = step
        self._below[parent, step] = label
        return label


def grown_from(taxonomy: Taxonomy, strangers: Iterable[Given], path_separator: str | None, name: str) -> Taxonomy:
    """Like `grow`, with errors that name the source."""
    try:
        return grow(taxonomy, strangers, path_separator)
    except UnresolvedError as fault:
        raise CorpusError(f"{name}: {fault}") from None


def _is_plain(given: Any) -> bool:
    if isinstance(given, str):
        return given != ""
    return isinstance(given, tuple) and len(given) > 1 and all(isinstance(step, str) and step for step in given)


def _split(given: str, separator: str) -> tuple[str, ...]:
    return tuple(part for part in map(str.strip, given.split(separator)) if part)


def _text(label: Any) -> str:
    if isinstance(label, str):
        if not label:
            raise BadLabelsError("a label is an empty string")
        return label
    if is_number(label):
        try:
            if math.isfinite(label):
                return str(int(label)) if isinstance(label, numbers.Integral) else repr(float(label))
        except (OverflowError, ValueError):  # an integer with hundreds of digits
            raise BadLabelsError("a label is a number far too large; write labels as strings") from None
    raise BadLabelsError(f"a label must be a string, got {'null' if label is None else repr(label):.80}")


__all__ = ["BadLabelsError", "Given", "Resolver", "UnresolvedError", "grow", "grown_from", "plain", "shown"]
