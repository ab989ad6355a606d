r"""The door to taxonomy files: the table of formats, `read`, `read_draft` and `write`.

Examples
--------
>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     path = Path(folder) / "food.txt"
...     _ = path.write_text("Food > Bars > Beer Bars\n")
...     taxonomy = read(path)
>>> taxonomy.labels
('Food', 'Food > Bars', 'Food > Bars > Beer Bars')
>>> taxonomy.name("Food > Bars > Beer Bars")
'Beer Bars'
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hilap.errors import SettingError, TaxonomyError, did_you_mean, require
from hilap.files import writing
from hilap.taxonomy.draft import Draft
from hilap.taxonomy.formats.building import complaint
from hilap.taxonomy.formats.clus import read_clus, write_clus
from hilap.taxonomy.formats.content import Content
from hilap.taxonomy.formats.edges import read_children, read_edges, write_children, write_edges
from hilap.taxonomy.formats.iab import read_iab, write_iab
from hilap.taxonomy.formats.indented import read_indented, write_indented
from hilap.taxonomy.formats.mesh import read_mesh
from hilap.taxonomy.formats.nested import read_nested_json, read_nested_yaml, write_nested_json, write_nested_yaml
from hilap.taxonomy.formats.obo import read_obo, write_obo
from hilap.taxonomy.formats.paths import read_columns, read_paths, write_columns, write_paths
from hilap.taxonomy.formats.rcv1 import read_rcv1, write_rcv1
from hilap.taxonomy.formats.recognition import recognised
from hilap.taxonomy.formats.records import read_json, read_jsonl, write_json, write_jsonl
from hilap.taxonomy.formats.skos import read_skos, write_skos
from hilap.taxonomy.formats.yelp import read_yelp, write_yelp
from hilap.taxonomy.graph import Taxonomy

_COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True)
class Format:
    """One way to write a taxonomy into a file."""

    reader: Callable[..., Draft]
    writer: Callable[..., None] | None
    description: str
    endings: dict[str, dict[str, Any]] = field(default_factory=dict)  # ending -> options it implies for the writer

    @property
    def read_options(self) -> tuple[str, ...]:
        """The options that the reader takes."""
        return _options(self.reader)

    @property
    def write_options(self) -> tuple[str, ...]:
        """The options that the writer takes."""
        return () if self.writer is None else _options(self.writer)


FORMATS: dict[str, Format] = {
    "jsonl": Format(
        read_jsonl, write_jsonl, 'one {"label", "name", "parents"} a line: our own', {".jsonl": {}, ".ndjson": {}}
    ),
    "json": Format(read_json, write_json, "the JSON object of Taxonomy.to_json", {".json": {}}),
    "edges": Format(
        read_edges,
        write_edges,
        "a table with a parent and a child a row, in either direction",
        {".tsv": {"delimiter": "\t"}, ".csv": {"delimiter": ","}},
    ),
    "children": Format(read_children, write_children, "a parent and all its children a row, as in the HiLAP data"),
    "paths": Format(read_paths, write_paths, "a path a line: A > B, A/B, A :: B, or 166 - A > B with an id"),
    "columns": Format(read_columns, write_columns, "a table with a column for each level"),
    "nested-json": Format(
        read_nested_json, write_nested_json, "JSON objects with name and children, or labels as keys"
    ),
    "nested-yaml": Format(read_nested_yaml, write_nested_yaml, "the same in YAML", {".yaml": {}, ".yml": {}}),
    "indented": Format(read_indented, write_indented, "a label a line, indented by tabs or blanks"),
    "rcv1": Format(read_rcv1, write_rcv1, "the topics of RCV1: parent: X child: Y", {".hier": {}, ".orig": {}}),
    "yelp": Format(read_yelp, write_yelp, "Yelp's categories.json"),
    "clus": Format(read_clus, write_clus, "the header of a Clus ARFF file", {".arff": {}}),
    "obo": Format(read_obo, write_obo, "OBO, as of the Gene Ontology", {".obo": {}}),
    "skos": Format(
        read_skos,
        write_skos,
        "a SKOS thesaurus in Turtle, N-Triples or RDF/XML",
        {".ttl": {"syntax": "turtle"}, ".nt": {"syntax": "nt"}, ".rdf": {"syntax": "xml"}},
    ),
    "mesh": Format(read_mesh, None, "MeSH tree numbers: name;number a line, or descriptor XML"),
    "iab": Format(read_iab, write_iab, "a taxonomy of the IAB: a TSV with two header rows"),
}
"""Every format by its name."""


def read_draft(source: str | Path, format: str | None = None, **options: Any) -> Draft:
    """What a file says, unchecked, with the line of every label.

    Parameters
    ----------
    source
        A file, compressed or not, or `-` for standard input.
    format
        A name in `FORMATS`; recognised from the content where it is left out.
    options
        What the format's reader takes, such as `direction`, `separator`, `ids`, `language`, `relations` or `root`.
    """
    if format is not None:
        _known(format)
    content = Content(source)
    name = recognised(content) if format is None else format
    _check_options(name, "read", FORMATS[name].read_options, options)
    return FORMATS[name].reader(content, **options)


def read(source: str | Path, format: str | None = None, **options: Any) -> Taxonomy:
    """The taxonomy in a file; see `read_draft` for the parameters."""
    return read_draft(source, format, **options).build()


def write(
    taxonomy: Taxonomy, target: str | Path, format: str | None = None, *, definitions: bool = True, **options: Any
) -> None:
    """Write a taxonomy to a file, whole or not at all; a format that would lose some of it is refused.

    Parameters
    ----------
    taxonomy
        What to write.
    target
        The file; what ends in `.gz` or `.zst` is compressed.
    format
        A name in `FORMATS`; known from the ending where it is left out.
    definitions
        Set to False to leave definitions out, for a format that has no place for them.
    options
        What the format's writer takes, such as `delimiter`, `direction`, `separator` or `ids`.
    """
    ending = _ending(target)
    name = _format_of(target, ending) if format is None else format
    chosen = _known(name)
    if chosen.writer is None:
        writable = ", ".join(sorted(known for known, entry in FORMATS.items() if entry.writer))
        raise SettingError(f"the format {name!r} can be read but not written; choose one of {writable}")
    _check_options(name, "written", chosen.write_options, options)
    require(isinstance(definitions, bool), "definitions", "True or False", definitions)
    if not definitions:
        above = [taxonomy.parents(label) for label in taxonomy.labels]
        taxonomy = Taxonomy(taxonomy.labels, above, taxonomy.names, taxonomy.aliases)
    _check_content(taxonomy)
    with writing(target) as out:
        chosen.writer(taxonomy, out, **{**chosen.endings.get(ending, {}), **options})


def _options(function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY)


def _known(name: str) -> Format:
    if name in FORMATS:
        return FORMATS[name]
    near = did_you_mean(str(name), FORMATS)
    hint = f"did you mean {near!r}?" if near else f"choose one of {', '.join(sorted(FORMATS))}"
    raise SettingError(f"there is no taxonomy format {name!r}; {hint}")


def _check_options(name: str, verb: str, known: tuple[str, ...], given: dict[str, Any]) -> None:
    for option in given:
        if option not in known:
            near = did_you_mean(option, known)
            all_of_them = f"it takes {', '.join(known)}" if known else "it takes no options"
            hint = f"did you mean {near!r}?" if near else all_of_them
            raise SettingError(f"the format {name!r} is not {verb} with an option {option!r}; {hint}")


def _ending(target: str | Path) -> str:
    path = Path(target)
    return (path.with_suffix("") if path.suffix in _COMPRESSED else path).suffix.lower()


def _format_of(target: str | Path, ending: str) -> str:
    for name, chosen in FORMATS.items():
        if ending in chosen.endings:
            return name
    known = ", ".join(sorted(ending for chosen in FORMATS.values() for ending in chosen.endings))
    raise SettingError(
        f"{target}: the ending {ending!r} does not tell the format; name one with format=, or use one of {known}"
    )


def _check_content(taxonomy: Taxonomy) -> None:
    """Refuse what no file could give back."""
    if not len(taxonomy):
        raise TaxonomyError("a taxonomy without labels is not written, as no file with it could be read")
    everything: dict[str, Iterable[str]] = {
        "label": taxonomy.labels,
        "name": taxonomy.names,
        "alias": taxonomy.aliases,
        "definition": taxonomy.definitions,
    }
    for what, texts in everything.items():
        for text in texts:
            found = complaint(text, what)
            if found:
                raise TaxonomyError(f"this taxonomy cannot be written: {found}")
