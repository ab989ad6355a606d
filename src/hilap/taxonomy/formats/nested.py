"""Nested JSON and YAML: objects with `name` and `children`, or labels as keys with what is below them as value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

from hilap.taxonomy.draft import Draft
from hilap.taxonomy.formats.building import SEPARATOR, Item, Root, check_ids, draft_of_items
from hilap.taxonomy.formats.content import Content, shown
from hilap.taxonomy.formats.documents import Node, parse_json, parse_yaml
from hilap.taxonomy.formats.holding import check_holds, check_no_root, depth_first
from hilap.taxonomy.graph import Taxonomy

NAME_KEYS = ("name", "label", "title", "text")
ID_KEYS = ("id", "key", "code")
CHILDREN_KEYS = ("children", "narrower", "subcategories", "nodes", "items")
DEFINITION_KEYS = ("definition", "description")


def read_nested_json(
    content: Content, *, ids: str = "path", separator: str = SEPARATOR, children: str | None = None, root: Root = None
) -> Draft:
    """Nested JSON; `children` names the key below which children stand, where it is none of the usual."""
    return _draft(content, "nested-json", parse_json(content), ids, separator, children, root)


def read_nested_yaml(
    content: Content, *, ids: str = "path", separator: str = SEPARATOR, children: str | None = None, root: Root = None
) -> Draft:
    """Nested YAML; every scalar is a text as written, so `01` stays `01` and `NO` is Norway."""
    return _draft(content, "nested-yaml", parse_yaml(content), ids, separator, children, root)


def write_nested_json(taxonomy: Taxonomy, out: IO[str]) -> None:
    """A list of `{"id", "name", "children"}`, one label a line, with `"definition"` where it has one."""
    closing: list[str] = []
    out.write("[")
    last = -1
    for label, depth in _checked_order(taxonomy, "nested-json"):
        while len(closing) > depth:
            out.write(closing.pop())
        out.write(("," if depth <= last else "") + "\n" + " " * (depth + 1))
        said = {"id": label, "name": taxonomy.name(label)}
        if taxonomy.definition(label):
            said["definition"] = taxonomy.definition(label)
        out.write(json.dumps(said, ensure_ascii=False)[:-1] + ', "children": [')
        closing.append("]}")
        last = depth
    out.write("".join(reversed(closing)) + "\n]\n")


def write_nested_yaml(taxonomy: Taxonomy, out: IO[str]) -> None:
    """A list of mappings with `id`, `name` and, where there are any, `definition` and `children`."""
    for label, depth in _checked_order(taxonomy, "nested-yaml"):
        blanks = "  " * (2 * depth)
        out.write(f"{blanks}- id: {_yaml_text(label)}\n{blanks}  name: {_yaml_text(taxonomy.name(label))}\n")
        if taxonomy.definition(label):
            out.write(f"{blanks}  definition: {_yaml_text(taxonomy.definition(label))}\n")
        if taxonomy.children(label):
            out.write(f"{blanks}  children:\n")


def _checked_order(taxonomy: Taxonomy, kind: str) -> Iterable[tuple[str, int]]:
    check_holds(taxonomy, kind, dag=False, definitions=True, plain=False)
    check_no_root(taxonomy, kind, lonely=True)
    return depth_first(taxonomy)


def _yaml_text(text: str) -> str:
    """A text in YAML's double quotes, with escapes for what YAML would fold or refuse."""

    def spelled(char: str) -> str:
        if char in '"\\':
            return "\\" + char
        if char.isprintable():
            return char
        return f"\\U{ord(char):08x}"

    return '"' + "".join(map(spelled, text)) + '"'


# -- reading ----------------------------------------------------------------------------------------------------------


def _draft(content: Content, kind: str, top: Node, ids: str, separator: str, children: str | None, root: Root) -> Draft:
    check_ids(ids)
    walk = _Walk(content, CHILDREN_KEYS if children is None else (children,))
    items = list(walk.items(top))
    draft = draft_of_items(content, kind, items, ids, separator, root)
    for key, line in walk.left_out.items():
        message = f"the key {shown(key)} is not read; if children stand below it, say children={key!r}"
        draft.remarks.append((line, message))
    return draft


