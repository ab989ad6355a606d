"""Writing documents: JSONL, CSV, TSV, Parquet or svmlight, whole or not at all."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.corpus.examples import Examples
from hilap.corpus.formats.svmlight import ID_MARK
from hilap.corpus.source import Corpus
from hilap.errors import CorpusError, need, require
from hilap.files import writing

SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".svm": "svmlight",
}
"""The end of a file name -> the format that is meant."""

SEPARATOR = "|"
_UNFIT = re.compile(r"[\s,#]|[0-9]+:\S*$")


def write(documents: Examples | Corpus, target: str | Path, format: str | None = None, *, closed: bool = False) -> None:
    """Write documents to a file, which appears only when everything is written.

    Parameters
    ----------
    documents
        Examples, or a corpus, which is read a block at a time.
    target
        Where to write; `.gz` and `.zst` names are compressed.
    format
        "jsonl", "csv", "tsv", "parquet" or "svmlight"; None takes it from the name.
    closed
        Whether all labels are written; without it only the most specific ones, which say the same.

    Notes
    -----
    svmlight holds labels and features only: texts and groups are not written there.
    """
    kind = format or _format_of(target)
    require(kind in _WRITERS, "format", f"one of {', '.join(_WRITERS)}", kind)
    mode, put = _WRITERS[kind]
    blocks = documents.batches() if isinstance(documents, Corpus) else iter([documents])
    with writing(target, mode) as out:
        put(blocks, out, closed)


def _format_of(target: str | Path) -> str:
    suffixes = [s.lower() for s in Path(target).suffixes]
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        suffixes.pop()
    if suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]]
    raise CorpusError(f"{target}: the name does not tell the format; name it with format=..., one of {list(_WRITERS)}")


def _write_jsonl(blocks: Iterator[Examples], out: IO[str], closed: bool) -> None:
    for block in blocks:
        numbers = _numbers(_dense(block, "JSONL"))
        for k, (document, labels) in enumerate(zip(block.ids, _labels(block, closed), strict=True)):
            record: dict[str, Any] = {"id": document}
            if block.texts is not None:
                record["text"] = block.texts[k]
            if numbers is not None:
                record["features"] = numbers[k]
            record["labels"] = labels
            if block.groups is not None:
                record["group"] = block.groups[k]
            out.write(json.dumps(record, ensure_ascii=False) + "\n")


def _write_delimited(blocks: Iterator[Examples], out: IO[str], closed: bool, delimiter: str) -> None:
    plain = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    # A carriage return outside quotes would end the record for many readers, and the csv module does not see to it.
    quoted = csv.writer(out, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
    header: list[str] | None = None
    for block in blocks:
        numbers = _numbers(_dense(block, "CSV"))
        if header is None:
            header = _header(block)
            plain.writerow(header)
        for k, (document, labels) in enumerate(zip(block.ids, _labels(block, closed), strict=True)):
            cells = [document]
            if block.texts is not None:
                cells.append(block.texts[k])
            cells.append(_cell(labels))
            if block.groups is not None:
                cells.append(block.groups[k])
            if numbers is not None:
                cells += ["" if value is None else repr(value) for value in numbers[k]]
            (quoted if any("\r" in cell for cell in cells) else plain).writerow(cells)


def _header(block: Examples) -> list[str]:
    names = ["id", "text" if block.texts is not None else "", "labels", "group" if block.groups is not None else ""]
    width = 0 if block.features is None else block.features.shape[1]
    return [name for name in names if name] + [f"f{k}" for k in range(width)]


def _cell(labels: list[str]) -> str:
    """Labels in one cell: divided by bars, as a JSON list where that would be misread."""
    joined = SEPARATOR.join(labels)
    fits = all(SEPARATOR not in label and label == label.strip() for label in labels)
    return joined if fits and not joined.startswith("[") else json.dumps(labels, ensure_ascii=False)


def _write_parquet(blocks: Iterator[Examples], out: IO[bytes], closed: bool) -> None:
    arrow, parquet = need("pyarrow", "formats"), need("pyarrow.parquet", "formats")
    writer = None
    try:
        for block in blocks:
            features = _dense(block, "Parquet")
            columns = {"id": arrow.array(list(block.ids), arrow.string())}
            if block.texts is not None:
                columns["text"] = arrow.array(list(block.texts), arrow.large_string())
            columns["labels"] = arrow.array(_labels(block, closed), arrow.list_(arrow.string()))
            if features is not None:
                columns["features"] = _vectors(arrow, features)
            if block.groups is not None:
                columns["group"] = arrow.array(list(block.groups), arrow.string())
            table = arrow.table(columns)
            writer = writer or parquet.ParquetWriter(out, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _vectors(arrow: Any, features: NDArray[np.float32]) -> Any:
    """(n, F) as one list of F numbers a row, null where a value is missing."""
    flat = arrow.array(features.ravel(), arrow.float32(), from_pandas=True)
    starts = np.arange(features.shape[0] + 1, dtype=np.int64) * features.shape[1]
    return arrow.LargeListArray.from_arrays(arrow.array(starts), flat)


def _write_svmlight(blocks: Iterator[Examples], out: IO[str], closed: bool) -> None:
    for block in blocks:
        if block.features is None:
            raise CorpusError("svmlight needs features, but these documents have none; write them as jsonl")
        rows = sparse.csr_array(block.features)
        if np.isnan(rows.data).any():
            raise CorpusError("svmlight cannot hold missing features; fill them, or write the documents as jsonl")
        for k, (document, labels) in enumerate(zip(block.ids, _labels(block, closed), strict=True)):
            mine = slice(rows.indptr[k], rows.indptr[k + 1])
            values = rows.data[mine].astype(np.float32).astype(str)
            pairs = [f"{i + 1}:{v}" for i, v in zip(rows.indices[mine], values, strict=True) if float(v) != 0]
            out.write(f"{_svmlight_labels(labels)} {' '.join(pairs)} # {ID_MARK}{' '.join(document.split())}\n")


def _svmlight_labels(labels: list[str]) -> str:
    for label in labels:
        if _UNFIT.search(label):
            raise CorpusError(
                f"label {label!r} cannot be written as svmlight: blanks, ',', '#' and 'number:' divide things there"
            )
    return ",".join(labels)


def _labels(block: Examples, closed: bool) -> list[list[str]]:
    taxonomy = block.taxonomy
    matrix = block.labels if closed else taxonomy.most_specific_matrix(block.labels)
    return [list(labels) for labels in taxonomy.decode(matrix)]


def _dense(block: Examples, kind: str) -> NDArray[np.float32] | None:
    if block.features is None:
        return None
    if sparse.issparse(block.features):
        raise CorpusError(f"sparse features are not written as {kind}; write them as svmlight")
    return np.asarray(block.features, dtype=np.float32)


def _numbers(features: NDArray[np.float32] | None) -> list[list[float | None]] | None:
    """Features as Python numbers with no more digits than float32 has, None where one is missing."""
    if features is None:
        return None
    texts = features.astype(str).tolist()
    return [[None if math.isnan(v) else v for v in map(float, row)] for row in texts]


_WRITERS: dict[str, tuple[str, Callable[[Iterator[Examples], Any, bool], None]]] = {
    "jsonl": ("w", _write_jsonl),
    "csv": ("w", lambda blocks, out, closed: _write_delimited(blocks, out, closed, ",")),
    "tsv": ("w", lambda blocks, out, closed: _write_delimited(blocks, out, closed, "\t")),
    "parquet": ("wb", _write_parquet),
    "svmlight": ("w", _write_svmlight),
}

__all__ = ["SUFFIXES", "write"]
