"""Which format a file is in, judged from its content. Every test is for a sign that only one format has.

The order matters: what is unmistakable comes first, tables before paths, paths before indented text. A plain list of
words has no sign at all; it is refused, and the user names the format.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hilap.errors import TaxonomyError
from hilap.taxonomy.formats import edges, iab, mesh, nested, paths, rcv1, skos
from hilap.taxonomy.formats.content import Content, is_comment
from hilap.taxonomy.formats.tables import delimiter_of, quoted_rows, tab_rows

_MOST_LINES = 2_000
_ARFF = re.compile(r"@(?:relation|attribute)\b", re.IGNORECASE)
_OBO = re.compile(r"^(?:format-version:|\[(?:Term|Typedef|Instance)\]\s*$)", re.MULTILINE)
_TURTLE = re.compile(r"(?:@prefix|@base|prefix|base)\s+(?:[\w.\-]*:\s*)?<", re.IGNORECASE)
_MESH_LINE = re.compile(r"[^;]+(?:;[^;]+)?;" + mesh.NUMBER.pattern + r"\s*")
_YAML_LINE = re.compile(r"(?:---(?:\s|$)|%YAML|- |\S[^\t]*?:(?:\s|$))")
_YAML_KEYS = (*nested.NAME_KEYS, *nested.ID_KEYS, *nested.CHILDREN_KEYS, *nested.DEFINITION_KEYS)
_YAML_KEY = re.compile(r"\s*(?:- +)?(?:" + "|".join(_YAML_KEYS) + r"):(?:\s|$)")
_JSON_KEY = re.compile(r'"(\w+)"\s*:')


@dataclass(frozen=True)
class _Head:
    text: str
    lines: list[str]  # not blank, no comments; the last one may be cut


def recognised(content: Content) -> str:
    """The name of the format that a file is in."""
    text, is_whole = content.head()
    if "\0" in text:
        raise TaxonomyError(f"{content.name}: the file has NUL bytes, so it is no text in UTF-8; save it as UTF-8")
    lines = text.split("\n")[: _MOST_LINES + 1]
    if (not is_whole or len(lines) > _MOST_LINES) and len(lines) > 1:
        lines.pop()
    kept = [line.rstrip("\r") for line in lines if line.strip() and not is_comment(line)]
    if not kept:
        raise TaxonomyError(f"{content.name}: the file is empty, or has only comments; a taxonomy has a label at least")
    head = _Head(text, kept)
    found = _by_signature(head) or _by_lines(head)
    if found is None:
        raise TaxonomyError(
            f"{content.name}: the format is not recognised from the content ({head.lines[0][:60]!r} ...); "
            "name it, for example format='indented' for a plain list, or format='edges'"
        )
    return found


def _by_signature(head: _Head) -> str | None:
    """Formats that announce themselves."""
    first = head.lines[0].lstrip()
    if _ARFF.match(next((line for line in head.lines if not line.startswith("%")), "").lstrip()):
        return "clus"
    if _OBO.search(head.text):
        return "obo"
    if first.startswith(("{", "[")):
        return _json_kind(head)
    if re.match(r"<(\?xml|!|\w+:RDF|DescriptorRecordSet)", first):
        return "mesh" if "<DescriptorRecordSet" in head.text else "skos"
    if any(_TURTLE.match(line.lstrip()) for line in head.lines[:50]) or (
        first.startswith("<") and skos.syntax_of(head.text) == "nt"
    ):
        return "skos"
    if any(rcv1.parts_of(line) for line in head.lines[:2]):
        return "rcv1"
    if all(_MESH_LINE.fullmatch(line) for line in head.lines):
        return "mesh"
    return None


def _json_kind(head: _Head) -> str:
    """JSONL, our JSON, Yelp's, or nested: told by the keys near the beginning."""
    first = head.lines[0].strip()
    keys = set(_JSON_KEY.findall(head.text[:100_000]))
    line_keys = set(_JSON_KEY.findall(first[:100_000]))
    if head.text.lstrip().startswith("["):
        if {"alias", "title"} <= keys:
            return "yelp"
        return "json" if {"label", "parents"} <= keys else "nested-json"
    if {"format", "labels"} <= keys:
        return "json"
    many = len(head.lines) > 1 and first.endswith("}") and head.lines[1].lstrip().startswith("{")
    whole = first.endswith("}") or len(head.lines) == 1  # one line without an end: the head was cut
    is_record = "label" in line_keys and line_keys.isdisjoint(nested.CHILDREN_KEYS) and whole
    return "jsonl" if is_record or many else "nested-json"


def _by_lines(head: _Head) -> str | None:
    """Tables, paths, YAML and indented text."""
    lines = head.lines
    delimiter = delimiter_of(lines[0])
    if _is_header(_cells(lines[:1], delimiter)):
        return _table_kind(lines, delimiter)
    if any("\t" in line.strip() for line in lines):
        return _table_kind(lines, "\t")
    if _is_yaml(lines, _YAML_KEY):  # also where the names are paths, or a definition stands on lines of its own
        return "nested-yaml"
    separator = paths.separator_of(lines)
    if separator in (" > ", ">", " :: ", "::"):
        return "paths"
    if _is_yaml(lines, _YAML_LINE):
        return "nested-yaml"
    if all(delimiter in line for line in lines):
        return _table_kind(lines, delimiter)
    if any(line[0] in " \t" for line in lines):
        return "indented"
    return "paths" if separator else None


def _is_yaml(lines: Sequence[str], pattern: re.Pattern[str]) -> bool:
    """Whether every line that is not indented could be one of YAML."""
    tops = [line for line in lines if line[0] not in " \t#"]
    return bool(tops) and all(pattern.match(line) for line in tops)


def _cells(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    numbered = enumerate(lines, 1)
    rows = tab_rows(numbered) if delimiter == "\t" else quoted_rows(numbered, delimiter, _unreadable)
    try:
        return [[cell.strip() for cell in cells] for _, cells in rows]
    except TaxonomyError:  # the reader will say it with the line
        return []


def _unreadable(line: int, message: str) -> TaxonomyError:
    return TaxonomyError(f"{line}: {message}")


def _is_header(rows: Sequence[list[str]]) -> bool:
    return bool(rows) and bool(edges.header_columns(rows[0]) or paths.level_columns(rows[0]))


def _table_kind(lines: Sequence[str], delimiter: str) -> str:
    """Edges, parents with all their children, paths in columns, or the IAB's table."""
    rows = _cells(lines, delimiter)
    if any(iab.header_columns(cells) for cells in rows[:5]):
        return "iab"
    if _is_header(rows[:1]):
        return "columns" if paths.level_columns(rows[0]) else "edges"
    if all(len(cells) == 2 for cells in rows) or (rows and edges.is_half_header(rows[0])):
        return "edges"
    heads = {cells[0] for cells in rows}
    inner = {cell for cells in rows for cell in cells[1:] if cell}
    has_root = any(head.casefold() == "root" for head in heads)
    if delimiter == "\t" and "" not in heads and (has_root or heads & inner):
        return "children"
    return "columns"
