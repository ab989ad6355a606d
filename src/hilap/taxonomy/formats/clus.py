"""The header of a Clus ARFF file, whose one hierarchical attribute lists the labels: as paths, or as edges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO

from hilap.errors import require
from hilap.taxonomy.draft import Draft
from hilap.taxonomy.formats.building import Edges, Root, Row, draft_of_paths
from hilap.taxonomy.formats.content import Content, shown
from hilap.taxonomy.formats.holding import check_holds, check_no_root, refuse
from hilap.taxonomy.graph import Taxonomy

_RELATION = re.compile(r"@relation(?:\s+(.*))?", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\S+)\s+(\S.*)", re.IGNORECASE)
_DATA = re.compile(r"@data\s*", re.IGNORECASE)
_HIERARCHICAL = re.compile(r"hierarchical\s+(\S.*)", re.IGNORECASE)
_UNFIT = re.compile(r"[\s,/@'\"]")


@dataclass(frozen=True)
class ClusHeader:
    """What stands before the data of a Clus ARFF file."""

    relation: str
    attributes: list[tuple[str, str]]  # name and type as written, without the hierarchical one
    class_position: int  # the column of the hierarchical attribute
    draft: Draft
    data_line: int  # the number of the @DATA line


@dataclass(frozen=True)
class _Labels:
    line: int
    position: int
    text: str


def read_clus(content: Content, *, root: Root = None) -> Draft:
    """The labels of a Clus ARFF file; the data below the header is not looked at."""
    return _header(content.lines(), content, root).draft


def parse_header(lines: Iterator[tuple[int, str]], source: str) -> ClusHeader:
    """Read a header from numbered lines, up to and including `@DATA`; the iterator then stands at the data."""
    return _header(lines, Content(source), None)


def write_clus(taxonomy: Taxonomy, out: IO[str], *, relation: str = "taxonomy") -> None:
    """A header with no attribute but the labels, as edges below `root`, and no data."""
    check_holds(taxonomy, "clus", names=False)
    check_no_root(taxonomy, "clus")
    require(re.fullmatch(r"\S+", relation) is not None, "relation", "a word", relation)
    if "root" in taxonomy:
        raise refuse("clus", "'root' stands for the root, and here it is a label", "rename it, or write it as jsonl")
    for label in taxonomy.labels:
        if _UNFIT.search(label) or label.startswith("%"):
            raise refuse("clus", f"id {shown(label)} has a blank or one of , / @ ' \"", "write it as jsonl")
    pairs = (f"{p}/{r['label']}" for r in taxonomy.records() for p in r["parents"] or ["root"])
    out.write(f"@RELATION {relation}\n\n@ATTRIBUTE class hierarchical {','.join(pairs)}\n\n@DATA\n")


def _header(lines: Iterator[tuple[int, str]], content: Content, root: Root) -> ClusHeader:
    relation, attributes, found, line = "", [], None, 0
    for line, raw in lines:
        text = raw.strip()
        if not text or text.startswith("%"):
            continue
        if _DATA.fullmatch(text):
            if found is None:
                message = (
                    "there is no attribute with labels; '@ATTRIBUTE class hierarchical a,a/b' is needed above @DATA"
                )
                raise content.error(line, message)
            return ClusHeader(relation, attributes, found.position, _draft(content, found, root), line)
        if match := _RELATION.fullmatch(text):
            relation = _unquoted((match[1] or "").strip())
        elif match := _ATTRIBUTE.fullmatch(text):
            labels = _HIERARCHICAL.fullmatch(match[2])
            if labels is None:
                attributes.append((_unquoted(match[1]), match[2].strip()))
            elif found is None:
                found = _Labels(line, len(attributes), labels[1])
            else:
                raise content.error(line, f"a second hierarchical attribute; the first is on line {found.line}")
        else:
            raise content.error(line, f"@RELATION, @ATTRIBUTE or @DATA is expected, got {shown(text)}")
    raise content.error(line, "the file ends before @DATA; is it a Clus ARFF file, and whole?")


def _draft(content: Content, labels: _Labels, root: Root) -> Draft:
    listed = [entry.strip() for entry in labels.text.split(",")]
    if not all(listed) or any(not part for entry in listed for part in entry.split("/")):
        raise content.error(
            labels.line, "an entry of the hierarchical attribute is empty: ',,', '//' or one at the end"
        )
    if _are_edges(listed, root):
        edges = Edges(content, "clus")
        for entry in listed:
            parent, _, child = entry.partition("/")
            edges.edge(parent, child, labels.line) if child else edges.label(parent, labels.line)
        return edges.finished(root)
    rows = [Row(labels.line, tuple(entry.split("/"))) for entry in listed]
    draft = draft_of_paths(content, "clus", rows, "path", "/", root)
    draft.entries = [replace(entry, name=entry.label) for entry in draft.entries]  # `03` alone says nothing
    return draft


def _are_edges(entries: Sequence[str], root: Root) -> bool:
    """Whether the entries are `parent/child` edges as in GO, and not paths as in FunCat."""
    if any(entry.count("/") > 1 for entry in entries):
        return False
    pairs = [entry.partition("/") for entry in entries if "/" in entry]
    known = set(entries)
    if len(pairs) < len(entries) and all(parent in known for parent, _, _ in pairs):
        return False
    first, second = {parent for parent, _, _ in pairs}, {child for _, _, child in pairs}
    below_root = any(parent.casefold() == "root" or parent == root for parent in first)
    return below_root or bool(first & second)


def _unquoted(name: str) -> str:
    if len(name) >= 2 and name[0] == name[-1] and name[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", name[1:-1])
    return name