class _Label(NamedTuple):
    line: int
    name: str
    id: str | None
    below: Node | None
    definition: str = ""


class _Walk:
    """Goes through a document from the top and gives the labels in the order of the file."""

    def __init__(self, content: Content, children_keys: tuple[str, ...]) -> None:
        self._content = content
        self._children_keys = children_keys
        self.left_out: dict[str, int] = {}

    def items(self, top: Node) -> Iterator[Item]:
        """All labels of a document; an object without a name at the very top only wraps its children."""
        inside = top.value if isinstance(top.value, dict) else {}
        if self._is_record(inside) and not self._names(inside):
            top = next(inside[key] for key in self._children_keys if key in inside)
        waiting = [(0, label) for label in reversed(self._labels(top))]
        while waiting:
            depth, label = waiting.pop()
            yield Item(label.line, depth, label.name, label.id, label.definition)
            if label.below is not None:
                waiting.extend((depth + 1, inner) for inner in reversed(self._labels(label.below)))

    def _labels(self, holder: Node) -> list[_Label]:
        """The labels that a list or an object holds."""
        value = holder.value
        if value is None:
            return []
        if isinstance(value, list):
            return [label for inner in value for label in self._element(inner)]
        if not isinstance(value, dict):
            message = f"children are a list, an object, or nothing, got {holder.kind} ({shown(str(value))})"
            raise self._content.error(holder.line, message)
        if self._is_record(value):
            return [self._record(holder.line, value)]
        return [_Label(below.line, key.strip(), None, below) for key, below in value.items()]

    def _element(self, node: Node) -> list[_Label]:
        if isinstance(node.value, str):
            return [_Label(node.line, node.value.strip(), None, None)]
        if isinstance(node.value, dict):
            return self._labels(node)
        raise self._content.error(node.line, f"a label is a text or an object, got {node.kind}")

    def _is_record(self, value: dict[str, Node]) -> bool:
        return any(key in value for key in self._children_keys) or bool(self._names(value))

    def _names(self, value: dict[str, Node]) -> list[str]:
        """The keys that hold an id or a name."""
        return [key for key in (*ID_KEYS, *NAME_KEYS) if key in value and isinstance(value[key].value, str)]

    def _record(self, line: int, value: dict[str, Node]) -> _Label:
        keys = self._names(value)
        id_key = next((key for key in keys if key in ID_KEYS), None)
        if id_key is None and "label" in keys and "name" in keys:
            id_key = "label"
        name_key = next((key for key in keys if key in NAME_KEYS and key != id_key), id_key)
        if name_key is None:
            message = f"an object with children needs a name, below one of the keys {', '.join(NAME_KEYS)}"
            raise self._content.error(line, message)
        children_key = next((key for key in self._children_keys if key in value), None)
        definition_key = self._definition_key(value, children_key)
        for key, node in value.items():
            if key not in (id_key, name_key, children_key, definition_key):
                self.left_out.setdefault(key, node.line)
        label = None if id_key is None else str(value[id_key].value)
        name = str(value[name_key].value)
        if not name and label is None:
            raise self._content.error(line, "the name of a label is empty; give it one")
        meant = str(value[definition_key].value or "") if definition_key else ""
        return _Label(line, name, label, value[children_key] if children_key else None, meant)

    def _definition_key(self, value: dict[str, Node], children_key: str | None) -> str | None:
        """The key that holds the definition. A description may be anything, and is one where it is a text."""
        for key in DEFINITION_KEYS:
            node = value.get(key)
            if node is None or key == children_key:
                continue
            if node.value is None or isinstance(node.value, str):
                return key
            if key == "definition":
                raise self._content.error(node.line, f"definition must be a text, got {node.kind}")
        return None
