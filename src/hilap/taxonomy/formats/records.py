"""Our own formats: JSONL with one label a line, and the JSON object of `Taxonomy.to_json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import IO, Any

from hilap.errors import TaxonomyError, did_you_mean
from hilap.taxonomy.draft import Draft, Entry
from hilap.taxonomy.formats.building import checked, definition_of
from hilap.taxonomy.formats.content import Content, shown
from hilap.taxonomy.formats.documents import Node, parse_json
from hilap.taxonomy.formats.holding import check_holds
from hilap.taxonomy.graph import FORMAT, Taxonomy

_KEYS = ("label", "name", "parents", "definition", "aliases")


class _RefusedError(ValueError):
    """What the JSON decoder's callbacks raise."""


def read_jsonl(content: Content) -> Draft:
    """One `{"label", "name", "parents"}` a line, with `"definition"` and `"aliases"` where a label has them."""
    draft = Draft(content.name, "jsonl")
    records = _Records(content, draft)
    decoder = json.JSONDecoder(
        object_pairs_hook=_without_repeats, parse_int=str, parse_float=str, parse_constant=_no_constant
    )
    for line, text in content.lines():
        if text.strip():
            records.add(line, _decoded(decoder, content, line, text))
    records.remark()
    return draft


def read_json(content: Content) -> Draft:
    """The object that `Taxonomy.to_json` gives, or the list of its records alone."""
    top = parse_json(content)
    draft = Draft(content.name, "json")
    records = _Records(content, draft)
    rows, aliases = _parts(content, top)
    for node in rows:
        records.add(node.line, _plain(node))
    records.remark()
    for alias, node in aliases.items():
        if not isinstance(node.value, str):
            raise content.error(node.line, f"alias {shown(alias)} must give the id of a label, got {node.kind}")
        records.alias(node.line, alias, node.value)
    return draft


def write_jsonl(taxonomy: Taxonomy, out: IO[str]) -> None:
    """One label a line; nothing is lost."""
    check_holds(taxonomy, "jsonl", aliases=True, definitions=True, plain=False)
    others: dict[str, list[str]] = {}
    for alias, label in taxonomy.aliases.items():
        others.setdefault(label, []).append(alias)
    for record in taxonomy.records():
        if record["label"] in others:
            record["aliases"] = others[record["label"]]
        out.write(json.dumps(record, ensure_ascii=False) + "\n")


def write_json(taxonomy: Taxonomy, out: IO[str]) -> None:
    """One JSON object, with one label a line so that a change is one line in a diff; nothing is lost."""
    check_holds(taxonomy, "json", aliases=True, definitions=True, plain=False)
    records = ",\n".join(json.dumps(record, ensure_ascii=False) for record in taxonomy.records())
    aliases = json.dumps(taxonomy.aliases, ensure_ascii=False)
    out.write(f'{{"format": {FORMAT}, "labels": [\n{records}\n], "aliases": {aliases}}}\n')


