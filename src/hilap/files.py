"""Reading and writing files, hostile until read: compressed or not, any size, one clear error with file and line.

Nothing here knows what a line means. Readers of taxonomies and corpora say which error they want to raise.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from hilap.errors import HilapError, need

STDIN = "-"
MOST_LINE_BYTES = 8_000_000  # a longer line is a broken file far more often than a document

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class _ZstReader(io.RawIOBase):
    """Frames of zstandard one after the other; unlike the package's own reader it notices a file that was cut off."""

    _CHUNK = 2048  # bytes may swell 30,000-fold: taken in small bites, a bomb cannot fill the memory

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._decompressor = need("zstandard", "formats").ZstdDecompressor()
        self._frame: Any = None
        self._unused = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and self._fill():
            pass
        taken = self._ready[: len(buffer)]
        buffer[: len(taken)] = taken
        self._ready = self._ready[len(taken) :]
        return len(taken)

    def _fill(self) -> bool:
        data = self._unused or self._raw.read(self._CHUNK)
        if not data:
            if self._frame is not None:
                raise EOFError
            return False
        if self._frame is None:
            self._frame = self._decompressor.decompressobj()
        self._ready, self._unused = memoryview(self._frame.decompress(data)), b""
        if self._frame.eof:
            self._unused, self._frame = self._frame.unused_data, None
        return True


_MAGIC: tuple[tuple[bytes, Callable[[Any], Any]], ...] = (
    (b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw)),
    (b"\x28\xb5\x2f\xfd", _ZstReader),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)


def display(source: str | Path) -> str:
    """How a file is called in messages: as the user gave it."""
    return "standard input" if str(source) == STDIN else str(source)


@contextmanager
def open_bytes(source: str | Path, error: type[HilapError]) -> Iterator[IO[bytes]]:
    """Open a file or standard input (`-`) for reading; what is compressed is recognised by its first bytes."""
    with _reported(source, error):
        if str(source) == STDIN:
            yield _decompressed(sys.stdin.buffer)
        else:
            with _opened(source, error) as raw:
                yield _decompressed(raw)


def _opened(source: str | Path, error: type[HilapError]) -> IO[bytes]:
    try:
        return open(source, "rb")
    except ValueError:  # a zero byte in the name
        raise error(f"{display(source)!r}: this cannot be the name of a file; check the path") from None


def read_lines(
    source: str | Path,
    error: type[HilapError],
    *,
    most_bytes: int = MOST_LINE_BYTES,
    on_bad: Callable[[int, HilapError], None] | None = None,
) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers from 1, without line ends. Only a line feed ends a line.

    A line that is too long or not UTF-8 is an error; with `on_bad` it is handed over, and the next line follows. A
    damaged compressed file is an error always, for what follows the damage cannot be known.
    """
    with open_bytes(source, error) as stream:
        number = 0
        while raw := stream.readline(most_bytes + 1):
            number += 1
            if number == 1:
                raw = _without_bom(raw, source, error)
            try:
                line = _decoded(_checked_length(raw, source, number, error, most_bytes), source, number, error)
            except HilapError as fault:
                if on_bad is None:
                    raise
                on_bad(number, fault)
                while raw and not raw.endswith(b"\n"):  # the rest of a line that is too long
                    raw = stream.readline(most_bytes)
            else:
                yield number, line.rstrip("\r\n")


def read_text(source: str | Path, error: type[HilapError], *, most_bytes: int = 1_000_000_000) -> str:
    """A whole text file at once, for formats that are one document (JSON, YAML, XML)."""
    with open_bytes(source, error) as stream:
        raw = stream.read(most_bytes + 1)
    if len(raw) > most_bytes:
        raise error(f"{display(source)}: the file is larger than {most_bytes:,} bytes; split it")
    raw = _without_bom(raw, source, error)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as fault:
        number = raw.count(b"\n", 0, fault.start) + 1
        raise _not_utf8(source, number, fault, error) from None


@contextmanager
def writing(target: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Write a file whole or not at all: it appears under its name only when everything is written.

    `.gz` and `.zst` names are compressed. An error inside leaves no file behind and an older file untouched.
    """
    path = Path(target)
    with _written(path):
        if path.is_dir():
            raise HilapError(f"{path}: this is a folder; give the name of a file in it")
        place = Path(os.path.realpath(path))  # through a link, so that the link stays
        draft = _draft_of(place)
    try:
        with open(draft, "wb") as raw, _stream(raw, path, mode) as stream:
            yield stream
        with _written(path):
            if draft != place:
                umask = os.umask(0)
                os.umask(umask)
                os.chmod(draft, 0o666 & ~umask)
                os.replace(draft, place)
    except BaseException as fault:
        if draft != place:
            draft.unlink(missing_ok=True)
        _report_unwritten(fault, path)
        raise


