"""What lies on disk and is used like what lies in memory: strings, and numbers piled up block by block.

Pages of a mapped file are the system's to drop whenever memory is short, so none of this counts against a limit.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, overload

import numpy as np
from numpy.typing import NDArray

from hilap.errors import HilapError, SettingError

_BLOCK = 4_096  # strings decoded at a time when all are asked for


class Workplace:
    """A folder for what is kept on disk meanwhile.

    Parameters
    ----------
    folder
        Made if it does not exist, and left when the work is done. None makes a folder in the system's place for
        temporary files, which goes when nothing uses it any more.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._found = False
        try:
            if folder is None:
                self.path = Path(tempfile.mkdtemp(prefix="hilap-"))
                weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
            else:
                self.path = Path(folder)
                self._found = self.path.is_dir()
                self.path.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as fault:  # a file is there; no room; a zero byte in the name
            reason = getattr(fault, "strerror", None) or fault
            raise SettingError(
                f"the working folder: {str(folder)!r} cannot be used as a folder ({reason}); give another"
            ) from None

    def leave(self) -> None:
        """Undo the making of the folder, if it was made here and nothing is in it."""
        if not self._found:
            with suppress(OSError):
                self.path.rmdir()

    def file(self) -> IO[bytes]:
        """A file without a name, which goes when it is closed."""
        try:
            return tempfile.TemporaryFile(dir=self.path)
        except OSError as fault:
            raise HilapError(f"{self.path}: nothing can be written there ({fault.strerror})") from None


class Pile:
    """Numbers of one type, added block by block to a file without a name; when all are there, they are mapped.

    Examples
    --------
    >>> pile = Pile(Workplace(), np.int32)
    >>> for block in ([1, 2], [], [3]):
    ...     pile.add(np.array(block))
    >>> pile.mapped()
    array([1, 2, 3], dtype=int32)
    """

    def __init__(self, workplace: Workplace, dtype: Any) -> None:
        self._dtype = np.dtype(dtype)
        self._file = workplace.file()
        self._where = workplace

    def add(self, numbers: NDArray[Any]) -> None:
        """Put these after those that are there."""
        try:
            self._file.write(np.ascontiguousarray(numbers, dtype=self._dtype).reshape(-1).data)
        except OSError as fault:
            raise HilapError(f"{self._where.path}: cannot be written to ({fault.strerror}); make room there") from None

    def mapped(self) -> NDArray[Any]:
        """All numbers. Nothing may be added any more."""
        try:
            self._file.flush()
            length = self._file.tell() // self._dtype.itemsize
            if not length:
                return np.zeros(0, dtype=self._dtype)
            return np.asarray(np.memmap(self._file, dtype=self._dtype, mode="r+", shape=(length,)))
        except OSError as fault:
            raise HilapError(f"{self._where.path}: cannot be written to ({fault.strerror}); make room there") from None
        finally:
            self._file.close()  # what is mapped stays until it is not used any more


class Strings(Sequence[str]):
    """Strings in a mapped file, decoded when they are asked for.

    Parameters
    ----------
    data
        (M,) all strings in UTF-8, one after the other.
    starts
        (n + 1,) where each starts, and the end.
    workplace
        Where the file is, and where what is made of the strings may be kept.
    rows
        Which of them, in which order; None for all.
    """

    def __init__(
        self,
        data: NDArray[np.uint8],
        starts: NDArray[np.int64],
        workplace: Workplace,
        rows: NDArray[Any] | None = None,
    ) -> None:
        self.workplace = workplace
        self._data = data
        self._bytes = data.data
        self._starts = starts
        self._rows = rows

    def __len__(self) -> int:
        return len(self._starts) - 1 if self._rows is None else len(self._rows)

    @overload
    def __getitem__(self, i: int) -> str: ...

    @overload
    def __getitem__(self, i: slice) -> Strings: ...

    def __getitem__(self, i: int | slice) -> str | Strings:
        if isinstance(i, slice):
            chosen = range(len(self))[i]
            return self.take(np.arange(chosen.start, chosen.stop, chosen.step))
        row = range(len(self))[i]  # negative numbers and IndexError as everywhere in Python
        return self._decoded(self._places(slice(row, row + 1)))[0]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _BLOCK):
            yield from self._decoded(self._places(slice(start, min(start + _BLOCK, len(self)))))

    def take(self, rows: NDArray[Any]) -> Strings:
        """These strings, in this order, not read yet."""
        chosen = positions(rows, len(self))
        small = np.int32 if len(self._starts) < 2**31 else np.int64
        places = chosen if self._rows is None else self._rows[chosen]
        return Strings(self._data, self._starts, self.workplace, places.astype(small, copy=False))

    def _places(self, which: slice) -> NDArray[Any]:
        return np.arange(which.start, which.stop) if self._rows is None else self._rows[which]

    def _decoded(self, places: NDArray[Any]) -> list[str]:
        first, last = self._starts[places].tolist(), self._starts[places + 1].tolist()
        data = self._bytes
        return [str(data[a:b], "utf-8", "surrogatepass") for a, b in zip(first, last, strict=True)]

    def __repr__(self) -> str:
        return f"<Strings: {len(self):,} on disk>"


def positions(rows: Any, n: int) -> NDArray[np.int64]:
    """Rows of n as numbers from 0; negative ones count from the end, what is beyond is an IndexError as in numpy.

    Examples
    --------
    >>> positions([1, -1], 3)
    array([1, 2])
    """
    chosen = np.asarray(rows, dtype=np.int64)
    if len(chosen) and (chosen.min() < -n or chosen.max() >= n):
        raise IndexError(f"row {chosen.max() if chosen.max() >= n else chosen.min()} of {n} rows")
    return np.where(chosen < 0, chosen + n, chosen)


__all__ = ["Pile", "Strings", "Workplace", "positions"]
