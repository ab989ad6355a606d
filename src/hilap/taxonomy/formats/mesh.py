"""MeSH: concepts with tree numbers, from `mtrees*.bin` (`name;number`) or the descriptor XML (`desc*.xml`).

A concept may have many numbers: it is one label, below the concepts that have the numbers one step shorter. The scope
note of a descriptor's preferred concept is its definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.parsers import expat

from hilap.errors import TaxonomyError
from hilap.taxonomy.draft import Draft, Entry
from hilap.taxonomy.formats.building import checked, definition_of
from hilap.taxonomy.formats.content import Content, shown

NUMBER = re.compile(r"[A-Z]\d{2}(?:\.\d{3})*")


@dataclass(slots=True)
class _Concept:
    line: int
    id: str
    name: str
    numbers: list[str] = field(default_factory=list)
    definition: str = ""


def read_mesh(content: Content) -> Draft:
    """Lines `name;number` or `UI;name;number`, where the name or the UI is the id; or descriptor XML."""
    is_xml = content.head()[0].lstrip().startswith("<")
    concepts = list(_from_xml(content) if is_xml else _from_lines(content))
    holder = {number: concept.id for concept in concepts for number in concept.numbers}
    draft = Draft(content.name, "mesh")
    for concept in concepts:
        above = (number.rpartition(".")[0] for number in concept.numbers)
        parents = dict.fromkeys(holder.get(number, number) for number in above if number)
        draft.entries.append(Entry(concept.id, concept.name, tuple(parents), concept.line, concept.definition))
    without = [concept for concept in concepts if not concept.numbers]
    if without:
        remark = f"{len(without):,} without a tree number became top labels: first {shown(without[0].name)}"
        draft.remarks.append((without[0].line, remark))
    return draft


def _from_lines(content: Content) -> Iterable[_Concept]:
    """Concepts of a file where every number has a line; one id is one concept."""
    concepts: dict[str, _Concept] = {}
    seen: dict[str, int] = {}
    for line, text in content.significant_lines():
        *first, number = (cell.strip() for cell in text.split(";"))
        if len(first) not in (1, 2) or not NUMBER.fullmatch(number):
            raise content.error(
                line, f"'name;tree number', as in 'Eye;A01.456.505.420', is expected, got {shown(text)}"
            )
        if number in seen:
            raise content.error(line, f"tree number {number} stands on line {seen[number]} already; remove one")
        seen[number] = line
        label, name = checked(content, line, first[0]), checked(content, line, first[-1], "name")
        concept = concepts.setdefault(label, _Concept(line, label, name))
        concept.numbers.append(number)
    return concepts.values()


def _from_xml(content: Content) -> Iterable[_Concept]:
    return _Descriptors(content).parse(content.text())


class _Descriptors:
    """Descriptor records as the XML parser meets them. Entities are refused: they can blow up a file."""

    _RECORD = ("DescriptorRecordSet", "DescriptorRecord")
    _UI = (*_RECORD, "DescriptorUI")
    _NAME = (*_RECORD, "DescriptorName", "String")
    _NUMBER = (*_RECORD, "TreeNumberList", "TreeNumber")
    _INNER = (*_RECORD, "ConceptList", "Concept")
    _NOTE = (*_INNER, "ScopeNote")
    _MOST_DEPTH = 100

    def __init__(self, content: Content) -> None:
        self._content = content
        self._ready: list[_Concept] = []
        self._open: list[str] = []
        self._text: list[str] = []
        self._concept: _Concept | None = None
        self._is_preferred = False  # whether the inner concept under way is the one that the descriptor is about
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text_of
        self._parser.EntityDeclHandler = self._entity
        self._numbers: dict[str, int] = {}

    def parse(self, text: str) -> list[_Concept]:
        """All records of a file."""
        try:
            self._parser.Parse(text, True)
        except expat.ExpatError as fault:
            raise self._content.error(fault.lineno, f"this is not XML ({expat.ErrorString(fault.code)})") from None
        return self._ready

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._open.append(name)
        self._text.clear()
        if len(self._open) > self._MOST_DEPTH:
            raise self._error(f"the file is nested more than {self._MOST_DEPTH} deep; MeSH never is")
        at = tuple(self._open)
        if at == self._RECORD:
            self._concept = _Concept(self._parser.CurrentLineNumber, "", "")
        elif at == self._INNER:
            self._is_preferred = attributes.get("PreferredConceptYN") == "Y"
        elif len(self._open) == 1 and name != self._RECORD[0]:
            raise self._error(f"<{self._RECORD[0]}> is expected, got <{name[:80]}>")

    def _end(self, _: str) -> None:
        at, text, concept = tuple(self._open), "".join(self._text).strip(), self._concept
        self._open.pop()
        self._text.clear()
        if concept is None:
            return
        if at == self._UI:
            concept.id = checked(self._content, self._parser.CurrentLineNumber, text)
        elif at == self._NAME:
            concept.name = checked(self._content, self._parser.CurrentLineNumber, text, "name")
        elif at == self._NUMBER:
            self._take_number(concept, text)
        elif at == self._NOTE and self._is_preferred:
            concept.definition = definition_of(self._content, self._parser.CurrentLineNumber, text)
        elif at == self._RECORD:
            if not concept.id:
                raise self._content.error(concept.line, "a descriptor record without a DescriptorUI")
            concept.name = concept.name or concept.id
            self._ready.append(concept)
            self._concept = None

    def _take_number(self, concept: _Concept, number: str) -> None:
        line = self._parser.CurrentLineNumber
        if not NUMBER.fullmatch(number):
            raise self._error(f"a tree number such as A01.456 is expected, got {shown(number)}")
        if number in self._numbers:
            raise self._error(f"tree number {number} stands on line {self._numbers[number]} already; remove one")
        self._numbers[number] = line
        concept.numbers.append(number)

    def _text_of(self, text: str) -> None:
        if self._concept is not None:
            self._text.append(text)

    def _entity(self, name: str, *_: object) -> None:
        raise self._error(f"the file declares the XML entity {shown(name)}, which is refused as it can blow up a file")

    def _error(self, message: str) -> TaxonomyError:
        return self._content.error(self._parser.CurrentLineNumber, message)
