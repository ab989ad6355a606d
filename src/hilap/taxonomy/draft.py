"""What a file says about a taxonomy, before anyone has checked it: entries with the lines they stand on.

Readers make a draft, `lint` judges it, `Draft.build` turns it into a `Taxonomy`. So every complaint can name its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hilap.errors import TaxonomyError
from hilap.taxonomy.graph import Taxonomy


@dataclass(frozen=True, slots=True)
class Entry:
    """One label as a file gives it."""

    label: str
    name: str
    parents: tuple[str, ...]
    line: int  # 0 where the format has no lines
    definition: str = ""


@dataclass(slots=True)
class Draft:
    """The labels of a file, unchecked."""

    source: str
    format: str
    entries: list[Entry] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)  # another id of a label -> its id
    remarks: list[tuple[int, str]] = field(default_factory=list)  # what the reader left out or had to assume, with line

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def where(self, line: int) -> str:
        """`file:line`, or just the file where there is no line."""
        return f"{self.source}:{line}" if line else self.source

    def build(self) -> Taxonomy:
        """The taxonomy, if the draft has no errors; else the first error, with a count of the others."""
        from hilap.taxonomy.lint import errors_of

        found = errors_of(self)
        if found:
            more = f" (and {len(found) - 1} more; see: hilap taxonomy check)" if len(found) > 1 else ""
            raise TaxonomyError(f"{found[0].where}: {found[0].message}{more}")
        entries = self.entries
        labels, names = [entry.label for entry in entries], [entry.name for entry in entries]
        definitions = [entry.definition for entry in entries]
        return Taxonomy(labels, [entry.parents for entry in entries], names, self.aliases, definitions)
