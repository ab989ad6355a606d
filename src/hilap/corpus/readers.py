"""The door: any source of documents, in any format, as a corpus."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hilap.corpus import assembly
from hilap.corpus.formats import frames
from hilap.corpus.formats.clus import ClusArff
from hilap.corpus.formats.delimited import DELIMITERS, Delimited
from hilap.corpus.formats.jsonl import JsonArray, JsonLines
from hilap.corpus.formats.parquet import Parquet
from hilap.corpus.formats.sources import expand, head_of, spooled, waiting_head
from hilap.corpus.formats.svmlight import SvmLight
from hilap.corpus.labels import Resolver, grown_from
from hilap.corpus.report import ReadReport
from hilap.corpus.rows import Columns, Faults, Reader
from hilap.corpus.source import Corpus
from hilap.corpus.values import shorten
from hilap.errors import CorpusError, did_you_mean, require
from hilap.files import STDIN, display, read_lines
from hilap.taxonomy.graph import Taxonomy

STREAMED = ("jsonl", "csv", "tsv")
"""The formats that are read from standard input as it comes; for the others it is kept in a temporary file."""


@dataclass(frozen=True)
class _Options:
    """What only some formats take."""

    bad_lines: Literal["error", "skip"]
    n_features: int | None
    index_base: Literal["auto", 0, 1]


FORMATS: dict[str, Callable[[Sequence[str | Path], Columns, _Options], Reader]] = {
    "jsonl": lambda sources, columns, _: JsonLines(sources, columns),
    "json": lambda sources, columns, _: JsonArray(sources, columns),
    "csv": lambda sources, columns, _: Delimited(sources, columns),
    "tsv": lambda sources, columns, _: Delimited(sources, columns, "\t"),
    "parquet": lambda sources, columns, _: Parquet(sources, columns),
    "clus": lambda sources, columns, _: ClusArff(sources, columns),
    "svmlight": lambda sources, columns, given: SvmLight(
        sources, columns, given.n_features, given.index_base, given.bad_lines
    ),
}
"""The name of a format -> how its reader is made."""


def read(
    source: Any,
    taxonomy: Taxonomy | None = None,
    *,
    format: str | None = None,
    id: str | None = "id",
    text: str | Sequence[str] | None = "text",
    labels: str | None = "labels",
    features: Sequence[str] | None = None,
    group: str | None = None,
    label_separator: str = "|",
    path_separator: str | None = None,
    unknown: Literal["error", "drop", "add"] = "error",
    bad_lines: Literal["error", "skip"] = "error",
    labelled: bool = True,
    close: bool = True,
    n_features: int | None = None,
    index_base: Literal["auto", 0, 1] = "auto",
) -> Corpus:
    """Open a corpus. It is read when its documents are asked for, and closed upward then.

    Parameters
    ----------
    source
        A path, a pattern such as `parts/*.jsonl.gz`, a list of paths, `-` for standard input, a pandas or polars
        frame, a Hugging Face dataset, or an iterable of dicts.
    taxonomy
        Where the labels are looked up. None takes it from the header of a Clus ARFF file, or builds it from the labels
        with `unknown="add"`.
    format
        "jsonl", "json", "csv", "tsv", "parquet", "clus" or "svmlight"; None recognises it from the content.
    id, text, labels, features, group
        The columns or keys. Several of text are joined by line feeds; `features=["f*"]` takes all that start with f;
        None leaves a thing out, except that features may stand in a list under "features".
    label_separator
        What divides labels in a cell of a table.
    path_separator
        What divides the steps of a path; None tries ' > ', ' :: ' and '/' with labels that are nothing else.
    unknown
        What happens to labels that the taxonomy does not have: an error, dropped and counted, or added to it.
    bad_lines
        What happens to lines that are no documents: an error, or skipped and counted.
    labelled
        False lets documents come without labels, for prediction.
    close
        Whether labels are closed upward. False keeps them as they are, to judge predictions; never for training.
    n_features, index_base
        For svmlight: the number of columns, and whether the first index is 0 or 1.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"]})
    >>> corpus = read([{"id": "42", "text": "craft beer", "labels": ["Bars"]}], taxonomy)
    >>> next(iter(corpus))
    Example(id='42', labels=('Food', 'Bars'), text='craft beer', features=None, group=None)
    """
    require(unknown in ("error", "drop", "add"), "unknown", "'error', 'drop' or 'add'", unknown)
    require(bad_lines in ("error", "skip"), "bad_lines", "'error' or 'skip'", bad_lines)
    require(label_separator != "", "label_separator", "at least one character", label_separator)
    require(path_separator != "", "path_separator", "at least one character, or None", path_separator)
    texts = (text,) if isinstance(text, str) else tuple(text or ())
    chosen = None if features is None else (features,) if isinstance(features, str) else tuple(features)
    columns = Columns(id, texts, labels, chosen, group, labelled, label_separator)
    options = _Options(bad_lines, n_features, index_base)
    _check_options(options)
    reader = _reader(source, format, columns, options, twice=unknown == "add")
    start = _starting_taxonomy(taxonomy, reader, columns, unknown)
    if unknown == "add":
        start = _extended(reader, start, path_separator, bad_lines)
    strangers: Literal["error", "collect"] = "collect" if unknown == "drop" else "error"
    resolver = Resolver(start, path_separator=path_separator, strangers=strangers)
    return Corpus.from_reader(reader, resolver, bad_lines=bad_lines, close=close)


def recognise(head: bytes) -> str | None:
    """The format of a file that starts with these bytes; None where it is none that is known.

    Examples
    --------
    >>> recognise(b'{"id": 1}'), recognise(b"id,text,labels"), recognise(b"A,B 1:0.5 7:1")
    ('jsonl', 'csv', 'svmlight')
    """
    if head.startswith(b"PAR1"):
        return "parquet"
    lines = [line for line in head.decode("utf-8", "replace").removeprefix("\ufeff").split("\n") if line.strip()][:20]
    if not lines:
        return None
    first = lines[0].lstrip()
    if first.startswith("["):
        return "json"
    objects = sum(line.lstrip().startswith("{") for line in lines)
    if first.startswith("{") or 2 * objects > len(lines):
        return "jsonl"
    told = [line.lstrip() for line in lines if not line.lstrip().startswith(("%", "#"))]
    if told and told[0].casefold().startswith(("@relation", "@attribute")):
        return "clus"
    if told and _SVMLIGHT.match(told[0]):
        return "svmlight"
    return "csv" if any(delimiter in lines[0] for delimiter in DELIMITERS) and "\0" not in lines[0] else None


_SVMLIGHT = re.compile(r"(\S*\s+)?[0-9]+:[^\s:]+(\s+[0-9]+:[^\s:]+)*\s*(#.*)?$", re.ASCII)


def _reader(source: Any, format: str | None, columns: Columns, options: _Options, *, twice: bool) -> Reader:
    sources = _sources(source)
    if sources is None:
        reader = frames.reader_of(source, columns)
        if reader is None:
            raise CorpusError(f"a corpus is a path, a frame, a dataset or an iterable of dicts, got {shorten(source)}")
        require(format is None, "format", "None for documents in memory", format)
        _refuse_svmlight_options(options, "documents in memory")
        return reader
    if format is not None and format not in FORMATS:
        near = did_you_mean(format, FORMATS)
        hint = f"; did you mean {near!r}?" if near else ""
        require(False, "format", f"one of {', '.join(FORMATS)}{hint}", format)
    if str(sources[0]) == STDIN:
        sources, format = _standard_input(format, twice)
    found = format or _one_format(sources)
    if found != "svmlight":
        _refuse_svmlight_options(options, found)
    if found in ("svmlight", "clus"):
        require(columns.group is None, "group", f"None, as {found} has no groups", columns.group)
        require(columns.features is None, "features", f"None, as {found} has no named columns", columns.features)
    return FORMATS[found](sources, columns, options)


def _sources(source: Any) -> list[str | Path] | None:
    """The files of a corpus, None where it is in memory."""
    if isinstance(source, (str, Path)):
        return expand(source)
    if not isinstance(source, (list, tuple)) or any(not isinstance(part, (str, Path)) for part in source):
        return None
    if not source:
        raise CorpusError("no file and no document was given; a corpus needs at least one")
    if len(source) > 1 and STDIN in map(str, source):
        raise CorpusError("standard input cannot be one of several files; give it alone")
    return [file for part in source for file in expand(part)]


def _standard_input(format: str | None, twice: bool) -> tuple[list[str | Path], str | None]:
    """Standard input as it comes where that is possible, else kept in a file."""
    if not twice:
        found = format or recognise(waiting_head())
        if found in STREAMED:
            return [STDIN], found
    return [spooled()], format


def _one_format(sources: Sequence[str | Path]) -> str:
    found: str | None = None
    for source in sources:
        head = head_of(source)
        if not head.strip() and len(sources) > 1:
            continue  # an empty part of a corpus in many parts
        here = recognise(head) or _unrecognised(source, head)
        if found is not None and here != found:
            raise CorpusError(
                f"{display(source)}: this is {here}, but {display(sources[0])} is {found}; "
                "give files of one format, or name it with format=..."
            )
        found = here
    if found is None:
        raise CorpusError(f"{display(sources[0])} and {len(sources) - 1} more: all files are empty")
    return found


def _unrecognised(source: str | Path, head: bytes) -> str:
    name = display(source)
    if not head.strip():
        raise CorpusError(f"{name}: the file is empty; a corpus needs at least one document")
    next(read_lines(source, CorpusError), None)  # says what is wrong if this is no text at all
    raise CorpusError(f"{name}:1: the format is not recognised; name it with format=..., one of {', '.join(FORMATS)}")


def _check_options(options: _Options) -> None:
    n, base = options.n_features, options.index_base
    require(n is None or (isinstance(n, int) and n >= 1), "n_features", "at least 1, or None", n)
    require(base in ("auto", 0, 1), "index_base", "'auto', 0 or 1", base)


def _refuse_svmlight_options(options: _Options, kind: str) -> None:
    require(options.n_features is None, "n_features", f"None for {kind}: it is for svmlight", options.n_features)
    require(options.index_base == "auto", "index_base", f"'auto' for {kind}: it is for svmlight", options.index_base)


def _starting_taxonomy(taxonomy: Taxonomy | None, reader: Reader, columns: Columns, unknown: str) -> Taxonomy:
    if taxonomy is not None:
        return taxonomy
    if isinstance(reader, ClusArff):
        return reader.taxonomy()
    if unknown == "add" or columns.labels is None:
        return Taxonomy.of({})
    raise CorpusError(
        f"{reader.name}: a taxonomy is needed to understand the labels; "
        "give one, or build it from the labels with unknown='add'"
    )


def _extended(
    reader: Reader, taxonomy: Taxonomy, path_separator: str | None, bad_lines: Literal["error", "skip"]
) -> Taxonomy:
    """The taxonomy with all unknown labels of the source added: a first pass over it."""
    if reader.once:
        raise CorpusError(f"{reader.name}: unknown='add' reads twice, and an iterator can be read once; give a list")
    resolver = Resolver(taxonomy, path_separator=path_separator, strangers="collect")
    assembly.strangers(reader, resolver, Faults(bad_lines, ReadReport()))
    return grown_from(taxonomy, resolver.unknown, path_separator, reader.name)


__all__ = ["FORMATS", "read", "recognise"]
