"""From what a file says to a draft: checked ids and names, edges gathered by child, the root left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from hilap.errors import TaxonomyError, did_you_mean, require
from hilap.taxonomy.draft import Draft, Entry
from hilap.taxonomy.formats.content import Content, shown
from hilap.taxonomy.graph import one_line

Root: TypeAlias = str | bool | None
"""Which label is the root and left out: None one called "root", a string that label, "" or False none."""

SEPARATOR = " > "
MOST_LEVELS = 100  # of files that hold trees as trees: every prefix of every path is kept in memory
MOST_LABEL_CHARACTERS = 1_000  # paths are ids: without a limit, a small deep file would grow without bounds
MOST_DEFINITION_CHARACTERS = 1_000_000  # whatever they are, a line with them is shorter than the longest that is read

_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # control characters, and halves of surrogate pairs


def complaint(text: str, what: str) -> str | None:
    """What keeps a text from being an id (`what="label"`), a name or a definition, or None where nothing does."""
    if not text and what not in ("name", "definition"):
        return f"a {what} is empty; every label needs an id"
    if _UNFIT.search(text):
        return f"{what} {shown(text)} has a control character (a tab, a line end, half a character); remove it"
    most = MOST_DEFINITION_CHARACTERS if what == "definition" else MOST_LABEL_CHARACTERS
    if len(text) > most and what != "name":
        return f"{what} {shown(text)} is longer than {most:,} characters; is this the right file and format?"
    return None


def checked(content: Content, line: int, text: str, what: str = "label") -> str:
    """The text itself where it can be an id or a name."""
    if text and len(text) <= MOST_LABEL_CHARACTERS and not _UNFIT.search(text):  # nearly always
        return text
    found = complaint(text, what)
    if found:
        raise content.error(line, found)
    return text


def definition_of(content: Content, line: int, text: str) -> str:
    """A definition as it is kept: on one line, and without characters that are no text."""
    return checked(content, line, one_line(text), "definition") if text else ""


# -- labels and edges -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Gathered:
    line: int
    name: str
    is_child: bool = False
    parents: dict[str, int] = field(default_factory=dict)  # parent -> line of the edge
    definition: str = ""
    defined: int = 0  # line of the definition


class Edges:
    """Labels and edges as they come by, in any order; several edges to one child make one entry."""

    def __init__(self, content: Content, kind: str) -> None:
        self._content = content
        self.draft = Draft(content.name, kind)
        self._labels: dict[str, _Gathered] = {}
        self._again: list[tuple[str, _Gathered]] = []

    def label(self, label: str, line: int, name: str | None = None) -> None:
        """A label that stands in the file as a parent or on its own."""
        if label not in self._labels:
            checked(self._content, line, label)
            checked(self._content, line, label if name is None else name, "name")
            self._labels[label] = _Gathered(line, label if name is None else name)

    def edge(self, parent: str, child: str, line: int) -> None:
        """A parent and its child; both become labels."""
        self.label(parent, line)
        self.child(child, line, parent)

    def child(self, child: str, line: int, parent: str | None, name: str | None = None) -> None:
        """A row about a label: it has this parent, or is at the top; the parent may stand elsewhere, or nowhere."""
        self.label(child, line, name)
        gathered = self._labels[child]
        if not gathered.is_child:
            gathered.is_child, gathered.line = True, line
            gathered.name = gathered.name if name is None else checked(self._content, line, name, "name")
        elif name is not None and name != gathered.name:
            gathered = _Gathered(line, checked(self._content, line, name, "name"), is_child=True)
            self._again.append((child, gathered))  # two names for one id: lint reports the second one
        elif parent is None:
            self.draft.remarks.append((line, f"label {shown(child)} stands here again without a parent"))
        if parent is None:
            return
        if parent in gathered.parents:
            before = gathered.parents[parent]
            remark = f"the edge from {shown(parent)} to {shown(child)} stands here again (first on line {before})"
            self.draft.remarks.append((line, remark))
        else:
            gathered.parents[checked(self._content, line, parent, "parent")] = line

    def define(self, label: str, line: int, text: str) -> None:
        """What a label that was met means; where rows do not agree, the first one is kept."""
        meant, gathered = definition_of(self._content, line, text), self._labels[label]
        if meant and not gathered.definition:
            gathered.definition, gathered.defined = meant, line
        elif meant and meant != gathered.definition:
            remark = f"the definition of {shown(label)} is not that of line {gathered.defined}, which is kept"
            self.draft.remarks.append((line, remark))

    def finished(self, root: Root) -> Draft:
        """The draft, without the root."""
        for label, found in (*self._labels.items(), *self._again):
            self.draft.entries.append(Entry(label, found.name, tuple(found.parents), found.line, found.definition))
        return without_root(self.draft, root)


def wanted_root(root: Root) -> str | None:
    """The label to leave out, "" for none, None for one called "root"."""
    require(root is None or isinstance(root, (str, bool)), "root", "a label, None, or False for no root", root)
    return None if root is None or root is True else root or ""


def without_root(draft: Draft, root: Root) -> Draft:
    """The draft without the label that is the root: its children become top labels."""
    wanted = wanted_root(root)
    if wanted == "":
        return draft
    lines = {entry.label: entry.line for entry in draft.entries}
    with_parents = {entry.label for entry in draft.entries if entry.parents}
    above = {parent for entry in draft.entries for parent in entry.parents}
    if wanted is None:
        out = {label for label in lines.keys() | above if label.casefold() == "root"} - with_parents
    else:
        _check_root(draft, wanted, lines, above, with_parents)
        out = {wanted}
    if not out:
        return draft
    for label in sorted(out):
        draft.remarks.append((lines.get(label, 0), f"{shown(label)} is taken for the root and left out: no label"))
    kept = [entry for entry in draft.entries if entry.label not in out]
    draft.entries = [
        replace(e, parents=tuple(p for p in e.parents if p not in out)) if out.intersection(e.parents) else e
        for e in kept
    ]
    return draft


def _check_root(draft: Draft, root: str, lines: dict[str, int], above: set[str], with_parents: set[str]) -> None:
    if root not in lines and root not in above:
        near = did_you_mean(root, lines)
        hint = f"did you mean {shown(near)}?" if near else "name a label of the file, or leave root out"
        raise TaxonomyError(f"{draft.source}: there is no label {shown(root)} that could be the root; {hint}")
    if root in with_parents:
        raise TaxonomyError(
            f"{draft.where(lines[root])}: {shown(root)} has a parent and cannot be the root; name the label at the top"
        )


# -- trees of names ---------------------------------------------------------------------------------------------------


def check_ids(ids: str) -> None:
    """Where labels are given by name alone, an id is the whole path, or the name itself."""
    require(ids in ("path", "name"), "ids", "'path' or 'name'", ids)


class Item(NamedTuple):
    """One label of a nested or indented file, in the order of the file."""

    line: int
    depth: int  # 0 for a top label
    name: str
    id: str | None = None
    definition: str = ""


class Row(NamedTuple):
    """One line of a path list."""

    line: int
    path: tuple[str, ...]
    id: str | None = None
    definition: str = ""


def draft_of_items(content: Content, kind: str, items: Sequence[Item], ids: str, separator: str, root: Root) -> Draft:
    """A draft from labels each of which stands below the last one that is less deep."""
    draft = Draft(content.name, kind)
    items = _items_below_root(draft, items, root)
    stack: list[tuple[str, str]] = []  # the path of names and the label, for each depth
    for item in items:
        if item.depth >= MOST_LEVELS:
            raise _too_deep(content, item.line)
        del stack[item.depth :]
        path = stack[-1][0] + separator + item.name if stack else item.name
        label = item.id if item.id is not None else path if ids == "path" else item.name
        checked(content, item.line, item.name, "name")
        parents = (stack[-1][1],) if stack else ()
        meant = definition_of(content, item.line, item.definition)
        draft.entries.append(Entry(checked(content, item.line, label), item.name, parents, item.line, meant))
        stack.append((path[: MOST_LABEL_CHARACTERS + 1], label))
    return draft


def _too_deep(content: Content, line: int) -> TaxonomyError:
    return content.error(line, f"the label is deeper than {MOST_LEVELS} levels; is this the right file and format?")


def _items_below_root(draft: Draft, items: Sequence[Item], root: Root) -> Sequence[Item]:
    wanted = wanted_root(root)
    tops = [item for item in items if item.depth == 0]
    names = {text for item in tops[:1] for text in (item.name, item.id) if text is not None}
    is_root = wanted in names if wanted else any(name.casefold() == "root" for name in names)
    if len(tops) == 1 and wanted != "" and is_root:
        draft.remarks.append((tops[0].line, f"{shown(tops[0].name)} is taken for the root and left out: no label"))
        return [item._replace(depth=item.depth - 1) for item in items if item.depth]
    _check_top(draft, wanted, [item.name for item in tops])
    return items


def _check_top(draft: Draft, wanted: str | None, tops: Iterable[str]) -> None:
    if wanted:
        given = ", ".join(shown(top) for top in dict.fromkeys(tops)) or "nothing"
        raise TaxonomyError(
            f"{draft.source}: {shown(wanted)} is not the one label at the top ({given[:200]}); "
            "name that label, or leave root out"
        )


def draft_of_paths(content: Content, kind: str, rows: Sequence[Row], ids: str, separator: str, root: Root) -> Draft:
    """A draft from paths in any order; what stands only inside longer paths is added."""
    draft = Draft(content.name, kind)
    rows = _rows_below_root(draft, rows, root)

    def label_of(path: tuple[str, ...]) -> str:
        return separator.join(path) if ids == "path" else path[-1]

    listed: dict[tuple[str, ...], str] = {}
    for row in rows:
        if len(row.path) > MOST_LEVELS:
            raise _too_deep(content, row.line)
        listed.setdefault(row.path, row.id if row.id is not None else label_of(row.path))
    known: dict[tuple[str, ...], str] = dict(listed)
    added: list[tuple[int, str]] = []

    def add(line: int, path: tuple[str, ...], label: str, definition: str = "") -> None:
        checked(content, line, label)
        parents = (known[path[:-1]],) if len(path) > 1 else ()
        meant = definition_of(content, line, definition)
        draft.entries.append(Entry(label, checked(content, line, path[-1], "name"), parents, line, meant))

    for row in rows:
        label = row.id if row.id is not None else label_of(row.path)
        checked(content, row.line, label)  # before the prefixes: they are shorter, so this bounds the work
        for length in range(1, len(row.path)):
            prefix = row.path[:length]
            if prefix not in known:
                known[prefix] = label_of(prefix)
                added.append((row.line, known[prefix]))
                add(row.line, prefix, known[prefix])
        add(row.line, row.path, label, row.definition)
    if added:
        first, count = added[0], f"{len(added):,} label{'s' if len(added) > 1 else ''}"
        remark = f"{count} never listed alone, but inside longer paths, became labels too: first {shown(first[1])}"
        draft.remarks.append((first[0], remark))
    return draft


def _rows_below_root(draft: Draft, rows: Sequence[Row], root: Root) -> Sequence[Row]:
    wanted = wanted_root(root)
    tops = {row.path[0] for row in rows}
    top = next(iter(tops)) if len(tops) == 1 else None
    if top is not None and wanted != "" and (top == wanted if wanted else top.casefold() == "root"):
        draft.remarks.append((rows[0].line, f"{shown(top)} is taken for the root and left out: no label"))
        return [row._replace(path=row.path[1:]) for row in rows if len(row.path) > 1]
    _check_top(draft, wanted, sorted(tops))
    return rows
