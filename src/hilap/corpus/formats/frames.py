"""Tables in memory: a pandas or polars frame, a Hugging Face dataset, or any iterable of records."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from hilap.corpus.formats.jsonl import Documents
from hilap.corpus.rows import VECTOR, Columns, Extractor, Faults, Reader, Row
from hilap.corpus.values import BadLineError, shorten
from hilap.errors import CorpusError

PART = 4096  # rows at a time


def reader_of(source: Any, columns: Columns) -> Reader | None:
    """The reader of something in memory; None where this is no frame, dataset or iterable."""
    for module, kinds, reader in (
        ("pandas", ("DataFrame",), PandasFrame),
        ("polars", ("DataFrame",), PolarsFrame),
        ("datasets", ("Dataset", "IterableDataset"), HuggingFace),
    ):
        package = sys.modules.get(module)  # whoever hands over a frame has imported its library
        if package is not None and isinstance(source, tuple(getattr(package, kind) for kind in kinds)):
            return reader(source, columns)
    _refuse_relatives(source)
    if isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes, bytearray)):
        return Records(source, columns)
    return None


def _refuse_relatives(source: Any) -> None:
    """What looks like a table but is not one."""
    datasets, polars = sys.modules.get("datasets"), sys.modules.get("polars")
    if datasets is not None and isinstance(source, (datasets.DatasetDict, datasets.IterableDatasetDict)):
        splits = ", ".join(repr(str(split)) for split in source)
        raise CorpusError(f"a single split is needed, got a DatasetDict; choose one of {splits}")
    if polars is not None and isinstance(source, polars.LazyFrame):
        raise CorpusError("a DataFrame is needed, got a polars LazyFrame; call .collect() on it")


def table_rows(
    extractor: Extractor, columns: Mapping[str, Sequence[Any]], features: Any, start: int, n: int, faults: Faults
) -> Iterator[Row]:
    """The documents in some columns of equal length; the first is number `start`."""
    names = list(columns)
    cells: Iterable[tuple[Any, ...]] = zip(*columns.values(), strict=True) if names else ((),) * n
    for k, values in enumerate(cells):
        try:
            vector = None if features is None else features[k]
            row = extractor.row(dict(zip(names, values, strict=True)), start + k, vector)
        except BadLineError as fault:
            faults(extractor.place, start + k, fault)
            continue
        yield row


@dataclass(frozen=True)
class PandasFrame:
    """Reads a pandas frame; NaN, None and NA are missing values."""

    frame: Any
    columns: Columns
    name: str = "DataFrame"
    once: bool = False
    width: int | None = None

    def rows(self, faults: Faults) -> Iterator[Row]:
        """The documents in order, numbered from 1."""
        labels = {str(c): c for c in self.frame.columns}
        extractor = _extractor(self, [str(c) for c in self.frame.columns], self._has_vector())
        scalar = [c for c in extractor.features if _is_numeric(self.frame[labels[c]].dtype)]
        as_matrix = bool(scalar) and len(scalar) == len(extractor.features)
        for start in range(0, len(self.frame), PART):
            part = self.frame.iloc[start : start + PART]
            features = None
            if as_matrix:
                with np.errstate(over="ignore"):
                    features = part[[labels[c] for c in scalar]].to_numpy(dtype=np.float32, na_value=np.nan)
            names = [c for c in extractor.needed if not as_matrix or c not in scalar]
            columns = {c: _pandas_values(part[labels[c]]) for c in names}
            yield from table_rows(extractor, columns, features, start + 1, len(part), faults)

    def _has_vector(self) -> bool:
        names = list(self.frame.columns)
        return names.count(VECTOR) == 1 and len(self.frame) > 0 and _is_vector(self.frame[VECTOR].iloc[0])


@dataclass(frozen=True)
class PolarsFrame:
    """Reads a polars frame; nulls, and NaN in columns of features, are missing values."""

    frame: Any
    columns: Columns
    name: str = "DataFrame"
    once: bool = False
    width: int | None = None

    def rows(self, faults: Faults) -> Iterator[Row]:
        """The documents in order, numbered from 1."""
        frame = self.frame
        extractor = _extractor(self, frame.columns, VECTOR in frame.columns and frame.schema[VECTOR].is_nested())
        scalar = [c for c in extractor.features if frame.schema[c].is_numeric()]
        as_matrix = bool(scalar) and len(scalar) == len(extractor.features)
        names = [c for c in extractor.needed if not as_matrix or c not in scalar]
        start = 1
        for part in frame.iter_slices(PART):
            features = None
            if as_matrix:
                with np.errstate(over="ignore"):
                    features = part.select(scalar).cast(sys.modules["polars"].Float64).to_numpy().astype(np.float32)
            columns = {c: part[c].to_list() for c in names}
            yield from table_rows(extractor, columns, features, start, len(part), faults)
            start += len(part)


@dataclass(frozen=True)
class HuggingFace:
    """Reads a Hugging Face dataset, in memory, mapped from disk or streamed."""

    dataset: Any
    columns: Columns
    name: str = "Dataset"
    once: bool = False
    width: int | None = None

    def rows(self, faults: Faults) -> Iterator[Row]:
        """The documents in order, numbered from 1."""
        dataset = self.dataset.with_format(None)
        first: dict[str, Any] = next(iter(dataset), {})
        if not first:
            return
        extractor = _extractor(self, list(first), _is_vector(first.get(VECTOR)))
        names = extractor.needed
        if names:
            dataset = dataset.select_columns(names)  # pictures and sound are not decoded for nothing
        coded = None if dataset.features is None else _label_names(dataset.features.get(extractor.labels))
        start = 1
        for part in dataset.iter(batch_size=PART):
            columns = {c: part[c] for c in names}
            if coded is not None:
                columns[str(extractor.labels)] = [_named(value, coded) for value in columns[str(extractor.labels)]]
            n = len(next(iter(part.values())))
            yield from table_rows(extractor, columns, None, start, n, faults)
            start += n


@dataclass
class Records:
    """Reads any iterable of mappings, as if each were a line of JSON."""

    records: Iterable[Any]
    columns: Columns
    name: str = "records"
    width: int | None = None

    @property
    def once(self) -> bool:
        """An iterator is used up by reading it."""
        return iter(self.records) is self.records

    def rows(self, faults: Faults) -> Iterator[Row]:
        """The documents in order, numbered from 1."""
        place = f"{self.name}, row "
        documents = Documents(self.columns, place)
        for number, record in enumerate(self.records, 1):
            try:
                if not isinstance(record, Mapping):
                    raise BadLineError(f"a dict is needed for every document, got {shorten(record)}")
                document = dict(record)
                document.pop(None, None)  # where csv.DictReader puts cells without a name
                row = documents.row(document, number)
            except BadLineError as fault:
                faults(place, number, fault)
                continue
            yield row


def _extractor(reader: Reader, available: Sequence[str], vector: bool) -> Extractor:
    columns: Columns = reader.columns  # type: ignore[attr-defined]
    try:
        return Extractor(columns, available, f"{reader.name}, row ", table=True, vector=vector)
    except BadLineError as fault:
        raise CorpusError(f"{reader.name}: {fault}") from None


def _is_vector(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray))


def _is_numeric(dtype: Any) -> bool:
    """Whether a pandas column holds numbers or truths, in numpy's or in pandas' own types."""
    return getattr(dtype, "kind", "O") in "fiub"


def _pandas_values(column: Any) -> list[Any]:
    """The values of a column with None for every kind of missing one.

    A column of whole numbers with a gap is a column of floats in pandas: 17.0 means 17 there.
    """
    values = column.astype(object).where(column.notna(), None).tolist()
    if getattr(column.dtype, "kind", "O") == "f":
        return [int(v) if v is not None and float(v).is_integer() else v for v in values]
    return list(values)


def _label_names(feature: Any) -> list[str] | None:
    """The names behind whole numbers, where a dataset codes its labels so (`ClassLabel`)."""
    inner = getattr(feature, "feature", feature)
    if isinstance(inner, (list, tuple)):
        inner = next(islice(inner, 1), None)
    names = getattr(inner, "names", None)
    return list(names) if names else None


def _named(value: Any, names: list[str]) -> Any:
    """Coded labels by their names; -1 is how datasets say that a label is not known."""
    codes = value if isinstance(value, list) else [value]
    return [names[k] if isinstance(k, int) and 0 <= k < len(names) else k for k in codes if k is not None and k != -1]


__all__ = ["HuggingFace", "PandasFrame", "PolarsFrame", "Records", "reader_of", "table_rows"]
