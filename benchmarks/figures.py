"""The figures, from result files alone: `python benchmarks/figures.py [NAME ...]`, as SVG and PNG in docs/figures.

`base_models` is the paper's Figure 3 and `gains` its Figure 4; `learning`, `reliability` and `precision_recall` are
ours, and `cost` is drawn by `cost.py` from what it measured. A figure whose results are not there is left out, with a
line that says what it needs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from cells import F1, HEADINGS, percent
from certainty import of_seeds
from numpy.typing import NDArray
from plotting import FIGURES, bars, legend_below, line, panels, save
from records import BASE_METHODS, BASE_NAMES, FRAMEWORKS, HERE, NAMES, SETS, Runs, read_object, read_results
from sections import bases_of

from hilap.errors import HilapError

RESULTS = HERE / "results"
GAINS = (  # system, and what it is compared with
    ("hilap", "svm"),
    ("hilap", "flat"),
    ("bowcnn-hilap", "bowcnn-flat-half"),
    ("bowcnn-hilap", "bowcnn-flat"),
    ("bowcnn-sl", "bowcnn-flat-half"),
)
LEARNING = ("hilap", "hilap-paper", "bowcnn-hilap", "flat", "c-hmcnn")
SCORED = ("hilap", "hilap-paper", "flat", "svm", "c-hmcnn")
Pages = dict[str, list[Runs]]
Floats = NDArray[np.float64]
NOTHING = "nothing drawn: "


def base_models(pages: Pages, out: Path) -> str:
    """Figure 3: every base model under every framework; a row of panels a set, a column a score."""
    shown = {name: bases_of(runs) for name, runs in pages.items() if any(one.method in BASE_METHODS for one in runs)}
    if not shown:
        return NOTHING + "no result of a base model (textcnn-flat, bowcnn-hilap, …)"
    figure, axes = panels(len(shown), len(F1), width=4.2)
    for row, (name, bases) in zip(axes, shown.items(), strict=True):
        for one, key in zip(row, F1, strict=True):
            series = {
                words: _heights([mine.get(framework) for mine in bases.values()], key)
                for framework, words in FRAMEWORKS.items()
            }
            bars(one, [_broken(BASE_NAMES[base]) for base in bases], series)
            one.tick_params(axis="x", labelsize=6)
            one.set_title(f"{SETS.get(name, name)}: {HEADINGS[key]}", fontsize=9)
    legend_below(figure, axes)
    save(figure, out / "base_models")
    return f"{len(shown)} sets"


def _broken(words: str) -> str:
    """A name in lines short enough to stand under a group of bars."""
    return words.partition(",")[0].replace(" ", "\n")


def _heights(runs: Sequence[Runs | None], key: str) -> tuple[list[float], list[float]]:
    values = [[] if one is None else percent(one.values("test", key)) for one in runs]
    means = [fmean(cell) if cell else float("nan") for cell in values]
    return means, [stdev(cell) if len(cell) > 1 else 0.0 for cell in values]


def gains(pages: Pages, out: Path) -> str:
    """Figure 4: what a system gains in Macro-F1 over another, by level and by popularity of labels."""
    shown = {name: found for name, runs in pages.items() if (found := gains_of(runs))}
    if not shown:
        return NOTHING + "no set has counts of hilap and svm or flat, or of bow-CNN's two"
    figure, axes = panels(len(shown), 2, width=4.5)
    drawn = [f"{system} over {rival}" for system, rival in GAINS]
    pairs = [words for words in drawn if any(words in found for found in shown.values())]
    for row, (name, found) in zip(axes, shown.items(), strict=True):
        for one, how in zip(row, ("level", "popularity"), strict=True):
            names = next(iter(found.values()))[how][0]
            nothing = [float("nan")] * len(names)  # a pair looks the same in every panel, also where another is missing
            series = {
                words: (found[words][how][1].tolist() if words in found else nothing, [0.0] * len(names))
                for words in pairs
            }
            bars(one, names, series)
            one.set(ylabel="Macro-F1, points", title=f"{SETS.get(name, name)}, by {how}")
    legend_below(figure, axes)
    save(figure, out / "gains")
    return f"{len(shown)} sets"


def gains_of(runs: Sequence[Runs]) -> dict[str, dict[str, tuple[list[str], Floats]]]:
    """Words for a pair of systems -> by level and by popularity -> groups of labels and gains in percent points."""
    known = {one.method: one for one in runs}
    found = {}
    for ours, theirs in GAINS:
        if ours in known and theirs in known:
            grouped = [by_group(known[method]) for method in (ours, theirs)]
            if grouped[0] is not None and grouped[1] is not None:
                mine, other = grouped
                found[f"{ours} over {theirs}"] = {how: (mine[how][0], mine[how][1] - other[how][1]) for how in mine}
    return found


def by_group(runs: Runs) -> dict[str, tuple[list[str], Floats]] | None:
    """By level and by popularity: names of groups, and Macro-F1 in percent over the labels of each, mean over seeds.

    Levels without a label that Macro-F1 covers are left out; popularity has three equal groups, the most frequent
    labels in the training documents first.
    """
    counts = of_seeds(runs, "labels")
    if counts is None:
        return None
    score, level = 100 * counts["f1"].mean(axis=0), counts["level"][0]
    levels = np.unique(level)
    thirds = np.array_split(np.argsort(-counts["training"][0], kind="stable"), 3)
    return {
        "level": ([f"L{one:.0f}" for one in levels], np.array([score[level == one].mean() for one in levels])),
        "popularity": (
            ["P1", "P2", "P3"],
            np.array([score[third].mean() if len(third) else np.nan for third in thirds]),
        ),
    }


def learning(pages: Pages, out: Path) -> str:
    """Validation scores after every epoch that was judged, all phases one after the other."""
    return _curves(pages, out / "learning", LEARNING, course, _learning_axes, "no result has a history of epochs")


def course(runs: Runs) -> tuple[Floats, Floats] | None:
    """Epochs, and the mean of the three F1 on validation documents in percent, mean over seeds as far as all go."""
    told = [judged_epochs(runs, record) for record in runs.records]
    length = min((len(rows) for rows in told), default=0)
    if length < 2:
        return None
    scores = np.array([rows[:length] for rows in told], dtype=np.float64)
    return np.arange(1.0, length + 1), 100 * scores.mean(axis=(0, 2))


def judged_epochs(runs: Runs, record: dict[str, Any]) -> list[list[float]]:
    """The three F1 of every epoch that has them."""
    history = record.get("history", [])
    rows = [row for row in history if isinstance(row, dict)] if isinstance(history, list) else []
    found = [[row[key] for key in F1] for row in rows if all(key in row for key in F1)]
    if not all(isinstance(score, float | int) for row in found for score in row):
        raise HilapError(f"{runs.name}/{runs.method}: history must have numbers as scores; run it again with --again")
    return found


def _learning_axes(axes: Any) -> None:
    axes.set(xlabel="epoch that was judged", ylabel="mean F1, validation, %")


def reliability(pages: Pages, out: Path) -> str:
    """Probability against the share that came true, over all (document, label) pairs."""
    return _curves(pages, out / "reliability", SCORED, bins_of, _reliability_axes, "no result has reliability tables")


def bins_of(runs: Runs) -> tuple[Floats, Floats] | None:
    """Mean probability and share right of each bin, the pairs of all seeds together; empty bins are left out."""
    found = runs.columns(("reliability",), ("pairs", "probability", "right"))
    if found is None:
        return None
    pairs, probability, right = found.values()
    total = pairs.sum(axis=0)
    kept = total > 0
    weighted = [np.where(pairs > 0, pairs * values, 0.0).sum(axis=0)[kept] for values in (probability, right)]
    return weighted[0] / total[kept], weighted[1] / total[kept]


def _reliability_axes(axes: Any) -> None:
    axes.plot([0, 1], [0, 1], color="0.8", linewidth=0.8, zorder=0)
    axes.set(xlabel="probability", ylabel="share right", xlim=(0, 1), ylim=(0, 1))


def precision_recall(pages: Pages, out: Path) -> str:
    """One curve over all (document, label) pairs for each system."""
    fault = "no result has precision-recall curves"
    return _curves(pages, out / "precision_recall", SCORED, pooled_curve, _precision_axes, fault)


def pooled_curve(runs: Runs) -> tuple[Floats, Floats] | None:
    """Recall and precision, the mean over seeds at the same hundredths of recall."""
    found = []
    for i in range(len(runs.records)):
        one = Runs(runs.name, runs.method, runs.records[i : i + 1])  # curves of seeds may have different lengths
        kept = one.columns(("precision_recall",), ("recall", "precision"))
        if kept is None or not kept["recall"].size:
            return None
        found.append(np.interp(np.arange(1, 101) / 100, kept["recall"][0], kept["precision"][0]))
    return np.arange(1, 101) / 100, np.mean(found, axis=0)


def _precision_axes(axes: Any) -> None:
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))


def _curves(
    pages: Pages,
    path: Path,
    methods: Sequence[str],
    curve: Callable[[Runs], tuple[Floats, Floats] | None],
    dress: Callable[[Any], None],
    fault: str,
) -> str:
    """A panel for each set with a line for each of the methods it has."""
    shown = {}
    for name, runs in pages.items():
        known = {one.method: one for one in runs}
        found = {method: points for method in methods if method in known and (points := curve(known[method]))}
        if found:
            shown[name] = found
    if not shown:
        return NOTHING + fault
    columns = min(3, len(shown))
    figure, axes = panels(-(-len(shown) // columns), columns)
    for one, (name, found) in zip(axes.flat, shown.items(), strict=False):
        for method, (places, values) in found.items():
            every = max(1, len(places) // 10)
            line(one, places, values, methods.index(method), NAMES[method], mark_every=every)
        dress(one)
        one.set_title(SETS.get(name, name), fontsize=9)
        one.grid(True, linewidth=0.3)
    for one in axes.flat[len(shown) :]:
        one.set_visible(False)
    legend_below(figure, axes)
    save(figure, path)
    return f"{len(shown)} sets"


def cost(pages: Pages, out: Path) -> str:
    """Milliseconds for a document against the size of the taxonomy and of the batch: drawn by `cost.py`."""
    import cost as measured

    if not measured.RESULTS.is_file():
        return NOTHING + "cost.json is not there; python benchmarks/cost.py measures it"
    measured.draw(read_object(measured.RESULTS), out / "cost")
    return "as measured before"


DRAWN: dict[str, Callable[[Pages, Path], str]] = {
    "base_models": base_models,
    "gains": gains,
    "learning": learning,
    "reliability": reliability,
    "precision_recall": precision_recall,
    "cost": cost,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(DRAWN)}; without any, all of them")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=FIGURES)
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in DRAWN]
    if unknown:
        print(f"there is no figure {unknown[0]!r}; there are: {', '.join(DRAWN)}", file=sys.stderr)
        return 2
    try:
        pages = read_results(chosen.results)
        for name in chosen.names or DRAWN:
            print(f"{name}: {DRAWN[name](pages, chosen.out)}")
    except HilapError as fault:
        print(fault, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
