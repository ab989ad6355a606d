"""Indented text: a label a line, below the last line that is indented less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from hilap.errors import require
from hilap.taxonomy.draft import Draft
from hilap.taxonomy.formats.building import SEPARATOR, Item, Root, check_ids, draft_of_items
from hilap.taxonomy.formats.content import Content, is_comment, shown
from hilap.taxonomy.formats.holding import named_paths, refuse
from hilap.taxonomy.graph import Taxonomy


def read_indented(content: Content, *, ids: str = "path", separator: str = SEPARATOR, root: Root = None) -> Draft:
    """A label a line, indented by tabs or blanks; a line steps back only to where an earlier one stood."""
    check_ids(ids)
    return draft_of_items(content, "indented", list(_items(content)), ids, separator, root)


def write_indented(
    taxonomy: Taxonomy, out: IO[str], *, ids: str = "path", separator: str = SEPARATOR, indent: str = "\t"
) -> None:
    """A name a line. Ids are not written: they must be the paths of names, or the names (`ids="name"`)."""
    require(bool(indent) and (set(indent) == {" "} or indent == "\t"), "indent", "a tab or blanks", indent)
    for _, path in named_paths(taxonomy, "indented", ids, separator, numbered=False):
        if is_comment(path[-1]):
            raise refuse("indented", f"{shown(path[-1])} would be read as a comment", "write it as jsonl")
        out.write(indent * (len(path) - 1) + path[-1] + "\n")


def _items(content: Content) -> Iterator[Item]:
    open_indents: list[str] = []
    for line, text in content.significant_lines():
        name = text.strip()
        if is_comment(name):
            continue
        indent = text[: len(text) - len(text.lstrip())]
        deepest = open_indents[-1] if open_indents else indent
        while open_indents and len(open_indents[-1]) > len(indent):
            open_indents.pop()
        if not open_indents or open_indents[-1] != indent:
            fault = _fault(indent, deepest)
            if fault:
                raise content.error(line, f"{fault}: {shown(name)}")
            open_indents.append(indent)
        yield Item(line, len(open_indents) - 1, name)


def _fault(indent: str, deepest: str) -> str | None:
    """What is wrong with an indentation that no open level has; None where it opens the next level."""
    if not indent.startswith(deepest):
        if deepest.startswith(indent):
            return "the line steps back to a column where no line above it stands"
        return "tabs and blanks are mixed in the indentation; use one of them"
    further = indent[len(deepest) :]
    if set(further) == {"\t"} and len(further) > 1:
        return "the line is indented by more than one tab, so a level is missing above it"
    return None
