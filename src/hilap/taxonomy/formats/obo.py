"""OBO, the format of the Gene Ontology and its relatives.

Read here line by line, and not with a library: those that exist forget the lines, merge terms that are given twice, and
make up terms for parents that are missing, so that nothing could be reported. The tests compare with obonet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO

from hilap.errors import did_you_mean, require
from hilap.taxonomy.draft import Draft, Entry
from hilap.taxonomy.formats.building import checked, definition_of
from hilap.taxonomy.formats.content import Content, shown
from hilap.taxonomy.formats.holding import check_holds, refuse
from hilap.taxonomy.graph import Taxonomy

_STANZA = re.compile(r"\[(\w+)\]")
_ESCAPED = re.compile(r"\\(.)")
_QUOTED = re.compile(r'\s*"([^"\\]*(?:\\.[^"\\]*)*)"')
_NEEDS_ESCAPE = re.compile(r"[\\{}!\"\[\]]")
_ESCAPES = {"n": " ", "W": " ", "t": " "}  # a name stands on one line


@dataclass(slots=True)
class _Term:
    line: int
    id: str = ""
    name: str = ""
    definition: str = ""
    alt_ids: list[tuple[int, str]] = field(default_factory=list)
    parents: list[tuple[int, str]] = field(default_factory=list)
    obsolete: bool = False


def read_obo(content: Content, *, relations: Sequence[str] = ("is_a",)) -> Draft:
    """The terms of an OBO file with their `is_a` parents, and those of other relations such as `part_of` if asked."""
    wanted = {relations} if isinstance(relations, str) else set(relations)
    require(bool(wanted) and all(isinstance(r, str) for r in wanted), "relations", "names such as 'is_a'", relations)
    draft = Draft(content.name, "obo")
    found = {"is_a"}
    terms = list(_terms(content, wanted, found))
    _check_relations(content, wanted, found)
    obsolete = [term for term in terms if term.obsolete]
    if obsolete:
        first, count = obsolete[0], f"{len(obsolete):,} obsolete term{'s' * (len(obsolete) > 1)}"
        draft.remarks.append((first.line, f"{count} left out: first {shown(first.id)}"))
    out = {term.id for term in obsolete} - {term.id for term in terms if not term.obsolete}
    for term in terms:
        if not term.obsolete:
            _add(content, draft, term, out)
    return draft


def write_obo(taxonomy: Taxonomy, out: IO[str]) -> None:
    """A term for each label, with `is_a` parents, `alt_id` aliases and `def` definitions (which name no source)."""
    check_holds(taxonomy, "obo", aliases=True, definitions=True)
    others: dict[str, list[str]] = {}
    for alias, label in taxonomy.aliases.items():
        others.setdefault(label, []).append(alias)
    for text in (*taxonomy.labels, *taxonomy.aliases):
        if re.search(r"\s", text) or _NEEDS_ESCAPE.search(text):
            raise refuse("obo", f'id {shown(text)} has a blank or one of {{ }} [ ] ! " \\', "write it as jsonl")
    out.write("format-version: 1.2\n")
    for record in taxonomy.records():
        out.write(f"\n[Term]\nid: {record['label']}\nname: {_escaped(record['name'])}\n")
        out.writelines(f"alt_id: {alias}\n" for alias in others.get(record["label"], ()))
        if "definition" in record:
            out.write(f'def: "{_escaped(record["definition"])}" []\n')
        out.writelines(f"is_a: {parent}\n" for parent in record["parents"])


def _check_relations(content: Content, wanted: set[str], found: set[str]) -> None:
    """A relation that no term has is a typing mistake, and would silently give a poorer taxonomy."""
    for relation in sorted(wanted - found):
        near = did_you_mean(relation, found)
        hint = f"did you mean {shown(near)}?" if near else f"the file has {', '.join(sorted(found))[:200]}"
        raise content.error(0, f"no term has the relation {shown(relation)}; {hint}")


def _terms(content: Content, relations: set[str], found: set[str]) -> Iterator[_Term]:
    """The [Term] stanzas in order; other stanzas and the header are passed over. Relations met go into `found`."""
    term: _Term | None = None
    for line, raw in content.lines():
        text = raw.strip()
        if not text or text.startswith("!"):
            continue
        if stanza := _STANZA.match(text):
            if term is not None:
                yield _whole(content, term)
            term = _Term(line) if stanza[1] == "Term" else None
            continue
        tag, colon, value = text.partition(":")
        if not colon:
            raise content.error(line, f"'tag: value' or a stanza such as [Term] is expected, got {shown(text)}")
        if term is not None:
            _take(content, term, line, tag.strip(), value, relations, found)
    if term is not None:
        yield _whole(content, term)


def _take(content: Content, term: _Term, line: int, tag: str, raw: str, relations: set[str], found: set[str]) -> None:
    """One tag of a term."""
    if tag == "id":
        if term.id:
            raise content.error(line, f"a second id in the term {shown(term.id)}; is '[Term]' missing above it?")
        term.id = checked(content, line, _value(raw))
    elif tag == "name":
        term.name = _value(raw)
    elif tag == "def":
        if term.definition:
            raise content.error(line, f"a second def in the term {shown(term.id)}; remove one")
        term.definition = _definition(content, line, raw)
    elif tag == "alt_id":
        term.alt_ids.append((line, checked(content, line, _value(raw), "alt_id")))
    elif tag == "is_obsolete":
        term.obsolete = _value(raw).lower() == "true"
    elif tag == "is_a" and "is_a" in relations:
        term.parents.append((line, checked(content, line, _value(raw), "parent")))
    elif tag == "relationship":
        words = _value(raw).split()
        if len(words) < 2:
            raise content.error(line, f"a relation and a term are expected, as in part_of GO:0000001, got {shown(raw)}")
        found.add(words[0])
        if words[0] in relations:
            term.parents.append((line, checked(content, line, words[1], "parent")))


def _whole(content: Content, term: _Term) -> _Term:
    if not term.id:
        raise content.error(term.line, "a [Term] without an id; add 'id: ...' to it")
    return term


def _add(content: Content, draft: Draft, term: _Term, left_out: set[str]) -> None:
    parents: dict[str, int] = {}
    for line, parent in term.parents:
        if parent in left_out:
            draft.remarks.append((line, f"parent {shown(parent)} of {shown(term.id)} is obsolete and left out"))
        elif parent not in parents:  # a term may be both is_a and part_of the same other
            parents[parent] = line
    name = checked(content, term.line, term.name or term.id, "name")
    draft.entries.append(Entry(term.id, name, tuple(parents), term.line, term.definition))
    for line, alias in term.alt_ids:
        if draft.aliases.setdefault(alias, term.id) != term.id:
            message = f"alt_id {shown(alias)} is given for {shown(draft.aliases[alias])} too; remove one"
            raise content.error(line, message)


def _definition(content: Content, line: int, raw: str) -> str:
    """What stands between the quotes; the sources behind it are left out."""
    match = _QUOTED.match(raw)
    if match is None:
        raise content.error(
            line, f'a definition in quotes is expected, as in def: "Text." [], got {shown(raw.strip())}'
        )
    return definition_of(content, line, _unescaped(match[1]))


def _value(raw: str) -> str:
    """A value without the trailing modifier `{...}` and the comment `! ...`, its escapes undone."""
    text = _cut(raw, "!").rstrip()
    if text.endswith("}") and not text.endswith("\\}"):
        text = _cut(text, "{")
    return _unescaped(text).strip()


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)


def _cut(text: str, char: str) -> str:
    """The text before the first such character that stands after a blank and is not escaped."""
    at = text.find(f" {char}")
    return text if at < 0 else text[:at]


def _escaped(text: str) -> str:
    return _NEEDS_ESCAPE.sub(lambda match: "\\" + match[0], text)
