"""A corpus that is too large for memory, kept in a working folder and used from there.

`load` reads a corpus into memory as long as it fits under a limit. Where it does not, the corpus is written once to a
folder, texts in one file, labels in others, and the `Examples` that come back look into these files. Everything that
takes a sequence of texts and a sparse matrix of labels goes on working, and gives the same to the last bit.

The folder of a corpus is named by a hash of everything that its content depends on: the bytes of the source, how it is
read, and the taxonomy. So it can be missing but never stale. `about.json` is written last, with a hash of all files;
what is damaged or broken off is written anew. Every file appears whole, so several processes may share a working
folder, and a corpus in it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import fields
from itertools import chain
from pathlib import Path
from sys import getsizeof
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.corpus.examples import Examples
from hilap.corpus.mapped import Pile, Strings, Workplace, positions
from hilap.corpus.report import ReadReport, SkippedLine
from hilap.errors import CorpusError, require
from hilap.files import display, open_bytes, read_text, writing
from hilap.taxonomy.graph import Indicator, Taxonomy
from hilap.version import __version__

if TYPE_CHECKING:
    from hilap.corpus.source import Corpus

FORMAT = 1
FEWEST_DOCUMENTS = 4_096
"""Fewer documents, such as those that predictions are made of, are taken into memory."""
ENDING, ABOUT = ".corpus", "about.json"
_BLOCK = 2_048  # documents read at a time
_CHUNK = 1 << 20  # bytes hashed at a time
_UNITS = {"": 1, "B": 1, **{f"{letter}B": 1000 ** (k + 1) for k, letter in enumerate("KMGT")}}
_UNITS |= {f"{letter}IB": 1024 ** (k + 1) for k, letter in enumerate("KMGT")}
_NAME = re.compile(r"(?:texts|ids|groups|labels)\.[a-z0-9]+")
_TYPES = {".utf8": "u1", ".starts": "<i8"}  # all others: labels, as <i4
_SIZE = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)\s*", re.ASCII)


def bytes_of(size: str | int, name: str = "memory") -> int:
    """A size in bytes, given as a number or in words.

    Examples
    --------
    >>> bytes_of("500MB"), bytes_of("1.5 GiB"), bytes_of(1000)
    (500000000, 1610612736, 1000)
    """
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    number: float | None = None
    if found and found[2].upper() in _UNITS:
        number = float(found[1]) * _UNITS[found[2].upper()]
    elif isinstance(size, (int, np.integer)) and not isinstance(size, bool):
        number = size
    if number is None or number < 1:
        require(False, name, "a size such as '500MB' or '2GB', or a number of bytes, at least 1", size)
    return int(number or 0)


class StoredExamples(Examples):
    """Documents whose texts and labels lie in a working folder. What is taken of them lies there too, unless few."""

    ids: Strings
    texts: Strings
    groups: Strings | None = None

    @property
    def workplace(self) -> Workplace:
        """Where they lie, and where what is made of them may be kept."""
        return self.texts.workplace

    def take(self, rows: Any) -> Examples:
        """The documents of these rows, in this order."""
        chosen = positions(rows, len(self))
        if len(chosen) < FEWEST_DOCUMENTS:
            return super().take(chosen)
        groups = None if self.groups is None else self.groups.take(chosen)
        labels = _taken(self.labels, chosen, self.workplace)
        return StoredExamples(self.taxonomy, self.ids.take(chosen), labels, self.texts.take(chosen), None, groups)


def load(corpus: Corpus, memory: str | int, folder: str | Path | None = None) -> Examples:
    """All documents of a corpus of texts, in memory if they fit, else in a working folder.

    Parameters
    ----------
    corpus
        What to read; its `report` tells afterwards how the reading went, also where it was read on another day.
    memory
        How much the documents may take in memory, such as `"500MB"`.
    folder
        The working folder, which stays; a corpus that is in it already is not read again. None makes a temporary one,
        which goes when nothing uses the documents any more.
    """
    limit = bytes_of(memory)
    before = _states(corpus)
    parts: list[Examples] = []
    size = 0
    blocks = corpus.batches(_BLOCK)
    for block in blocks:
        parts.append(block)
        size += in_memory(block)
        if size > limit:
            workplace = Workplace(folder)
            try:
                return _stored(corpus, chain(_given_away(parts), blocks), block, workplace, before)
            except BaseException:
                workplace.leave()
                raise
    return Examples.join(parts) if parts else Examples(corpus.taxonomy, [], corpus.taxonomy.encode([]))


def in_memory(block: Examples) -> int:
    """How many bytes documents take in memory."""
    columns = [column for column in (block.ids, block.texts, block.groups) if column is not None]
    strings = sum(8 * len(column) + sum(map(getsizeof, column)) for column in columns)
    matrices = [block.labels, *([] if block.features is None else [block.features])]
    return strings + sum(array.nbytes for matrix in matrices for array in _arrays(matrix))


def clear(folder: str | Path, *, drafts: bool = False) -> None:
    """Remove what `hilap` has put into a working folder, and the folder if nothing else is in it.

    Parameters
    ----------
    folder
        The working folder.
    drafts
        Whether only what killed runs have left half-written is removed.
    """
    place = Path(folder)
    corpora = [path for path in place.glob(f"*{ENDING}") if re.fullmatch(r"[0-9a-f]{64}", path.stem)]
    for path in chain(place.glob(".*.part"), *(corpus.glob(".*.part") for corpus in corpora)):
        path.unlink(missing_ok=True)
    if drafts:
        return
    for corpus in corpora:
        shutil.rmtree(corpus, ignore_errors=True)
    for path in place.glob("*.tokens"):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # not empty, or not there
        place.rmdir()


# -- where a corpus is ----------------------------------------------------------------------------------------------


def _stored(
    corpus: Corpus, blocks: Iterable[Examples], first: Examples, workplace: Workplace, before: Any
) -> StoredExamples:
    """The corpus in the working folder, put there if it is not there yet."""
    if first.texts is None or first.features is not None:
        raise CorpusError(
            f"{corpus.name}: the documents are over the memory limit, and only texts without features can be kept on "
            "disk; give more memory, or no limit"
        )
    known_by = _key(corpus)
    key = known_by or os.urandom(32)
    place = workplace.path / f"{key.hex()}{ENDING}"
    found = _opened(place, key, corpus.taxonomy, workplace)
    if found is None:
        _write(place, key, corpus, blocks)
        if _states(corpus) != before:
            shutil.rmtree(place, ignore_errors=True)
            raise CorpusError(f"{corpus.name}: the file has changed while it was read; read it again")
        found = _opened(place, key, corpus.taxonomy, workplace)
    if found is None:
        raise CorpusError(f"{place}: what was written there cannot be read again; give another working folder")
    if known_by is None:  # no one could find it again; what is mapped stays until it is not used any more
        shutil.rmtree(place, ignore_errors=True)
    examples, corpus.report = found
    return examples


def _given_away(parts: list[Examples]) -> Iterator[Examples]:
    """The parts in order, each forgotten when the next is asked for."""
    while parts:
        yield parts.pop(0)


def _sources(corpus: Corpus) -> list[Any]:
    """The files of a corpus; none where it is in memory, or can be read only once."""
    return [] if corpus.origin is None or corpus.once else [*getattr(corpus.origin.reader, "sources", ())]


def _states(corpus: Corpus) -> list[Any]:
    """What tells that a source has changed."""
    found = []
    for source in _sources(corpus):
        with suppress(OSError, ValueError):  # that it is not there is said when it is read
            state = os.stat(source)
            found.append((state.st_size, state.st_mtime_ns, state.st_ino))
    return found


def _key(corpus: Corpus) -> bytes | None:
    """A hash of everything that the documents depend on; None where that cannot be known before they are read."""
    sources = _sources(corpus)
    if not sources or corpus.origin is None:
        return None
    reader: Any = corpus.origin.reader
    options = [[field.name, repr(getattr(reader, field.name))] for field in fields(reader) if field.name != "sources"]
    labels = [corpus.taxonomy.fingerprint, *corpus.taxonomy.labels]  # the order of labels is that of the columns
    asked = [FORMAT, __version__, type(reader).__name__, options, corpus.origin.rules, labels, [*map(display, sources)]]
    digest = hashlib.blake2b(json.dumps(asked).encode("ascii"), digest_size=32)
    for source in sources:
        content = hashlib.blake2b()
        with open_bytes(source, CorpusError) as stream:
            while chunk := stream.read(_CHUNK):
                content.update(chunk)
        digest.update(content.digest())
    return digest.digest()


# -- writing --------------------------------------------------------------------------------------------------------


class _Files:
    """The files of a corpus while they are written."""

    def __init__(self, stack: ExitStack, place: Path) -> None:
        self._stack, self._place = stack, place
        self._streams: dict[str, IO[bytes]] = {}
        self._ends: dict[str, int] = {}
        self._labels = 0
        self._documents: list[NDArray[np.int32]] = [np.zeros(1, dtype=np.int32)]

    def add(self, block: Examples) -> None:
        """Write a block of documents."""
        for name, strings in (("texts", block.texts), ("ids", block.ids), ("groups", block.groups)):
            if strings is not None:
                self._add_strings(name, strings)
        self._labels += len(block.labels.indices)
        if self._labels >= 2**31:
            raise CorpusError("a corpus of more than 2,147,483,647 labels cannot be kept on disk; split it")
        self._write("labels.indices", block.labels.indices)
        self._write("labels.data", block.labels.data)
        self._documents.append(np.diff(block.labels.indptr).astype(np.int32))

    def finish(self) -> list[str]:
        """Write what is known at the end only, and see that all is on the disk; the names of the files."""
        self._write("labels.indptr", np.cumsum(np.concatenate(self._documents), dtype=np.int32))
        for stream in self._streams.values():
            _flush(stream)
        return sorted(self._streams)

    def _add_strings(self, name: str, strings: Iterable[str]) -> None:
        raw = [string.encode("utf-8", "surrogatepass") for string in strings]
        if name not in self._ends:
            self._ends[name] = 0
            self._write(f"{name}.starts", np.zeros(1))
        starts = self._ends[name] + np.cumsum([*map(len, raw)], dtype=np.int64)
        self._ends[name] = int(starts[-1])
        self._write(f"{name}.starts", starts)
        self._write(f"{name}.utf8", np.frombuffer(b"".join(raw), dtype=np.uint8))

    def _write(self, name: str, numbers: NDArray[Any]) -> None:
        dtype = _TYPES.get(Path(name).suffix, "<i4")
        if name not in self._streams:
            self._streams[name] = self._stack.enter_context(writing(self._place / name, "wb"))
        self._streams[name].write(numbers.astype(dtype, copy=False).tobytes())


def _write(place: Path, key: bytes, corpus: Corpus, blocks: Iterable[Examples]) -> None:
    """Write all files of a corpus, `about.json` last."""
    try:
        place.mkdir(exist_ok=True)
    except OSError as fault:
        raise CorpusError(f"{place}: cannot be made a folder ({fault.strerror}); give another working folder") from None
    try:
        with ExitStack() as stack:
            files = _Files(stack, place)
            for block in blocks:
                files.add(block)
            names = files.finish()
        report = {**corpus.report.to_json(), "dropped_labels": [*map(list, corpus.report.dropped_labels.items())]}
        about: dict[str, Any] = {"format": FORMAT, "files": names, "report": report}
        about["seal"] = _seal(about, key, {name: _mapped(place / name) for name in names})
        with writing(place / ABOUT, "wb") as stream:
            stream.write(json.dumps(about).encode("ascii"))
            _flush(stream)
    except BaseException:
        with suppress(OSError):  # not empty: an older corpus, or another process is writing the same
            place.rmdir()
        raise


def _flush(stream: IO[bytes]) -> None:
    stream.flush()
    os.fsync(stream.fileno())  # a name must not reach the disk before the content


def _seal(about: dict[str, Any], key: bytes, files: dict[str, NDArray[Any]]) -> str:
    """A hash of the whole content that no one can make who does not know the source."""
    told = {name: value for name, value in about.items() if name != "seal"}
    digest = hashlib.blake2b(json.dumps(told, sort_keys=True).encode("ascii"), key=key, digest_size=32)
    for name in sorted(files):
        content = files[name].view(np.uint8)
        digest.update(f"{name} {len(content)}\n".encode("ascii"))
        for start in range(0, len(content), _CHUNK):
            digest.update(content[start : start + _CHUNK].data)
    return digest.hexdigest()


# -- reading --------------------------------------------------------------------------------------------------------


def _opened(
    place: Path, key: bytes, taxonomy: Taxonomy, workplace: Workplace
) -> tuple[StoredExamples, ReadReport] | None:
    """The documents of a folder and how they were read; None where it is absent, damaged or of something else."""
    if not place.is_dir():
        return None
    try:
        about = json.loads(read_text(place / ABOUT, CorpusError))
        files = {name: _mapped(place / name) for name in about["files"] if _NAME.fullmatch(name)}
        if about["seal"] != _seal(about, key, files):
            return None
    except (CorpusError, OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    # From here on it is what was written by someone who knew the source.
    strings = {
        name: Strings(files[f"{name}.utf8"], files[f"{name}.starts"], workplace)
        for name in ("texts", "ids", "groups")
        if f"{name}.starts" in files
    }
    data, indices, indptr = (files[f"labels.{part}"] for part in ("data", "indices", "indptr"))
    labels = sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, len(taxonomy)))
    examples = StoredExamples(taxonomy, strings["ids"], labels, strings["texts"], None, strings.get("groups"))
    return examples, _report(about["report"])


def _report(told: dict[str, Any]) -> ReadReport:
    report = ReadReport(told["documents"], told["skipped"])
    report.skipped_lines += [SkippedLine(**line) for line in told["skipped_lines"]]
    report.dropped.update(dict(told["dropped_labels"]))
    report.without_labels, report.duplicate_ids = told["without_labels"], told["duplicate_ids"]
    return report


def _mapped(path: Path) -> NDArray[Any]:
    """The numbers of a file, of the type that they have: scipy would copy what is mapped as another."""
    dtype = _TYPES.get(path.suffix, "<i4")
    if not path.stat().st_size:  # nothing cannot be mapped
        return np.zeros(0, dtype=dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


def _taken(labels: Indicator, rows: NDArray[np.int64], workplace: Workplace) -> Indicator:
    """Rows of a matrix of labels, as a matrix that lies on disk."""
    indices, data = Pile(workplace, labels.indices.dtype), Pile(workplace, labels.data.dtype)
    for start in range(0, len(rows), FEWEST_DOCUMENTS):
        part = labels[rows[start : start + FEWEST_DOCUMENTS]]
        indices.add(part.indices)
        data.add(part.data)
    lengths = labels.indptr[rows + 1] - labels.indptr[rows]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(labels.indptr.dtype)
    return sparse.csr_array((data.mapped(), indices.mapped(), indptr), shape=(len(rows), labels.shape[1]))


def _arrays(matrix: Any) -> list[NDArray[Any]]:
    return [matrix.data, matrix.indices, matrix.indptr] if sparse.issparse(matrix) else [matrix]


__all__ = ["StoredExamples", "bytes_of", "clear", "in_memory", "load"]
