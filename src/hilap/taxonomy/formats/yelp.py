"""Yelp's `categories.json`: a list of `{"alias", "title", "parents"}`."""

from __future__ import annotations

import json
from typing import IO

from hilap.taxonomy.draft import Draft, Entry
from hilap.taxonomy.formats.building import checked
from hilap.taxonomy.formats.content import Content
from hilap.taxonomy.formats.documents import Node, parse_json
from hilap.taxonomy.formats.holding import check_holds
from hilap.taxonomy.graph import Taxonomy


def read_yelp(content: Content) -> Draft:
    """The alias is the id, the title the name. Where a category is allowed is not read."""
    top = parse_json(content)
    if not isinstance(top.value, list):
        raise content.error(top.line, f"a list of categories is expected, got {top.kind}")
    return Draft(content.name, "yelp", [_entry(content, node) for node in top.value])


def write_yelp(taxonomy: Taxonomy, out: IO[str]) -> None:
    """A category a line."""
    check_holds(taxonomy, "yelp", plain=False)
    rows = (
        json.dumps({"alias": r["label"], "title": r["name"], "parents": r["parents"]}, ensure_ascii=False)
        for r in taxonomy.records()
    )
    out.write("[\n" + ",\n".join(rows) + "\n]\n")


def _entry(content: Content, node: Node) -> Entry:
    if not isinstance(node.value, dict):
        raise content.error(node.line, f'a category {{"alias", "title", "parents"}} is expected, got {node.kind}')
    category = node.value
    alias, title = (_text(content, node.line, category, key) for key in ("alias", "title"))
    above = category.get("parents")
    # Older files write [null] for a category at the top.
    nodes = [n for n in above.value if n.value is not None] if above and isinstance(above.value, list) else []
    if above is None or not isinstance(above.value, list) or not all(isinstance(n.value, str) for n in nodes):
        raise content.error(node.line, f"category {alias!r} needs parents, a list of aliases ([] at the top)")
    parents = tuple(checked(content, n.line, str(n.value), "parent") for n in nodes)
    return Entry(alias, title, parents, node.line)


def _text(content: Content, line: int, category: dict[str, Node], key: str) -> str:
    found = category.get(key)
    if found is None or not isinstance(found.value, str):
        given = "nothing" if found is None else found.kind
        raise content.error(line, f"a category needs a text below {key!r}, got {given}")
    return checked(content, found.line, found.value, "name" if key == "title" else "label")
