"""The SVG of a taxonomy: where everything stands, and the XML that says so."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.sax.saxutils import escape  # writes only; nothing is parsed here

from hilap.taxonomy.graph import Taxonomy
from hilap.taxonomy.outline import ROOT, Outline, clean

_FONT = 13.0
_ROW = 22.0
_GAP = 44.0  # between the longest text of a column and the next column: room for the curves
_MARGIN = 16.0
TITLE_HEIGHT = 34.0
_DOT = 3.5
_INDENT = 9.0  # from the middle of a dot to its text
_BASELINE = 4.5  # from the middle of a row; renderers disagree about centred baselines
_MOST_LETTERS = 60

_STYLE = """
text{font:13px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#1f2328;
paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}
.page{fill:#fff}.title{font-size:16px;font-weight:600}.muted{fill:#656d76}text.mark{font-weight:700;fill:#0a5cc2}
path{fill:none;stroke:#b3bcc6;stroke-width:1.4}path.also{stroke:#9a7bd0;stroke-dasharray:4 3}path.mark{stroke:#0a5cc2;
stroke-width:2.2}circle{fill:#fff;stroke:#7d8792;stroke-width:1.5}circle.inner{fill:#7d8792}circle.mark{fill:#0a5cc2;
stroke:#0a5cc2}
@media (prefers-color-scheme:dark){text{fill:#e6edf3;stroke:#0d1117}.page{fill:#0d1117}.muted{fill:#9198a1}
text.mark{fill:#79b8ff}path{stroke:#4a535e}path.also{stroke:#a58be0}path.mark{stroke:#79b8ff}circle{fill:#0d1117;
stroke:#9198a1}circle.inner{fill:#9198a1}circle.mark{fill:#79b8ff;stroke:#79b8ff}}
"""


@dataclass(slots=True)
class _Spot:
    """One line of text with its dot: a label, or the remark that more is hidden."""

    at: int
    depth: int
    parent: int  # place in the list of spots; -1 for the start
    more: str = ""  # set: no label but this remark
    row: float = 0.0
    children: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Layout:
    """Where everything stands: columns as wide as their longest text, a row for each spot without children."""

    spots: list[_Spot]
    lefts: list[float]  # of each column
    ends: list[float]  # where each spot's text ends
    top: float
    width: float
    height: float

    @classmethod
    def of(cls, outline: Outline, top: float) -> Layout:
        """Place what the outline shows, with so much room above."""
        spots = _spots(outline)
        widths = [_spot_width(outline, spot) for spot in spots]
        columns = [0.0] * (1 + max(spot.depth for spot in spots))
        for spot, width in zip(spots, widths, strict=True):
            columns[spot.depth] = max(columns[spot.depth], width)
        lefts = [_MARGIN + _DOT]
        for width in columns:
            lefts.append(lefts[-1] + _INDENT + width + _GAP)
        ends = [lefts[spot.depth] + _INDENT + width for spot, width in zip(spots, widths, strict=True)]
        rows = _place(spots)
        return cls(spots, lefts, ends, top, lefts[-1] - _GAP + _MARGIN, top + 2 * _MARGIN + rows * _ROW)

    def y(self, spot: _Spot) -> float:
        """The height of the middle of a spot."""
        return self.top + _MARGIN + (spot.row + 0.5) * _ROW

    def to_svg(self, outline: Outline, title: str) -> str:
        """The whole file."""
        said = escape(clean(title) or f"Taxonomy of {len(outline.taxonomy):,} labels")
        width = max(self.width, 2 * _MARGIN + 1.3 * _width(clean(title)))
        size = f"{_n(width)} {_n(self.height)}"
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{_n(width)}" '
            f'height="{_n(self.height)}" role="img">',
            f"<title>{said}</title>",
            f"<style>{_STYLE}</style>",
            '<rect class="page" width="100%" height="100%" rx="6"/>',
        ]
        if title:
            lines.append(f'<text class="title" x="{_n(_MARGIN)}" y="{_n(_MARGIN + 14)}">{said}</text>')
        lines += [*self._dashed(outline), *self._edges(outline), *self._labels(outline), "</svg>"]
        return "\n".join(lines) + "\n"

    def _edges(self, outline: Outline) -> Iterable[str]:
        drawn = [spot for spot in self.spots if spot.parent >= 0]
        marked = [spot.at in outline.highlight and not spot.more for spot in drawn]
        for mark, spot in sorted(zip(marked, drawn, strict=True), key=lambda pair: pair[0]):  # marked ones on top
            yield self._curve(self.spots[spot.parent], self.ends[spot.parent], spot, "mark" if mark else "")

    def _dashed(self, outline: Outline) -> Iterable[str]:
        """The edges from a label's other parents, where both are drawn."""
        drawn = {spot.at: number for number, spot in enumerate(self.spots) if not spot.more}
        for number, spot in enumerate(self.spots):
            if spot.more or spot.at == ROOT:
                continue
            for child in outline.children(spot.at):
                if child in drawn and outline.home[child] != spot.at:
                    yield self._curve(spot, self.ends[number], self.spots[drawn[child]], "also")

    def _curve(self, above: _Spot, end: float, spot: _Spot, kind: str) -> str:
        """Straight on to the end of the column, then down or up to the next: so no edge runs through a text."""
        begin, bend, goal = end + 4, self.lefts[above.depth + 1] - _GAP + 4, self.lefts[spot.depth] - _DOT - 1
        y, to = self.y(above), self.y(spot)
        middle = (bend + goal) / 2
        line = f"M{_n(begin)} {_n(y)}H{_n(max(bend, begin))}"
        curve = f"C{_n(middle)} {_n(y)} {_n(middle)} {_n(to)} {_n(goal)} {_n(to)}"
        return f'<path{_attribute(kind)} d="{line}{curve}"/>'

    def _labels(self, outline: Outline) -> Iterable[str]:
        for spot in self.spots:
            x, y = self.lefts[spot.depth], self.y(spot)
            text = f'x="{_n(x + _INDENT)}" y="{_n(y + _BASELINE)}"'
            if spot.more:
                yield f'<text class="muted" {text}>{escape(spot.more)}</text>'
                continue
            mark = "mark" if spot.at in outline.highlight else ""
            name, *further = _words(outline, spot)
            behind = "".join(f'<tspan class="muted" dx="5">{escape(word)}</tspan>' for word in further if word)
            tip = name if spot.at == ROOT else _tip(outline.taxonomy, spot.at)
            dot = mark or ("inner" if outline.children(spot.at) else "")
            yield (
                f"<g><title>{escape(tip)}</title>"
                f'<circle{_attribute(dot)} cx="{_n(x)}" cy="{_n(y)}" r="{_n(_DOT)}"/>'
                f"<text{_attribute(mark)} {text}>{escape(name)}{behind}</text></g>"
            )


def _tip(taxonomy: Taxonomy, at: int) -> str:
    """What shows where the mouse rests: the id, and what the label means if someone said it."""
    label, meant = clean(taxonomy.labels[at], 1000), clean(taxonomy.definitions[at], 1000)
    return f"{label}: {meant}" if meant else label


def _spots(outline: Outline) -> list[_Spot]:
    """What is drawn, every parent before its children."""
    spots = [_Spot(outline.start, 0, -1)]
    for number, spot in enumerate(spots):  # grows while we go
        if spot.more or spot.depth >= outline.max_depth:
            continue
        shown, hidden = outline.cut([child for child in outline.children(spot.at) if outline.home[child] == spot.at])
        below = [_Spot(child, spot.depth + 1, number) for child in shown]
        if hidden:
            below.append(_Spot(spot.at, spot.depth + 1, number, more=f"… {outline.more(spot.at, hidden)}"))
        spot.children = list(range(len(spots), len(spots) + len(below)))
        spots.extend(below)
    return spots


def _place(spots: list[_Spot]) -> int:
    """Give every spot its row: leaves one after the other, a parent in the middle of its children."""
    rows = 0
    stack = [0]
    while stack:  # depth first, so that what belongs together stands together
        spot = spots[stack.pop()]
        if not spot.children:
            spot.row, rows = float(rows), rows + 1
        stack.extend(reversed(spot.children))
    for spot in reversed(spots):  # children before their parents
        if spot.children:
            spot.row = (spots[spot.children[0]].row + spots[spot.children[-1]].row) / 2
    return rows


def _words(outline: Outline, spot: _Spot) -> tuple[str, ...]:
    if spot.more:
        return (spot.more,)
    return clean(outline.name(spot.at), _MOST_LETTERS), outline.count(spot.at), outline.cut_below(spot.at, spot.depth)


def _spot_width(outline: Outline, spot: _Spot) -> float:
    bold = 1.12 if spot.at in outline.highlight and not spot.more else 1.0
    return bold * _width("  ".join(filter(None, _words(outline, spot))))


def _width(text: str) -> float:
    """About how wide a text is, rather too wide than too narrow: fonts differ, and texts must not touch."""
    return _FONT * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.1
    if letter in "iljtfrI.,:;'|!()[] ":
        return 0.42
    return 0.95 if letter in "mwMW@%…" else 0.75 if letter.isupper() else 0.64


def _attribute(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _n(number: float) -> str:
    return f"{round(number, 1):g}"


__all__ = ["TITLE_HEIGHT", "Layout"]
