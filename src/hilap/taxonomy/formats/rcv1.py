"""The topics of RCV1-v2 (`rcv1.topics.hier.orig`): `parent: X  child: Y  child-description: Z` a line."""

from __future__ import annotations

import re
from typing import IO

from hilap.taxonomy.draft import Draft
from hilap.taxonomy.formats.building import Edges, Root
from hilap.taxonomy.formats.content import Content, shown
from hilap.taxonomy.formats.holding import check_holds, check_no_root, refuse
from hilap.taxonomy.graph import Taxonomy

_LINE = re.compile(r"\s*parent:\s*(\S.*?)\s+child:\s*(\S.*?)\s+child-description:\s*(.*?)\s*")
_NOTHING = "None"  # the parent of the root
_MOST_CHARACTERS = 2_000  # bounds the time that matching takes


def read_rcv1(content: Content, *, root: Root = None) -> Draft:
    """An edge a line, with the name of the child."""
    edges = Edges(content, "rcv1")
    for line, text in content.significant_lines():
        parts = parts_of(text)
        if parts is None:
            message = f"'parent: X child: Y child-description: Z' is expected, got {shown(text)}"
            raise content.error(line, message)
        parent, child, name = parts
        edges.child(child, line, None if parent == _NOTHING else parent, name or child)
    return edges.finished(root)


def parts_of(line: str) -> tuple[str, str, str] | None:
    """Parent, child and description, if the line has them."""
    match = _LINE.fullmatch(line) if len(line) <= _MOST_CHARACTERS else None
    return None if match is None else (match[1], match[2], match[3])


def write_rcv1(taxonomy: Taxonomy, out: IO[str]) -> None:
    """The root first, then an edge a line; a label with several parents has a line for each."""
    check_holds(taxonomy, "rcv1")
    check_no_root(taxonomy, "rcv1")
    out.write(_line(_NOTHING, "Root", "Root"))
    for record in taxonomy.records():
        for parent in record["parents"] or ["Root"]:
            out.write(_line(parent, record["label"], record["name"]))


def _line(parent: str, child: str, name: str) -> str:
    line = f"parent: {parent}  child: {child}  child-description: {name}"
    if parts_of(line) != (parent, child, name) or (parent == _NOTHING and child != "Root"):
        raise refuse("rcv1", f"{shown(line)} would not be read back as it is", "write it as jsonl")
    return line + "\n"
