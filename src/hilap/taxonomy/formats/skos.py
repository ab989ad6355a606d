"""SKOS thesauri in Turtle, N-Triples or RDF/XML, read with rdflib: concepts with `broader`, `narrower` and `prefLabel`.

A `definition` is a text, or a note of its own (a resource with an `rdf:value`), as large thesauri have them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any
from urllib.parse import quote

from hilap.errors import TaxonomyError, need, require
from hilap.taxonomy.draft import Draft, Entry
from hilap.taxonomy.formats.building import checked, definition_of
from hilap.taxonomy.formats.content import Content, shown
from hilap.taxonomy.formats.holding import check_holds, refuse
from hilap.taxonomy.graph import Taxonomy, one_line

SYNTAXES = ("turtle", "nt", "xml")
IDS = ("uri", "notation", "local")

_TRIPLE = re.compile(r"\s*(?:<[^<>\s]*>|_:\S+)\s+<[^<>\s]*>\s+\S.*\.\s*")
_SUBJECT = re.compile(r"[ \t]*(?:<([^<>\s]*)>|([\w.\-]*:[\w.\-%]+))[ \t]*(?=[\s;]|$)")
_ABOUT = re.compile(r"rdf:(?:about|ID)\s*=\s*[\"']([^\"'<>]*)[\"']")
_XML_DECLARATION = re.compile(r"\s*<\?xml\b[^>]*\?>")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\s<>\"{}|\\^`]+")
_SKOS, _OWL = "http://www.w3.org/2004/02/skos/core#", "http://www.w3.org/2002/07/owl#"


def read_skos(content: Content, *, language: str = "en", ids: str = "uri", syntax: str | None = None) -> Draft:
    """The concepts of a thesaurus; names in a language, else without one, else in any; definitions never in another."""
    require(ids in IDS, "ids", "'uri', 'notation' or 'local'", ids)
    require(syntax is None or syntax in SYNTAXES, "syntax", "'turtle', 'nt' or 'xml'", syntax)
    text = content.text()
    with _quiet_rdflib():
        graph = _graph(content, text, syntax or syntax_of(text))
        return _Thesaurus(content, graph, _lines(text, graph), language, ids).draft()


def write_skos(
    taxonomy: Taxonomy, out: IO[str], *, language: str = "en", ids: str = "uri", base: str = "", syntax: str = "turtle"
) -> None:
    """One concept for each label. Ids that are no URIs are written as notations below `base`: `ids="notation"`."""
    require(ids in IDS[:2], "ids", "'uri' or 'notation'", ids)
    require(syntax in SYNTAXES, "syntax", "'turtle', 'nt' or 'xml'", syntax)
    require(re.fullmatch(r"[a-z]{2,3}(-[a-z0-9]{2,8})*", language) is not None, "language", "as 'en'", language)
    check_holds(taxonomy, "skos", definitions=True)
    if syntax == "xml":
        _check_xml(taxonomy)
    uris = {label: _uri(label, ids, base) for label in taxonomy.labels}
    rdflib = need("rdflib", "formats")
    skos, graph = rdflib.Namespace(_SKOS), rdflib.Graph()
    graph.bind("skos", skos)
    for record in taxonomy.records():
        subject = rdflib.URIRef(uris[record["label"]])
        graph.add((subject, rdflib.RDF.type, skos.Concept))
        graph.add((subject, skos.prefLabel, rdflib.Literal(record["name"], lang=language)))
        if "definition" in record:
            graph.add((subject, skos.definition, rdflib.Literal(record["definition"], lang=language)))
        if ids == "notation":
            graph.add((subject, skos.notation, rdflib.Literal(record["label"])))
        for parent in record["parents"]:
            graph.add((subject, skos.broader, rdflib.URIRef(uris[parent])))
    out.write(graph.serialize(format=syntax))


def syntax_of(text: str) -> str:
    """The syntax of an RDF file, judged from its beginning."""
    start = text[:4_096].lstrip()
    if re.match(r"<(\?xml|!--|!DOCTYPE|\w+:RDF)", start):
        return "xml"
    lines = [line for line in start.split("\n")[:20] if line.strip() and not line.lstrip().startswith("#")]
    whole = lines[:-1] or lines  # the last one may be cut
    return "nt" if whole and all(_TRIPLE.fullmatch(line) for line in whole) else "turtle"


def _check_xml(taxonomy: Taxonomy) -> None:
    for text in (*taxonomy.labels, *taxonomy.names, *taxonomy.definitions):
        if "\ufffe" in text or "\uffff" in text:
            raise refuse("skos", f"{shown(text)} has a character that XML cannot hold", "write it as Turtle")


def _uri(label: str, ids: str, base: str) -> str:
    if ids == "notation":
        require(_ABSOLUTE.fullmatch(base) is not None, "base", "the beginning of a URI, as 'http://example.org/'", base)
        return base + quote(label, safe="")
    if not _ABSOLUTE.fullmatch(label):
        instead = 'write it with ids="notation" and a base, and read it with ids="notation"'
        raise refuse("skos", f"id {shown(label)} is no URI", instead)
    return label


def _folded(text: str) -> str:
    """A text on one line."""
    return re.sub(r"[\t-\r\x1c-\x1f\x85]+", " ", text).strip()


# -- reading ----------------------------------------------------------------------------------------------------------


def _graph(content: Content, text: str, syntax: str) -> Any:
    if syntax == "xml":
        if "<!ENTITY" in text:
            line = text.count("\n", 0, text.index("<!ENTITY")) + 1
            message = "the file declares XML entities, which are refused as they can blow up a file; save it as Turtle"
            raise content.error(line, message)
        # The text is decoded already: an encoding declared for the bytes would be applied a second time.
        text = _XML_DECLARATION.sub(lambda match: "\n" * match[0].count("\n"), text, count=1)
    rdflib = need("rdflib", "formats")
    graph = rdflib.Graph()
    try:
        graph.parse(data=text, format=syntax, publicID="urn:x-base:")
    except Exception as fault:  # rdflib and its parsers raise errors of every kind on bad input
        raise _unreadable(content, fault, syntax) from None
    return graph


def _unreadable(content: Content, fault: Exception, syntax: str) -> TaxonomyError:
    if isinstance(fault, RecursionError):
        return content.error(0, "the file is nested too deeply; a thesaurus never is")
    line = 0
    if hasattr(fault, "getLineNumber"):
        line = fault.getLineNumber() or 0
    elif match := re.search(r"at line (\d+)", str(fault)):
        line = int(match[1])
    reason = shown(_folded(getattr(fault, "message", None) or str(fault) or type(fault).__name__), 160)
    return content.error(line, f"this cannot be read as RDF in {syntax} ({reason})")


@contextmanager
def _quiet_rdflib() -> Iterator[None]:
    """No warnings about odd URIs and literals on the user's terminal: they do not matter here."""
    logger = logging.getLogger("rdflib")  # its children, such as rdflib.term, go by its level
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _lines(text: str, graph: Any) -> dict[str, int]:
    """The line on which each subject stands first, as far as plain looking can tell."""
    prefixes = {prefix: str(uri) for prefix, uri in graph.namespaces()}
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        match = _SUBJECT.match(line)
        if match and match[1] is not None:
            found.setdefault(match[1], number)
        elif match:
            prefix, _, local = match[2].partition(":")
            if prefix in prefixes:
                found.setdefault(prefixes[prefix] + local, number)
        elif about := _ABOUT.search(line):
            found.setdefault(about[1], number)
    return found


