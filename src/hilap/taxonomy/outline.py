"""What a picture of a taxonomy shows: which labels, below which of their parents, and what is cut."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from hilap.errors import require
from hilap.taxonomy.graph import Taxonomy

MOST_LEVELS = 60  # nobody can read a deeper picture; what is cut says so, like every cut
ROOT = -1


@dataclass(slots=True)
class Outline:
    """The labels below the start, each hung below one of its parents: its home."""

    taxonomy: Taxonomy
    start: int  # a label, or ROOT
    max_depth: int
    max_children: int | None
    counts: Mapping[str, int]
    highlight: frozenset[int]
    home: dict[int, int]  # label -> the parent below which it is drawn in full
    below: dict[int, int]  # label -> how many labels are drawn below it, all levels, if nothing is cut

    @classmethod
    def of(
        cls,
        taxonomy: Taxonomy,
        label: str | None,
        max_depth: int | None,
        max_children: int | None,
        counts: Mapping[str, int] | None,
        highlight: Collection[str],
        *,
        nearest: Callable[[Iterable[int]], int],
    ) -> Outline:
        """Check the options and give every label its home: nearest to the start (min) or farthest from it (max)."""
        require(max_depth is None or max_depth >= 1, "max_depth", "at least 1", max_depth)
        require(max_children is None or max_children >= 1, "max_children", "at least 1", max_children)
        require(not isinstance(highlight, str), "highlight", "a collection of labels", highlight)
        start = ROOT if label is None else taxonomy.index(label)
        for word in counts or ():
            taxonomy.index(word)
        marked = frozenset(taxonomy.index(word) for word in highlight)
        home = _homes(taxonomy, start, nearest)
        deepest = min(max_depth or MOST_LEVELS, MOST_LEVELS)
        return cls(taxonomy, start, deepest, max_children, counts or {}, marked, home, _sizes(home, start))

    def children(self, at: int) -> list[int]:
        """All children of a label or of the root, whatever their home."""
        matrix = self.taxonomy.child_matrix
        if at == ROOT:
            return [child for child, above in self.home.items() if above == ROOT]
        return [int(i) for i in matrix.indices[matrix.indptr[at] : matrix.indptr[at + 1]]]

    def cut(self, children: list[int]) -> tuple[list[int], list[int]]:
        """The children to show, and those to hide."""
        if self.max_children is None or len(children) <= self.max_children:
            return children, []
        return children[: self.max_children], children[self.max_children :]

    def more(self, at: int, hidden: list[int]) -> str:
        """How many children are left out, and how many labels with them, none counted twice."""
        labels = sum(1 + self.below[child] for child in hidden if self.home[child] == at)
        return f"{len(hidden):,} more" + (f" ({labels:,} with all below)" if labels > len(hidden) else "")

    def name(self, at: int) -> str:
        """What stands at a label: its name, fit to be seen."""
        if at == ROOT:
            return f"{len(self.taxonomy):,} label" + ("" if len(self.taxonomy) == 1 else "s")
        return clean(self.taxonomy.names[at]) or clean(self.taxonomy.labels[at]) or "(no name)"

    def count(self, at: int) -> str:
        """The figure behind a label, if one was given."""
        given = None if at == ROOT else self.counts.get(self.taxonomy.labels[at])
        return "" if given is None else f"{given:,}"

    def cut_below(self, at: int, depth: int) -> str:
        """What a label at the last level says about the levels that are not drawn."""
        return f"… {self.below[at]:,} below" if depth >= self.max_depth and self.below[at] else ""


def _homes(taxonomy: Taxonomy, start: int, nearest: Callable[[Iterable[int]], int]) -> dict[int, int]:
    """For each label below the start the parent with the shortest (min) or longest (max) way from there."""
    starts, parents = taxonomy.parent_matrix.indptr.tolist(), taxonomy.parent_matrix.indices.tolist()
    depth = {start: 0}
    home: dict[int, int] = {}
    for i in taxonomy.order.tolist():
        above = parents[starts[i] : starts[i + 1]] or [ROOT]
        within = [p for p in above if p in depth]
        if within and i != start:
            depth[i] = 1 + nearest(depth[p] for p in within)
            home[i] = next(p for p in within if depth[p] + 1 == depth[i])
    return home


def _sizes(home: Mapping[int, int], start: int) -> dict[int, int]:
    below = dict.fromkeys((start, *home), 0)
    for label in reversed(home):  # children before their parents
        below[home[label]] += 1 + below[label]
    return below


def clean(text: str, most: int = 200) -> str:
    """A name without anything that is not meant to be seen: controls, lone surrogates, turned writing directions."""
    words = " ".join(text[: 4 * most].split())
    seen = "".join("\ufffd" if _is_unseemly(letter) else letter for letter in words)
    return seen if len(seen) <= most else seen[: most - 1] + "…"


def _is_unseemly(letter: str) -> bool:
    turns = "\u202a" <= letter <= "\u202e" or "\u2066" <= letter <= "\u2069"
    return turns or letter in "\ufffe\uffff" or unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")


__all__ = ["MOST_LEVELS", "ROOT", "Outline", "clean"]
