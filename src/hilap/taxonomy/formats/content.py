"""A taxonomy file before anyone knows what it means: its name, its first part, its lines, its whole text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hilap.errors import TaxonomyError
from hilap.files import STDIN, display, open_bytes, read_lines, read_text

MOST_HEAD_BYTES = 262_144

_COMMENT = re.compile(r"#(?:\s|#|!|$)")


class Content:
    """A taxonomy file that can be looked at more than once; standard input is kept, since it comes only once."""

    def __init__(self, source: str | Path) -> None:
        self.source = source
        self.name = display(source)
        self._text: str | None = None

    def text(self) -> str:
        """The whole file."""
        if self._text is None:
            self._text = read_text(self.source, TaxonomyError)
        return self._text

    def lines(self) -> Iterator[tuple[int, str]]:
        """The lines with their numbers from 1, without line ends."""
        if self._text is None and str(self.source) != STDIN:
            return read_lines(self.source, TaxonomyError)
        return ((number, line.rstrip("\r")) for number, line in enumerate(self.text().split("\n"), 1))

    def significant_lines(self) -> Iterator[tuple[int, str]]:
        """The lines without those that are blank or a comment: `#` alone or before a blank, `##`, `#!`."""
        return ((number, line) for number, line in self.lines() if line.strip() and not is_comment(line))

    def head(self) -> tuple[str, bool]:
        """The first part of the file, enough to recognise its format, and whether that is all of it."""
        if str(self.source) == STDIN:
            self.text()
        if self._text is not None:
            return self._text[:MOST_HEAD_BYTES], len(self._text) <= MOST_HEAD_BYTES
        with open_bytes(self.source, TaxonomyError) as stream:
            raw = stream.read(MOST_HEAD_BYTES + 1)
        if len(raw) <= MOST_HEAD_BYTES:
            return self.text(), True
        # What is not UTF-8 here, the reader will report with its line.
        return raw[:MOST_HEAD_BYTES].decode("utf-8", errors="replace").removeprefix("\ufeff"), False

    def where(self, line: int) -> str:
        """`file:line`, or just the file where there is no line."""
        return f"{self.name}:{line}" if line else self.name

    def error(self, line: int, message: str) -> TaxonomyError:
        """An error about a line of this file."""
        return TaxonomyError(f"{self.where(line)}: {message}")


def is_comment(line: str) -> bool:
    """Whether a line is a comment. `#jazz` is none: taxonomies of hashtags exist.

    Examples
    --------
    >>> is_comment("# Google_Product_Taxonomy_Version: 2021-09-21"), is_comment("#jazz")
    (True, False)
    """
    return _COMMENT.match(line) is not None


def shown(text: str, most: int = 80) -> str:
    """A piece of a file as it stands in a message: quoted, control characters visible, never a whole page."""
    return repr(text if len(text) <= most else text[: most - 3] + "...")
