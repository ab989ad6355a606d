"""How figures look and are saved: greys, hatches, line styles and markers, so that black and white print shows all."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from records import HERE

from hilap.errors import need

FIGURES = HERE.parent / "docs" / "figures"
LINES = (("black", "-", "o"), ("0.45", "--", "s"), ("black", ":", "x"), ("0.45", "-.", "^"), ("0.7", "-", "d"))
BARS = (
    ("white", "////"),
    ("0.9", "...."),  # not strokes the other way: in a narrow bar they look like the first
    ("0.75", "xxxx"),
    ("white", "ooo"),
    ("0.6", "----"),
    ("white", "++++"),
    ("0.25", ""),
    ("0.6", "oo.."),
)
DOTS = (("o", "white"), ("o", "black"), ("D", "0.7"), ("v", "white"), ("s", "white"), ("P", "0.5"), ("^", "black"))
SMALLEST = 7  # points of the smallest letters
LETTER = 0.065  # inches that a letter of a legend takes
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bar:
    """A mean over seeds."""

    height: float
    spread: float | None  # standard deviation over seeds; None where there is one seed


@dataclass(frozen=True)
class Curve:
    """A line through points that are means over seeds."""

    places: Floats
    values: Floats
    whole: NDArray[np.bool_]  # the points that all seeds have


def pyplot() -> Any:
    """The pyplot of matplotlib without a screen, set so that the same figures give the same files."""
    matplotlib = need("matplotlib", "bench")
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "hilap", "font.size": 9, "hatch.linewidth": 0.5})
    return need("matplotlib.pyplot", "bench")


def save(figure: Any, path: Path) -> None:
    """As SVG and PNG beside each other; `path` has no ending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(path.with_suffix(".png"), dpi=150)
    pyplot().close(figure)


def panels(rows: int, columns: int, width: float = 3.6, height: float = 2.8) -> tuple[Any, Any]:
    """A figure with so many panels and room for a legend; always a table of axes."""
    size = (max(width * columns, 7.0), height * rows + 0.9)
    return pyplot().subplots(rows, columns, figsize=size, squeeze=False, constrained_layout=True)


def line(axes: Any, curve: Curve, style: int, name: str, *, mark_every: int = 1) -> None:
    """Thin where some seeds are missing."""
    colour, dashes, mark = LINES[style % len(LINES)]
    looks = {"color": colour, "marker": mark, "markevery": mark_every}
    axes.plot(curve.places, np.where(curve.whole, curve.values, np.nan), dashes, markersize=3.5, label=name, **looks)
    missing = np.pad(~curve.whole, 1)
    thin = missing[:-2] | missing[1:-1] | missing[2:]  # with the points on both sides, so that the line goes on
    if thin.any():
        axes.plot(curve.places, np.where(thin, curve.values, np.nan), dashes, linewidth=0.7, markersize=2, **looks)


def places_of(series: Mapping[str, Sequence[Bar | None]], groups: int) -> tuple[Floats, float]:
    """(series, groups) where each stands around the tick of its group, and how far apart they are."""
    there = np.array([[bar is not None for bar in row] for row in series.values()]).reshape(len(series), groups)
    width = 0.8 / max(1, int(there.sum(axis=0).max(initial=0)))
    return np.arange(groups) + (np.cumsum(there, axis=0) - (there.sum(axis=0) + 1) / 2) * width, width


