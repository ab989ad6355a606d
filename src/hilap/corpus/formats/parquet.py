"""Parquet: a table of columns, read a part at a time and only the columns that are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hilap.corpus.formats.frames import table_rows
from hilap.corpus.formats.sources import name_of
from hilap.corpus.rows import VECTOR, Columns, Extractor, Faults, Row
from hilap.corpus.values import BadLineError
from hilap.errors import CorpusError, need
from hilap.files import display, open_bytes

PART = 4096  # rows at a time


@dataclass(frozen=True)
class Parquet:
    """Reads Parquet files. Nulls and NaN in columns of features are missing values."""

    sources: Sequence[str | Path]
    columns: Columns
    width: int | None = None
    once: bool = False

    @property
    def name(self) -> str:
        """How the corpus is called in messages."""
        return name_of(self.sources)

    def rows(self, faults: Faults) -> Iterator[Row]:
        """The documents in order, numbered from 1 in each file."""
        for source in self.sources:
            with open_bytes(source, CorpusError) as stream:
                yield from self._rows_of(stream, display(source), faults)

    def _rows_of(self, stream: Any, name: str, faults: Faults) -> Iterator[Row]:
        with _damage(name):
            file = need("pyarrow.parquet", "formats").ParquetFile(stream)
            schema = file.schema_arrow
        place = f"{name}, row "
        try:
            extractor = Extractor(
                self.columns, schema.names, place, table=True, vector=_has_vector(schema), many=len(self.sources) > 1
            )
        except BadLineError as fault:
            raise CorpusError(f"{name}: {fault}") from None
        scalar = [c for c in extractor.features if not _is_list(schema.field(c).type)]
        with _damage(name):
            parts = iter(file.iter_batches(batch_size=PART, columns=extractor.needed))
        start = 1
        while True:
            with _damage(name):
                part = next(parts, None)
                if part is None:
                    return
                features = _matrix(part, scalar, name) if scalar and len(scalar) == len(extractor.features) else None
                names = [c for c in extractor.needed if features is None or c not in scalar]
                columns = {c: part.column(c).to_pylist() for c in names}
            yield from table_rows(extractor, columns, features, start, part.num_rows, faults)
            start += part.num_rows


def _matrix(part: Any, names: list[str], name: str) -> Any:
    """(n, F) float32, NaN where a value is missing."""
    arrow = need("pyarrow", "formats")
    columns = []
    for column in names:
        kind = part.column(column).type
        if not _is_numeric(kind):
            raise CorpusError(f"{name}: column {column!r} must hold numbers, but is of type {kind}")
        columns.append(part.column(column).cast(arrow.float32(), safe=False).to_numpy(zero_copy_only=False))
    return np.stack(columns, axis=1).astype(np.float32, copy=False)


def _has_vector(schema: Any) -> bool:
    return bool(schema.names.count(VECTOR) == 1 and _is_list(schema.field(VECTOR).type))


def _is_numeric(kind: Any) -> bool:
    types = need("pyarrow", "formats").types
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _is_list(kind: Any) -> bool:
    types = need("pyarrow", "formats").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


@contextmanager
def _damage(name: str) -> Iterator[None]:
    """What pyarrow says about a file, as our own error."""
    arrow = need("pyarrow", "formats")
    try:
        yield
    except (arrow.ArrowException, OSError, ValueError, OverflowError, MemoryError) as fault:
        if isinstance(fault, CorpusError):
            raise
        reason = " ".join(str(fault).split())[:200]
        raise CorpusError(f"{name}: the Parquet file is damaged ({reason}); get it again") from None


__all__ = ["Parquet"]
