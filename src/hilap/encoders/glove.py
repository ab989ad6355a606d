"""Word vectors that others have trained, from GloVe's own text format."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hilap.errors import CorpusError, SettingError
from hilap.files import display, read_lines

_MOST_LINE_BYTES = 1_000_000


def read_vectors(
    source: str | Path, words: Sequence[str], dimensions: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The vectors of some words: which of the words have one, in their order, and (n, D) the vectors.

    A line is a word and its numbers, parted by single blanks; the file may be compressed. Lines of other words are
    passed over; of a word that comes twice, the first counts. A first line with two whole numbers, as word2vec writes
    it, is passed over too.

    Parameters
    ----------
    source
        The file.
    words
        The words that are wanted.
    dimensions
        D, how many numbers a vector must have.
    """
    try:
        now = Path(source).stat()
    except OSError:  # reading it says what is wrong
        return _read(source, words, dimensions)
    places, vectors = _last_read(str(source), (now.st_mtime_ns, now.st_size), tuple(words), dimensions)
    return places.copy(), vectors.copy()


@lru_cache(maxsize=1)
def _last_read(
    source: str, _stamp: tuple[int, int], words: tuple[str, ...], dimensions: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """What was read last is kept: the members of a cross-fitted model start from the same vectors, each in its turn."""
    return _read(source, words, dimensions)


def _read(source: str | Path, words: Sequence[str], dimensions: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    wanted = {word: place for place, word in enumerate(words)}
    found: dict[int, NDArray[np.float32]] = {}
    for number, line in read_lines(source, CorpusError, most_bytes=_MOST_LINE_BYTES):
        if number == 1:
            if _is_header(line):
                continue
            _check_width(line, dimensions, source)
        place = wanted.get(line.partition(" ")[0])
        if place is not None and place not in found:
            vector = _vector(line, dimensions, f"{display(source)}:{number}")
            if vector is not None:
                found[place] = vector
    if not found:
        raise CorpusError(
            f"{display(source)}: none of the {len(words):,} words of the training texts has a vector in this file; "
            "is it in GloVe's text format, a word and its numbers on each line, and of the same language?"
        )
    places = np.array(sorted(found), dtype=np.int64)
    return places, np.stack([found[place] for place in places.tolist()])


def _is_header(line: str) -> bool:
    parts = line.split(" ")
    return len(parts) == 2 and all(part.isascii() and part.isdigit() for part in parts)


def _check_width(line: str, dimensions: int, source: str | Path) -> None:
    """Require blanks and the right width on the first line, where both can still be told from a broken line."""
    if "\t" in line:
        raise CorpusError(
            f"{display(source)}: its columns are parted by tabs, but in GloVe's text format by single blanks; put "
            "blanks in their place, such as with: tr '\\t' ' '"
        )
    given = line.rstrip(" ").count(" ")
    if given != dimensions and _numbers(line.split(" ")[1:]) is not None:
        raise SettingError(
            f"dimensions must be the width of the vectors: {display(source)} has {given} numbers a word, got "
            f"{dimensions}"
        )


def _vector(line: str, dimensions: int, where: str) -> NDArray[np.float32] | None:
    """The numbers of a line; None where its word is several words, as GloVe's largest file has some."""
    parts = line.rstrip(" ").split(" ")
    if len(parts) > dimensions + 1 and _numbers(parts[1:2]) is None:
        return None
    if len(parts) != dimensions + 1:
        raise CorpusError(
            f"{where}: the vector of {parts[0]!r} has {len(parts) - 1} numbers, needed are {dimensions}; "
            "the file is damaged or not in GloVe's text format, get it again"
        )
    values = _numbers(parts[1:])
    if values is None or not np.isfinite(values).all():
        raise CorpusError(
            f"{where}: the vector of {parts[0]!r} holds something that is no number, or an infinite one; "
            "the file is damaged, get it again"
        )
    return values


def _numbers(parts: Sequence[str]) -> NDArray[np.float32] | None:
    try:
        with np.errstate(over="ignore"):
            return np.array(list(map(float, parts)), dtype=np.float32)
    except ValueError:
        return None