class _Records:
    """Checks records one after the other and puts them into the draft."""

    def __init__(self, content: Content, draft: Draft) -> None:
        self._content = content
        self._draft = draft
        self._left_out: dict[str, int] = {}  # key -> first line

    def add(self, line: int, record: object) -> None:
        """One record as a label."""
        if not isinstance(record, dict):
            raise self._content.error(
                line, f'an object {{"label", "name", "parents"}} is expected, got {_kind(record)}'
            )
        label = self._text(line, record, "label")
        name = label if record.get("name") is None else self._text(line, record, "name")
        parents = tuple(checked(self._content, line, p, "parent") for p in self._texts(line, record, "parents"))
        self._draft.entries.append(Entry(label, name, parents, line, self._definition(line, record)))
        if len(record) > 3 or "name" not in record:
            for key in record.keys() - set(_KEYS):
                self._left_out.setdefault(key, line)
            for alias in self._texts(line, record, "aliases") if "aliases" in record else ():
                self.alias(line, alias, label)

    def alias(self, line: int, alias: str, label: str) -> None:
        """Another id of a label."""
        checked(self._content, line, alias, "alias")
        before = self._draft.aliases.setdefault(alias, label)
        if before != label:
            message = f"{shown(alias)} is given as another id of {shown(before)} and of {shown(label)}; remove one"
            raise self._content.error(line, message)

    def remark(self) -> None:
        """Say which keys were not read."""
        for key, line in sorted(self._left_out.items(), key=lambda pair: (pair[1], pair[0])):
            self._draft.remarks.append((line, f"the key {shown(key)} is not read; a label has {', '.join(_KEYS)}"))

    def _text(self, line: int, record: Mapping[str, Any], key: str) -> str:
        value = record.get(key)
        if type(value) is not str:
            if key not in record:
                raise self._missing(line, record, key)
            raise self._content.error(line, f"{key} must be a text, got {_kind(value)}")
        return checked(self._content, line, value, key)

    def _definition(self, line: int, record: Mapping[str, Any]) -> str:
        value = record.get("definition")
        if value is None:
            return ""
        if type(value) is not str:
            raise self._content.error(line, f"definition must be a text, got {_kind(value)}")
        return definition_of(self._content, line, value)

    def _texts(self, line: int, record: Mapping[str, Any], key: str) -> list[str]:
        values = record.get(key)
        if key not in record:
            raise self._missing(line, record, key)
        if not isinstance(values, list) or not all(type(value) is str for value in values):
            raise self._content.error(line, f"{key} must be a list of ids ([] for none), got {_kind(values)}")
        return values

    def _missing(self, line: int, record: Mapping[str, Any], key: str) -> TaxonomyError:
        near = did_you_mean(key, record.keys() - set(_KEYS))
        given = shown(json.dumps(record, ensure_ascii=False, default=str))
        hint = f"is {shown(near)} meant?" if near else f'a line is {{"label", "name", "parents"}}, got {given}'
        return self._content.error(line, f"{key!r} is missing; {hint}")


def _decoded(decoder: json.JSONDecoder, content: Content, line: int, text: str) -> object:
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as fault:
        raise content.error(line, f"this is not JSON ({fault.msg} at column {fault.colno})") from None
    except _RefusedError as fault:
        raise content.error(line, str(fault)) from None
    except RecursionError:
        raise content.error(line, "the line is nested too deeply; a record is not nested") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        seen: set[str] = set()
        again = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _RefusedError(f"the key {shown(again)} stands twice in one object; remove one")
    return record


def _no_constant(word: str) -> None:
    raise _RefusedError(f"{word} is no JSON value; write an id in double quotes")


def _kind(value: object) -> str:
    if isinstance(value, list) and value:
        return f"a list with {next((_kind(v) for v in value if type(v) is not str), 'texts')}"
    words = {bool: "true or false", type(None): "null", list: "an empty list", dict: "an object"}
    return words.get(type(value)) or f"the text {shown(str(value))}"


def _parts(content: Content, top: Node) -> tuple[Iterable[Node], dict[str, Node]]:
    """The records and the aliases."""
    if isinstance(top.value, list):
        return top.value, {}
    inside = top.value if isinstance(top.value, dict) else {}
    rows, number, aliases = inside.get("labels"), inside.get("format"), inside.get("aliases")
    if rows is None or number is None or not isinstance(rows.value, list):
        message = f'an object with "format": {FORMAT} and a list of "labels" is expected, got {top.kind}'
        raise content.error(top.line, message)
    if number.value != str(FORMAT):
        message = f"format {FORMAT} is read here, got {shown(str(number.value))}; a newer hilap may have written it"
        raise content.error(number.line, message)
    if aliases is not None and not isinstance(aliases.value, dict):
        raise content.error(aliases.line, f"aliases must be an object of other ids and labels, got {aliases.kind}")
    return rows.value, aliases.value if aliases is not None and isinstance(aliases.value, dict) else {}


def _plain(node: Node) -> object:
    """A record without the lines inside it; what is nested deeper stays a node, and is refused."""
    if not isinstance(node.value, dict):
        return node.value
    return {
        key: [inner.value for inner in value.value] if isinstance(value.value, list) else value.value
        for key, value in node.value.items()
    }