def _draft_of(place: Path) -> Path:
    """A new file beside the wanted one; a pipe or a device is written to itself, never replaced."""
    if place.exists() and not place.is_file():
        return place
    handle, draft = tempfile.mkstemp(prefix=f".{place.name[:100]}.", suffix=".part", dir=place.parent)
    os.close(handle)
    return Path(draft)


@contextmanager
def _stream(raw: IO[bytes], path: Path, mode: str) -> Iterator[IO[Any]]:
    with _compressed(raw, path.suffix) as stream:
        if "b" in mode:
            yield stream
        else:
            with io.TextIOWrapper(stream, encoding="utf-8", newline="\n") as text:
                yield text


@contextmanager
def _written(path: Path) -> Iterator[None]:
    """What the system says about writing, as our own error."""
    try:
        yield
    except OSError as fault:
        raise HilapError(f"{path}: cannot be written ({fault.strerror or fault}); does the folder exist?") from None
    except ValueError:  # a zero byte in the name
        raise HilapError(f"{str(path)!r}: this cannot be the name of a file; check the path") from None


def _report_unwritten(fault: BaseException, path: Path) -> None:
    """Our own error for what can only have come from writing; other faults are the writer's, who knows them better."""
    if isinstance(fault, UnicodeEncodeError):
        letter = ascii(fault.object[fault.start])
        raise HilapError(f"{path}: cannot be written, as {letter} is no character that UTF-8 can hold") from None
    if isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        raise HilapError(f"{path}: cannot be written ({fault.strerror}); nothing was left behind") from None


def _decompressed(raw: Any) -> IO[bytes]:
    buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)
    head = buffered.peek(6)[:6]
    for magic, opener in _MAGIC:
        if head.startswith(magic):
            return io.BufferedReader(opener(buffered), 1 << 18)
    return buffered


@contextmanager
def _compressed(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix == ".gz":
        with gzip.GzipFile(
            fileobj=raw, mode="wb", filename="", mtime=0, compresslevel=6
        ) as stream:  # same content, same bytes
            yield cast("IO[bytes]", stream)
    elif suffix == ".zst":
        with need("zstandard", "formats").ZstdCompressor().stream_writer(raw, closefd=False) as stream:
            yield stream
    else:
        yield raw


@contextmanager
def _reported(source: str | Path, error: type[HilapError]) -> Iterator[None]:
    """What the system says about a file, as our own error."""
    name = display(source)
    try:
        yield
    except HilapError:
        raise
    except FileNotFoundError:
        raise error(f"{name}: there is no such file; check the path") from None
    except IsADirectoryError:
        raise error(f"{name}: this is a folder; a file is needed") from None
    except EOFError:
        raise error(f"{name}: the compressed file ends too early; it is truncated, get it again") from None
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as fault:
        raise error(f"{name}: the compressed file is damaged ({fault}); get it again") from None
    except OSError as fault:
        if fault.errno is None:  # bz2 says it so
            raise error(f"{name}: the compressed file is damaged ({fault}); get it again") from None
        raise error(f"{name}: cannot be read ({fault.strerror or fault})") from None
    except Exception as fault:
        if type(fault).__name__ == "ZstdError":
            raise error(f"{name}: the compressed file is damaged ({fault}); get it again") from None
        raise


def _checked_length(raw: bytes, source: str | Path, number: int, error: type[HilapError], most_bytes: int) -> bytes:
    if len(raw) > most_bytes:
        raise error(
            f"{display(source)}:{number}: the line is longer than {most_bytes:,} bytes; "
            "is this the right file? split such documents, or cut them"
        )
    return raw


def _without_bom(raw: bytes, source: str | Path, error: type[HilapError]) -> bytes:
    if raw.startswith(_UTF16):
        raise error(f"{display(source)}: the file is in UTF-16; save it as UTF-8")
    return raw.removeprefix(_BOM)


def _decoded(raw: bytes, source: str | Path, number: int, error: type[HilapError]) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise _not_utf8(source, number, fault, error) from None


def _not_utf8(source: str | Path, number: int, fault: UnicodeDecodeError, error: type[HilapError]) -> HilapError:
    byte = fault.object[fault.start]
    return error(f"{display(source)}:{number}: not valid UTF-8 (byte 0x{byte:02x}); save the file as UTF-8")
