"""Articles of the New York Times Annotated Corpus (LDC2008T19) as NITF XML, in a folder tree or its month archives.

The files are read with a parser that fetches nothing and expands nothing: a DOCTYPE that points to the NITF DTD is
passed over, an entity declaration is refused.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast
from xml.parsers import expat

from hilap.errors import CorpusError
from hilap.files import open_bytes

ARCHIVES = (".tgz", ".tar.gz", ".tar")
MOST_ARTICLE_BYTES = 8_000_000


@dataclass(slots=True)
class Article:
    """What we take from one article."""

    id: str | None = None
    categories: list[str] = field(default_factory=list)  # as written: Top/News/Sports
    headline: str = ""
    paragraphs: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Headline and paragraphs, one a line."""
        return "\n".join(piece for piece in (self.headline, *self.paragraphs) if piece)


def articles(folder: Path, only: Collection[str] | None = None) -> Iterator[tuple[str, bytes]]:
    """(where, XML) of every article of a folder, by path; `only` names the ones to read, all others are passed over."""
    for path in _sorted_files(folder):
        name = str(path)
        if path.name.endswith(ARCHIVES):
            if only is None or any(where.startswith(f"{name}!") for where in only):
                yield from _archived(path, only)
        elif path.name.endswith((".xml", ".xml.gz")) and (only is None or name in only):
            with open_bytes(path, CorpusError) as stream:
                yield name, _read(stream, name)


def parse(raw: bytes, where: str) -> Article | None:
    """The article in an XML file, or None where the file is XML of another kind."""
    reader = _Reader(where)
    parser = reader.parser
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as fault:
        raise CorpusError(f"{where}:{fault.lineno}: not well-formed XML ({expat.ErrorString(fault.code)})") from None
    except (LookupError, ValueError) as fault:
        if isinstance(fault, CorpusError):
            raise
        raise CorpusError(f"{where}:1: the encoding of this XML file cannot be read ({fault})") from None
    return reader.article if reader.is_nitf else None


class _Reader:
    """Follows the tags of one file and keeps what an article needs."""

    def __init__(self, where: str) -> None:
        self.article = Article()
        self.is_nitf = False
        self._where = where
        self._open: list[str] = []
        self._in_full_text = 0  # depth of the block, 0 outside
        self._text: list[str] | None = None
        self._title = ""
        self.parser: Any = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity
        self.parser.SkippedEntityHandler = self._skipped

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._open.append(tag)
        if len(self._open) == 1:
            self.is_nitf = tag == "nitf"
        elif tag == "doc-id":
            self.article.id = attributes.get("id-string") or None
        elif tag == "block" and attributes.get("class") == "full_text" and not self._in_full_text:
            self._in_full_text = len(self._open)
        elif self._wanted(tag, attributes):
            self._text = []

    def _wanted(self, tag: str, attributes: dict[str, str]) -> bool:
        if tag == "classifier":
            kind = attributes.get("type"), attributes.get("class")
            return kind == ("taxonomic_classifier", "online_producer")
        return tag in ("hl1", "title") or (tag == "p" and bool(self._in_full_text))

    def _end(self, tag: str) -> None:
        if self._text is not None and tag in ("classifier", "hl1", "title", "p"):
            text = " ".join("".join(self._text).split())
            self._text = None
            self._keep(tag, text)
        if len(self._open) == self._in_full_text:
            self._in_full_text = 0
        self._open.pop()
        if not self._open and not self.article.headline:
            self.article.headline = self._title

    def _keep(self, tag: str, text: str) -> None:
        if tag == "classifier":
            self.article.categories.append(text)
        elif tag == "hl1":
            self.article.headline = self.article.headline or text
        elif tag == "title":
            self._title = self._title or text
        elif text:
            self.article.paragraphs.append(text)

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _skipped(self, *_: Any) -> None:
        self._characters(" ")  # a named character of the DTD that we do not read

    def _entity(self, name: str, *_: Any) -> None:
        line = self.parser.CurrentLineNumber
        raise CorpusError(
            f"{self._where}:{line}: the file declares the entity {name!r}; articles have none, and none is expanded"
        )


def _sorted_files(folder: Path) -> Iterator[Path]:
    def refuse(fault: OSError) -> None:
        raise CorpusError(f"{fault.filename}: cannot be read ({fault.strerror})")

    for root, folders, files in os.walk(folder, onerror=refuse):
        folders.sort()
        for name in sorted(files):
            yield Path(root) / name


def _archived(path: Path, only: Collection[str] | None) -> Iterator[tuple[str, bytes]]:
    """The articles in an archive, read in place: nothing is unpacked to disk."""
    try:
        with open_bytes(path, CorpusError) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                where = f"{path}!{member.name}"
                if member.isfile() and member.name.endswith(".xml") and (only is None or where in only):
                    yield where, _read(cast("IO[bytes]", archive.extractfile(member)), where)
    except (tarfile.TarError, ValueError, OverflowError) as fault:
        if isinstance(fault, CorpusError):
            raise
        raise CorpusError(f"{path}: the archive is damaged ({fault}); get it again") from None


def _read(stream: IO[bytes], where: str) -> bytes:
    raw = stream.read(MOST_ARTICLE_BYTES + 1)
    if len(raw) > MOST_ARTICLE_BYTES:
        raise CorpusError(f"{where}: the article is larger than {MOST_ARTICLE_BYTES:,} bytes; is this an article?")
    return raw
