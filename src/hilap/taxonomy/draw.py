"""Pictures of a taxonomy: a tree for the terminal and a standalone SVG.

Names are a stranger's text: nothing in them may steer the terminal, break the XML or run as markup.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from hilap.taxonomy.graph import Taxonomy
from hilap.taxonomy.layout import TITLE_HEIGHT, Layout
from hilap.taxonomy.outline import Outline

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

_AGAIN = "↗"  # drawn in full elsewhere


def tree(
    taxonomy: Taxonomy,
    *,
    label: str | None = None,
    max_depth: int | None = None,
    max_children: int | None = None,
    counts: Mapping[str, int] | None = None,
    highlight: Collection[str] = (),
) -> Tree:
    """A picture for the terminal: print it with rich.

    A label with several parents is drawn in full once, nearest to the root, and marked `↗` below its other parents.

    Parameters
    ----------
    taxonomy
        What to draw.
    label
        Start here; the whole taxonomy where no label is given.
    max_depth
        Draw this many levels below the start (at most 60 are drawn); what is cut says how many labels it has below.
    max_children
        Draw this many children of a label; a last line says how many more there are.
    counts
        A figure to print behind each label, such as its number of documents.
    highlight
        Labels to print in bold.

    Examples
    --------
    >>> from rich import print
    >>> print(tree(Taxonomy.of({"Food": [], "Bars": ["Food"], "Beer Bars": ["Bars"]}), max_depth=2))
    3 labels
    └── Food
        └── Bars … 1 below
    """
    from rich.tree import Tree  # slow to import, and only pictures need it

    outline = Outline.of(taxonomy, label, max_depth, max_children, counts, highlight, nearest=min)
    picture = Tree(_styled(outline, outline.start, 0), guide_style="dim")
    stack = [(outline.start, picture, 0)]
    while stack:
        at, branch, depth = stack.pop()
        if depth >= outline.max_depth:
            continue
        shown, hidden = outline.cut(outline.children(at))
        for child in shown:
            twig = branch.add(_styled(outline, child, depth + 1, again=outline.home[child] != at))
            if outline.home[child] == at:
                stack.append((child, twig, depth + 1))
        if hidden:
            branch.add(_muted(f"… {outline.more(at, hidden)}"))
    return picture


def svg(
    taxonomy: Taxonomy,
    *,
    label: str | None = None,
    max_depth: int | None = None,
    max_children: int | None = None,
    counts: Mapping[str, int] | None = None,
    highlight: Collection[str] = (),
    title: str = "",
) -> str:
    """A standalone SVG, left to right, one column a level; ids and definitions are tooltips. Equal input, equal bytes.

    A label stands in the column of its longest way from the start; edges from its other parents are dashed. The
    options are those of `tree`, with a title to print above.
    """
    outline = Outline.of(taxonomy, label, max_depth, max_children, counts, highlight, nearest=max)
    return Layout.of(outline, top=TITLE_HEIGHT if title else 0).to_svg(outline, title)


def _styled(outline: Outline, at: int, depth: int, *, again: bool = False) -> Text:
    from rich.text import Text

    line = Text(outline.name(at), style="bold" if at in outline.highlight else "dim" if again else "", overflow="fold")
    for further, style in (
        (outline.count(at), "cyan"),
        (_AGAIN if again else "", "dim"),
        ("" if again else outline.cut_below(at, depth), "dim"),
    ):
        if further:
            line.append(" ").append(further, style)
    return line


def _muted(words: str) -> Text:
    from rich.text import Text

    return Text(words, style="dim")


__all__ = ["svg", "tree"]
