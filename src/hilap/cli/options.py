"""Options that several commands share, declared once, and how files are opened with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilap.errors import SettingError

if TYPE_CHECKING:
    from hilap.corpus import Corpus, Examples
    from hilap.taxonomy import Taxonomy

JsonFlag = Annotated[bool, typer.Option("--json", help="Print plain JSON on standard output, and nothing else there.")]
TaxonomyFile = Annotated[Path, typer.Argument(help="A taxonomy file; `-` for standard input.", show_default=False)]
TaxonomyOption = Annotated[
    Path | None,
    typer.Option("--taxonomy", "-t", help="The taxonomy file. A Clus ARFF corpus brings its own.", show_default=False),
]
TaxonomyFormat = Annotated[
    str | None, typer.Option("--taxonomy-format", help="The taxonomy's format, if it is not recognised.")
]
CorpusFile = Annotated[
    str, typer.Argument(help="A corpus file, a pattern of files, or `-` for standard input.", show_default=False)
]
FormatOption = Annotated[str | None, typer.Option("--format", "-f", help="The file's format, if it is not recognised.")]
ReadOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", metavar="KEY=VALUE", help="An option of the format, e.g. root=Top; the value may be JSON."
    ),
]
TextColumn = Annotated[str, typer.Option(help="Column of the text; several as a,b; empty for none.")]
LabelsColumn = Annotated[str, typer.Option(help="Column of the labels.")]
IdColumn = Annotated[str, typer.Option(help="Column of the id.")]
GroupColumn = Annotated[str | None, typer.Option(help="Column of the group: documents of one group stay together.")]
LabelSeparator = Annotated[str, typer.Option(help="What divides labels in a cell of a table.")]
PathSeparator = Annotated[
    str | None, typer.Option(help="What divides the steps of a path; else ' > ', ' :: ' and '/' are tried.")
]
FeatureColumns = Annotated[str | None, typer.Option(help="Columns of features, as a,b or as a pattern f*.")]


class Unknown(str, Enum):
    """What happens to labels that the taxonomy does not have."""

    error = "error"
    drop = "drop"
    add = "add"


class BadLines(str, Enum):
    """What happens to lines that are no documents."""

    error = "error"
    skip = "skip"


UnknownPolicy = Annotated[Unknown, typer.Option(help="What to do with labels that the taxonomy does not have.")]
BadLinesPolicy = Annotated[BadLines, typer.Option(help="What to do with lines that are no documents.")]


def parse_pairs(pairs: Sequence[str] | None, option: str = "--option") -> dict[str, Any]:
    """`KEY=VALUE` options as a dict; a value that is JSON is read as such."""
    found: dict[str, Any] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise SettingError(f"{option} must be KEY=VALUE, got {pair!r}")
        try:
            found[key] = json.loads(value)
        except (json.JSONDecodeError, RecursionError):
            found[key] = value
    return found


def open_taxonomy(path: Path | None, format: str | None) -> Taxonomy | None:
    """The taxonomy of a `--taxonomy` option, if one was given."""
    from hilap.taxonomy.readers import read

    return None if path is None else read(path, format)


def open_corpus(
    source: str,
    taxonomy: Path | None,
    taxonomy_format: str | None,
    *,
    format: str | None,
    text: str,
    labels: str,
    id: str,
    features: str | None,
    group: str | None,
    label_separator: str,
    path_separator: str | None,
    unknown: Unknown,
    bad_lines: BadLines,
) -> Corpus:
    """The corpus that the options of a command describe."""
    from hilap.corpus import read

    return read(
        source,
        open_taxonomy(taxonomy, taxonomy_format),
        format=format,
        text=[column for column in text.split(",") if column] or None,
        labels=labels,
        id=id,
        features=features.split(",") if features else None,
        group=group,
        label_separator=label_separator,
        path_separator=path_separator,
        unknown=unknown.value,
        bad_lines=bad_lines.value,
    )


def widened(examples: Examples, width: int) -> Examples:
    """Sparse features with as many columns as a classifier knows: the last ones of a file may all be zero."""
    from dataclasses import replace

    from scipy import sparse

    if not sparse.issparse(examples.features) or examples.features.shape[1] >= width:
        return examples
    rows = sparse.csr_array(examples.features, copy=True)
    rows.resize((rows.shape[0], width))
    return replace(examples, features=rows)
