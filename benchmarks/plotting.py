"""How figures look and are saved: greys, hatches, line styles and markers, so that black and white print shows all."""

from __future__ import annotations

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
)
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


def bars(axes: Any, groups: Sequence[str], series: Mapping[str, Sequence[Bar | None]]) -> None:
    """Grouped bars: name of the series -> its bar in each group, or None; a group has room for its own bars alone.

    The looks of a series are those of its place among all series. A bar of one seed has a 1 at its end.
    """
    there = np.array([[bar is not None for bar in row] for row in series.values()]).reshape(len(series), len(groups))
    width = 0.8 / max(1, int(there.sum(axis=0).max(initial=0)))
    places = np.arange(len(groups)) + (np.cumsum(there, axis=0) - (there.sum(axis=0) + 1) / 2) * width
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
                axes.annotate("1", (place, bar.height), fontsize=5, **where)
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
