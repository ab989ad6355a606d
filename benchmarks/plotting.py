"""How figures look and are saved: greys, hatches, line styles and markers, so that black and white print shows all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from records import HERE

from hilap.errors import need

FIGURES = HERE.parent / "docs" / "figures"
LINES = (("black", "-", "o"), ("0.45", "--", "s"), ("black", ":", "x"), ("0.45", "-.", "^"), ("0.7", "-", "d"))
BARS = (("white", "//"), ("0.9", "\\\\"), ("0.75", "xx"), ("white", ".."), ("0.55", "--"), ("0.25", ""))


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
    """A figure with so many panels; always a table of axes."""
    size = (max(width * columns, 5.0), height * rows)
    return pyplot().subplots(rows, columns, figsize=size, squeeze=False, constrained_layout=True)


def line(axes: Any, places: Any, values: Any, style: int, name: str, *, mark_every: int = 1) -> None:
    colour, dashes, mark = LINES[style % len(LINES)]
    axes.plot(places, values, dashes, color=colour, marker=mark, markersize=3.5, markevery=mark_every, label=name)


def bars(axes: Any, groups: list[str], series: dict[str, tuple[list[float], list[float]]]) -> None:
    """Grouped bars: name of the series -> its heights and their spread, one for each group; NaN leaves a gap."""
    width = 0.8 / max(1, len(series))
    for i, (name, (heights, spreads)) in enumerate(series.items()):
        colour, hatch = BARS[i % len(BARS)]
        places = [place + (i - (len(series) - 1) / 2) * width for place in range(len(groups))]
        looks = {"color": colour, "hatch": hatch, "edgecolor": "black", "linewidth": 0.6}
        errors = spreads if any(spreads) else None
        axes.bar(places, heights, width, yerr=errors, label=name, ecolor="black", **looks)
    axes.set_xticks(range(len(groups)), groups)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.grid(True, axis="y", linewidth=0.3)
    axes.set_axisbelow(True)


def legend_below(figure: Any, axes: Any) -> None:
    """One legend for all panels, from every panel's own names."""
    found = {name: handle for one in axes.flat for handle, name in zip(*one.get_legend_handles_labels(), strict=True)}
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=min(4, len(found)), fontsize=8)
