"""One document on its way from a file to a block of examples: what every format's reader makes.

Readers of formats know how a file is cut into records; this module knows what a record must hold. Labels are still as
the file gives them; `hilap.corpus.assembly` turns whole lists of rows into blocks of examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from hilap.corpus.report import ReadReport
from hilap.corpus.values import BadLineError, list_of, name_of, numbers_of, shorten, split_cell, string_of
from hilap.errors import CorpusError, HilapError, did_you_mean

VECTOR = "features"  # where a record holds its features as a list, if nothing else was said


class Row(NamedTuple):
    """One document as a file gives it."""

    place: str  # what stands before the line number in messages, such as "reviews.jsonl:"
    line: int
    id: str
    text: str | None
    labels: list[Any]
    features: Any  # None, numbers (None where missing), a (F,) array, or (indices, values) of a sparse row
    group: str | None


@dataclass(frozen=True)
class Faults:
    """What happens to a bad line: it is an error, or it is skipped and noted."""

    policy: Literal["error", "skip"]
    report: ReadReport

    def __call__(self, place: str, line: int, reason: object) -> None:
        """Raise, or note that this line is left out."""
        where = f"{place}{line}"
        if self.policy == "error":
            raise CorpusError(f"{where}: {reason}")
        self.report.skip(where, line, str(reason))

    def of_lines(self, place: str) -> Callable[[int, HilapError], None] | None:
        """What `hilap.files.read_lines` calls for a line that is no text; None lets it raise."""
        if self.policy == "error":
            return None
        return lambda line, fault: self(place, line, str(fault).removeprefix(f"{place}{line}: "))


class Reader(Protocol):
    """A source of documents, opened anew by every call of `rows`."""

    @property
    def name(self) -> str:
        """How the corpus is called in messages."""
        ...

    @property
    def once(self) -> bool:
        """Whether it can be read only once."""
        ...

    def rows(self, faults: Faults) -> Iterator[Row]:
        """The documents in order; what is bad goes to `faults`."""
        ...

    @property
    def width(self) -> int | None:
        """The number of columns where features are sparse, None where they are not."""
        ...


@dataclass(frozen=True)
class Columns:
    """Which columns or keys hold what, as the user said it."""

    id: str | None = "id"
    text: tuple[str, ...] = ("text",)
    labels: str | None = "labels"
    features: tuple[str, ...] | None = None  # None: a list under "features", if the first document has one
    group: str | None = None
    labelled: bool = True
    label_separator: str = "|"


class Extractor:
    """Takes documents out of the records of one source.

    Parameters
    ----------
    columns
        What the user said.
    available
        The columns of the table, or the keys of the first record.
    place
        What stands before a line number in messages.
    table
        Whether every record has the same columns. Then missing columns are found here, and a string of labels is
        several, divided by the label separator.
    vector
        Whether the first record has a list under "features".
    many
        Whether there are several files, so that a line number alone makes no id.
    """

    def __init__(
        self,
        columns: Columns,
        available: Sequence[str],
        place: str,
        *,
        table: bool,
        vector: bool = False,
        many: bool = False,
    ) -> None:
        self.place = place
        self._table = table
        self._many = many
        self._columns = columns
        self._available = available
        self.features = self._feature_columns(vector)
        self.texts = () if self._text_is_optional() else columns.text
        self._sole_text = self.texts[0] if len(self.texts) == 1 else None
        self.id = self._optional(columns.id, "id")
        self.group = columns.group
        self.labels = columns.labels
        self._check()

    @property
    def needed(self) -> list[str]:
        """The columns that are read at all, each once."""
        names = (self.id, *self.texts, self.labels, *self.features, self.group)
        return list(dict.fromkeys(name for name in names if name is not None))

    def row(self, record: Mapping[Any, Any], line: int, features: Any = None) -> Row:
        """The document in a record; a `BadLineError` says what is wrong with it."""
        # Strings and lists in their places are taken as they are: most documents need no more.
        document, labels = record.get(self.id), record.get(self.labels)
        text = record.get(self._sole_text)
        return Row(
            self.place,
            line,
            document if type(document) is str and document else self._id(record, line),
            text if type(text) is str else self._text(record),
            labels if type(labels) is list else self._labels(record),
            self._vector(record) if self.features and features is None else features,
            None if self.group is None else self._group(record),
        )

    # -- which columns ----------------------------------------------------------------------------------------------

    def _feature_columns(self, vector: bool) -> tuple[str, ...]:
        if self._columns.features is None:
            return (VECTOR,) if vector else ()
        found: list[str] = []
        for name in self._columns.features:
            if name.endswith("*"):
                matching = [c for c in self._available if c.startswith(name[:-1])]
                if not matching:
                    raise BadLineError(f"no {self._kind} starts with {name[:-1]!r}; {self._listing()}")
                found += matching
            else:
                self._present(name, "features")
                found.append(name)
        return tuple(dict.fromkeys(found))

    def _text_is_optional(self) -> bool:
        """Features alone are enough for a document: then the default text column may be absent."""
        return bool(self.features) and self._columns.text == ("text",) and "text" not in self._available

    def _optional(self, name: str | None, usual: str) -> str | None:
        if name is None or name in self._available:
            return name
        if self._table and name != usual:
            self._present(name, usual)
        return None if self._table else name

    def _check(self) -> None:
        for name in self.texts:
            self._present(name, "text")
        if not self._table:
            return
        if self.labels is not None and self.labels not in self._available:
            if self._columns.labelled:
                self._present(self.labels, "labels")
            self.labels = None
        if self.group is not None:
            self._present(self.group, "group")
        counts = Counter(self._available)
        for name in self.needed:
            if counts[name] > 1:
                raise BadLineError(f"column {name!r} is there {counts[name]} times; name every column differently")

    def _present(self, name: str, parameter: str) -> None:
        if name not in self._available:
            near = did_you_mean(name, self._available)
            hint = f"did you mean {near!r}?" if near else f"say which one it is with {parameter}=..."
            raise BadLineError(f"there is no {self._kind} {name!r}; {self._listing()}; {hint}")

    @property
    def _kind(self) -> str:
        return "column" if self._table else "key"

    def _listing(self) -> str:
        shown = ", ".join(repr(name) for name in self._available[:20])
        more = f" and {len(self._available) - 20} more" if len(self._available) > 20 else ""
        return f"the {self._kind}s are {shown}{more}" if shown else f"there are no {self._kind}s at all"

    # -- what is in them --------------------------------------------------------------------------------------------

    def _id(self, record: Mapping[Any, Any], line: int) -> str:
        value = record.get(self.id) if self.id is not None else None
        if value is None or value == "":
            return f"{self.place}{line}" if self._many else str(line)
        return name_of(value, self.id)

    def _group(self, record: Mapping[str, Any]) -> str:
        value = record.get(str(self.group))
        if value is None:
            raise BadLineError(f"there is no {self.group!r}; every document needs a group")
        return name_of(value, self.group)

    def _text(self, record: Mapping[str, Any]) -> str | None:
        if not self.texts:
            return None
        return "\n".join(string_of(record.get(name), name, record) for name in self.texts)

    def _labels(self, record: Mapping[str, Any]) -> list[Any]:
        if self.labels is None:
            return []
        value = record.get(self.labels)
        if isinstance(value, str):
            return split_cell(value, self._columns.label_separator) if self._table else [value]
        if value is None:
            if self._table or not self._columns.labelled:
                return []
            what = "is null" if self.labels in record else "is missing"
            raise BadLineError(f"{self.labels!r} {what}; write [] for a document without labels")
        return list_of(value, self.labels)

    def _vector(self, record: Mapping[str, Any]) -> Any:
        if len(self.features) == 1:
            value = record.get(self.features[0])
            if isinstance(value, (list, tuple)):
                return numbers_of(value)
            if isinstance(value, np.ndarray) and value.ndim == 1:
                return value if value.dtype.kind in "fiub" else numbers_of(value.tolist())
            if self._columns.features is None:
                raise BadLineError(f"{self.features[0]!r} must be a list of numbers, got {shorten(value)}")
        missing = [name for name in self.features if name not in record]
        if missing:
            raise BadLineError(f"there is no {missing[0]!r}; write null for a missing value")
        return numbers_of([record[name] for name in self.features], self.features)


__all__ = ["Columns", "Extractor", "Faults", "Reader", "Row"]
