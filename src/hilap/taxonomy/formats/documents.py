"""JSON and YAML documents with the line of every value, read without recursion and without surprises.

Numbers stay as they are written (`01`, `1e999`), since here they can only be ids. Keys that stand twice, YAML aliases
and tags are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from typing import Any, TypeAlias, cast

from hilap.errors import TaxonomyError, need
from hilap.taxonomy.formats.building import MOST_LEVELS
from hilap.taxonomy.formats.content import Content, shown

MOST_NESTING = 2 * MOST_LEVELS + 10  # a level of a taxonomy is an object and a list

Value: TypeAlias = "str | bool | list[Node] | dict[str, Node] | None"


@dataclass(slots=True)
class Node:
    """A value and where it stands: its own line, or that of its key."""

    line: int
    value: Value

    @property
    def kind(self) -> str:
        """What the value is, in words."""
        if isinstance(self.value, bool):
            return "true or false"
        words = {str: "a text", list: "a list", dict: "an object", type(None): "nothing"}
        return words[type(self.value)]


def parse_json(content: Content) -> Node:
    """The one JSON value that a file holds."""
    return _Json(content).parse()


class _Json:
    _BLANKS = re.compile(r"[ \t\n\r]*")
    _SCALAR = re.compile(r"(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)|true|false|null")
    _DECODER = JSONDecoder()

    def __init__(self, content: Content) -> None:
        self._content = content
        self._text = content.text()
        self._at = 0
        self._line = 1

    def parse(self) -> Node:
        top = self._begin(self._skip())
        stack = [top] if isinstance(top.value, (list, dict)) else []
        while stack:
            holder = stack[-1].value
            char = self._skip()
            if char == ("}" if isinstance(holder, dict) else "]"):
                self._at += 1
                stack.pop()
                continue
            node = self._member(holder, char)
            if isinstance(node.value, (list, dict)):
                stack.append(node)
                if len(stack) > MOST_NESTING:
                    raise _too_deep(self._content, node.line)
        if self._skip():
            raise self._error("the value has ended, but the file goes on; one JSON value is expected")
        return top

    def _member(self, holder: Any, char: str) -> Node:
        """The next element of a list or an object, with the comma before it."""
        if holder:
            if char != ",":
                raise self._error(f"',' or {'}' if isinstance(holder, dict) else ']'!r} is expected")
            self._at += 1
            char = self._skip()
        if isinstance(holder, list):
            node = self._begin(char)
            holder.append(node)
            return node
        key, line = self._key(char), self._line
        if key in holder:
            raise self._content.error(line, f"the key {shown(key)} stands twice in one object; remove one")
        if self._skip() != ":":
            raise self._error(f"':' is expected after the key {shown(key)}")
        self._at += 1
        node = self._begin(self._skip())
        node.line = line
        holder[key] = node
        return node

    def _key(self, char: str) -> str:
        if char != '"':
            raise self._error("a key in double quotes is expected")
        return self._string()

    def _begin(self, char: str) -> Node:
        """A whole scalar, or a list or an object just opened."""
        if char == "{" or char == "[":
            self._at += 1
            return Node(self._line, {} if char == "{" else [])
        if char == '"':
            return Node(self._line, self._string())
        match = self._SCALAR.match(self._text, self._at)
        if match is None:
            raise self._error("a JSON value is expected")
        self._at = match.end()
        constants: dict[str, Value] = {"true": True, "false": False, "null": None}
        return Node(self._line, match[1] if match[1] is not None else constants[match[0]])

    def _string(self) -> str:
        try:
            text, self._at = self._DECODER.raw_decode(self._text, self._at)
        except JSONDecodeError as fault:
            raise self._content.error(self._line, f"this is not JSON ({fault.msg})") from None
        return cast("str", text)

    def _skip(self) -> str:
        """The next character that is not blank; "" at the end."""
        char = self._text[self._at : self._at + 1]
        if char > " ":  # most often nothing is to be skipped
            return char
        end = cast("re.Match[str]", self._BLANKS.match(self._text, self._at)).end()
        self._line += self._text.count("\n", self._at, end)
        self._at = end
        return self._text[end : end + 1]

    def _error(self, expected: str) -> TaxonomyError:
        got = shown(self._text[self._at : self._at + 20]) if self._at < len(self._text) else "the end of the file"
        return self._content.error(self._line, f"this is not JSON: {expected}, got {got}")


def parse_yaml(content: Content) -> Node:
    """The one YAML document that a file holds. Every scalar is a text as written, or nothing."""
    yaml = need("yaml", "formats")
    events = yaml.parse(content.text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        return _Yaml(content, yaml).parse(events)
    except yaml.YAMLError as fault:
        mark = getattr(fault, "problem_mark", None)
        problem = getattr(fault, "problem", None) or str(fault).partition("\n")[0]
        raise content.error(mark.line + 1 if mark else 0, f"this is not YAML ({problem})") from None


class _Yaml:
    _NOTHING = ("", "~", "null", "Null", "NULL")

    def __init__(self, content: Content, yaml: Any) -> None:
        self._content = content
        self._yaml = yaml

    def parse(self, events: Iterator[Any]) -> Node:
        documents: list[Node] = []
        stack: list[tuple[Node, Node | None]] = []  # a list or an object, and the key that waits for its value
        for event in events:
            if isinstance(event, self._yaml.CollectionEndEvent):
                stack.pop()
                continue
            node = self._begin(event)
            if node is None:
                continue
            if stack:
                stack[-1] = (stack[-1][0], self._put(*stack[-1], node))
            elif documents:
                raise self._content.error(node.line, "a second document begins; one YAML document is expected")
            else:
                documents.append(node)
            if isinstance(node.value, (list, dict)):
                stack.append((node, None))
                if len(stack) > MOST_NESTING:
                    raise _too_deep(self._content, node.line)
        return documents[0] if documents else Node(1, None)

    def _put(self, holder: Node, key: Node | None, node: Node) -> Node | None:
        """Add to a list, or to an object under the waiting key, or make the node the waiting key."""
        if isinstance(holder.value, list):
            holder.value.append(node)
            return None
        inside = cast("dict[str, Node]", holder.value)
        if key is None:
            if not isinstance(node.value, str):
                raise self._content.error(node.line, f"a key must be a text, got {node.kind}")
            if node.value in inside:
                message = f"the key {shown(node.value)} stands twice in one object; remove one"
                raise self._content.error(node.line, message)
            return node
        node.line = key.line
        inside[cast("str", key.value)] = node
        return None

    def _begin(self, event: Any) -> Node | None:
        """A scalar, or a list or an object just opened; None for what only structures the stream."""
        yaml = self._yaml
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            message = f"the YAML alias *{event.anchor} is not read, as aliases can blow up a file; write it out"
            raise self._content.error(line, message)
        if getattr(event, "tag", None) not in (None, "!"):
            raise self._content.error(line, f"the YAML tag {shown(str(event.tag))} is not read; remove it")
        if isinstance(event, yaml.ScalarEvent):
            is_nothing = event.implicit[0] and event.value in self._NOTHING
            return Node(line, None if is_nothing else str(event.value))
        if isinstance(event, yaml.SequenceStartEvent):
            return Node(line, [])
        return Node(line, {}) if isinstance(event, yaml.MappingStartEvent) else None


def _too_deep(content: Content, line: int) -> TaxonomyError:
    return content.error(line, f"the file is nested more than {MOST_NESTING:,} deep; a taxonomy never is")