def dots(axes: Any, groups: Sequence[str], series: Mapping[str, Sequence[Bar | None]]) -> float:
    """The same as dots with their spread, on an axis that begins near the lowest: the number it begins at.

    A bar that does not begin at 0 would mislead; a dot is read by its place.
    """
    places, _ = places_of(series, len(groups))
    low = floor_of([bar for row in series.values() for bar in row if bar is not None])
    for i, (name, row) in enumerate(series.items()):
        drawn = [(place, bar) for place, bar in zip(places[i].tolist(), row, strict=True) if bar is not None]
        if not drawn:
            continue
        mark, colour = DOTS[i % len(DOTS)]
        looks = {"marker": mark, "markerfacecolor": colour, "markeredgecolor": "black", "ecolor": "0.3"}
        heights, errors = [bar.height for _, bar in drawn], [bar.spread or 0.0 for _, bar in drawn]
        sizes = {"markersize": 5, "markeredgewidth": 0.8, "elinewidth": 0.9, "linestyle": "none"}
        axes.errorbar([place for place, _ in drawn], heights, yerr=errors, label=name, **looks, **sizes)
        for place, bar in drawn:
            if bar.spread is None:
                where = {"xytext": (0, 4), "textcoords": "offset points", "ha": "center", "va": "bottom"}
                axes.annotate("1", (place, bar.height), fontsize=SMALLEST, **where)
    axes.set_xticks(range(len(groups)), groups)
    axes.tick_params(labelsize=SMALLEST)
    for between in range(1, len(groups)):
        axes.axvline(between - 0.5, color="0.85", linewidth=0.6, zorder=0)
    axes.set_ylim(bottom=low)
    axes.grid(True, axis="y", linewidth=0.3)
    axes.set_axisbelow(True)
    return low


def floor_of(bars: Sequence[Bar]) -> float:
    """The round number below all of these and their spread: a tenth of their range lower, not below 0."""
    if not bars:
        return 0.0
    lowest, highest = min(bar.height - (bar.spread or 0.0) for bar in bars), max(bar.height for bar in bars)
    step = 5.0 if highest - lowest > 10 else 1.0
    return max(0.0, step * math.floor((lowest - 0.1 * (highest - lowest)) / step))


def bars(axes: Any, groups: Sequence[str], series: Mapping[str, Sequence[Bar | None]]) -> None:
    """Grouped bars: name of the series -> its bar in each group, or None; a group has room for its own bars alone.

    The looks of a series are those of its place among all series. A bar of one seed has a 1 at its end.
    """
    places, width = places_of(series, len(groups))
    for i, (name, row) in enumerate(series.items()):
        drawn = [(place, bar) for place, bar in zip(places[i].tolist(), row, strict=True) if bar is not None]
        if not drawn:
            continue
        colour, hatch = BARS[i % len(BARS)]
        looks = {"color": colour, "hatch": hatch, "edgecolor": "black", "linewidth": 0.6, "label": name}
        heights, errors = [bar.height for _, bar in drawn], [bar.spread or 0.0 for _, bar in drawn]
        axes.bar([place for place, _ in drawn], heights, width, yerr=errors, error_kw={"elinewidth": 0.8}, **looks)
        for place, bar in drawn:
            if bar.spread is None:
                side, up = ("bottom", 1) if bar.height >= 0 else ("top", -1)
                where = {"xytext": (0, up), "textcoords": "offset points", "ha": "center", "va": side}
                axes.annotate("1", (place, bar.height), fontsize=SMALLEST, **where)
    axes.set_xticks(range(len(groups)), groups)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.grid(True, axis="y", linewidth=0.3)
    axes.set_axisbelow(True)


def legend_below(figure: Any, axes: Any, order: Sequence[str], note: str) -> None:
    """One legend for all panels, from every panel's own names in the order given, below a note; as wide as fits."""
    found = {name: handle for one in axes.flat for handle, name in zip(*one.get_legend_handles_labels(), strict=True)}
    names = sorted(found, key=order.index)
    letters = int(figure.get_figwidth() / LETTER)
    columns = letters // (max(map(len, names), default=0) + 10)  # 10 for what stands before a name
    title = "\n".join(textwrap.fill(line, letters - 4) for line in note.splitlines())
    looks = {"ncols": min(4, max(1, columns)), "fontsize": 8, "title_fontsize": 8}
    figure.legend([found[name] for name in names], names, loc="outside lower center", title=title, **looks)