class _Thesaurus:
    """The concepts of a graph as labels."""

    def __init__(self, content: Content, graph: Any, lines: dict[str, int], language: str, ids: str) -> None:
        rdflib = need("rdflib", "formats")
        self._content = content
        self._graph = graph
        self._lines = lines
        self._language = language
        self._ids = ids
        self._skos, self._owl = rdflib.Namespace(_SKOS), rdflib.Namespace(_OWL)
        self._type, self._value = rdflib.RDF.type, rdflib.RDF.value
        self._other_language: list[Any] = []  # concepts without a name in the language, or in none at all
        self._defined_otherwise: list[Any] = []  # concepts that have definitions, but in other languages

    def draft(self) -> Draft:
        """All concepts that are not deprecated, in the order of the file."""
        draft = Draft(self._content.name, "skos")
        parents = self._parents()
        concepts = sorted(self._concepts(parents), key=lambda concept: (self._line(concept), str(concept)))
        out = {
            c for c in concepts if any(str(v).lower() in ("true", "1") for v in self._objects(c, self._owl.deprecated))
        }
        if out:
            first = next(concept for concept in concepts if concept in out)
            count = f"{len(out):,} deprecated concept{'s' * (len(out) > 1)}"
            draft.remarks.append((self._line(first), f"{count} left out: first {shown(str(first))}"))
        for concept in concepts:
            if concept not in out:
                above = sorted(parents.get(concept, ()), key=str)
                for parent in out.intersection(above):
                    remark = f"parent {shown(str(parent))} of {shown(str(concept))} is deprecated and left out"
                    draft.remarks.append((self._line(concept), remark))
                draft.entries.append(self._entry(concept, [parent for parent in above if parent not in out]))
        if self._other_language:
            first, n = self._other_language[0], len(self._other_language)
            remark = f"{n:,} concept{'s' * (n > 1)} named in another language than {shown(self._language)}"
            draft.remarks.append((self._line(first), f"{remark}, or by the id: first {shown(str(first))}"))
        if self._defined_otherwise:
            first, n = self._defined_otherwise[0], len(self._defined_otherwise)
            remark = f"the definitions of {n:,} concept{'s' * (n > 1)} are not in {shown(self._language)} and left out"
            draft.remarks.append((self._line(first), f"{remark}: first {shown(str(first))}"))
        return draft

    def _parents(self) -> dict[Any, set[Any]]:
        parents: dict[Any, set[Any]] = {}
        for child, parent in self._graph.subject_objects(self._skos.broader):
            parents.setdefault(child, set()).add(parent)
        for parent, child in self._graph.subject_objects(self._skos.narrower):
            parents.setdefault(child, set()).add(parent)
        return parents

    def _concepts(self, parents: dict[Any, set[Any]]) -> set[Any]:
        """What is called a concept, has a parent or a child; a parent that is only pointed at is not there."""
        return {
            *self._graph.subjects(self._type, self._skos.Concept),
            *parents,
            *self._graph.subjects(self._skos.narrower),
        }

    def _entry(self, concept: Any, parents: list[Any]) -> Entry:
        line = self._line(concept)
        label = checked(self._content, line, self._id(concept))
        name = checked(self._content, line, self._name(concept), "name")
        above = dict.fromkeys(checked(self._content, line, self._id(parent), "parent") for parent in parents)
        meant = definition_of(self._content, line, self._definition(concept))
        return Entry(label, name, tuple(above), line, meant)

    def _id(self, concept: Any) -> str:
        if self._ids == "uri":
            return str(concept)
        if self._ids == "local":
            return re.split(r"[/#]", str(concept).rstrip("/#"))[-1]
        notations = sorted({str(value) for value in self._objects(concept, self._skos.notation)})
        if len(notations) != 1:
            message = f"{shown(str(concept))} has {len(notations)} notations, so none can be its id"
            raise self._content.error(self._line(concept), f'{message}; read it with ids="uri" or ids="local"')
        return notations[0]

    def _name(self, concept: Any) -> str:
        """The preferred label: in the language asked for, else without a language, else the first in any."""
        names = sorted(
            (str(v.language or ""), _folded(str(v)))
            for v in self._objects(concept, self._skos.prefLabel)
            if hasattr(v, "language")
        )
        by_language = {language.lower(): name for language, name in reversed(names)}
        for language in (self._language.lower(), ""):
            if by_language.get(language):
                return by_language[language]
        self._other_language.append(concept)
        return next((name for _, name in names if name), self._id(concept))

    def _definition(self, concept: Any) -> str:
        """All definitions in the language, else those without one. Words of another language would mean nothing."""
        found: dict[str, set[str]] = {}
        for value in self._objects(concept, self._skos.definition):
            for text in (value,) if hasattr(value, "language") else self._objects(value, self._value):
                if hasattr(text, "language") and one_line(str(text)):
                    found.setdefault(str(text.language or "").lower(), set()).add(one_line(str(text)))
        texts = found.get(self._language.lower()) or found.get("")
        if found and not texts:
            self._defined_otherwise.append(concept)
        return " ".join(sorted(texts or ()))

    def _objects(self, concept: Any, predicate: Any) -> Any:
        return self._graph.objects(concept, predicate)

    def _line(self, concept: Any) -> int:
        return self._lines.get(str(concept), 0)
