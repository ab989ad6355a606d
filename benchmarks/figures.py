"""The figures, from result files alone: `python benchmarks/figures.py [NAME ...]`, as SVG and PNG in docs/figures.

`base_models` is the paper's Figure 3 and `gains` its Figure 4; `learning`, `reliability` and `precision_recall` are
ours, and `cost` is drawn by `cost.py` from what it measured. A figure whose results are not there is left out, with a
line that says what it needs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from cells import F1, HEADINGS, percent
from certainty import of_seeds
from numpy.typing import NDArray
from plotting import FIGURES, Bar, Curve, Floats, bars, dots, legend_below, line, panels, save
from records import BASE_METHODS, BASE_NAMES, FRAMEWORKS, HERE, SETS, Runs, read_object, read_results
from sections import bases_of

from hilap.errors import HilapError

RESULTS = HERE / "results"
GAINS = {  # what is said of it -> a system, and what it is compared with
    "HiLAP over linear SVMs, tuned": ("hilap", "svm"),
    "HiLAP over a flat network, tuned": ("hilap", "flat"),
    "HiLAP on bow-CNN over flat bow-CNN at 0.5": ("bowcnn-hilap", "bowcnn-flat-half"),
    "HiLAP on bow-CNN over flat bow-CNN, tuned": ("bowcnn-hilap", "bowcnn-flat"),
    "The paper's policy on bow-CNN over flat bow-CNN at 0.5": ("bowcnn-paper", "bowcnn-flat-half"),
    "The paper's policy on bow-CNN over flat bow-CNN, tuned": ("bowcnn-paper", "bowcnn-flat"),
    "HiLAP-SL on bow-CNN over flat bow-CNN at 0.5": ("bowcnn-sl", "bowcnn-flat-half"),
    "HiLAP-SL on bow-CNN over flat bow-CNN, tuned": ("bowcnn-sl", "bowcnn-flat"),
}
TOLD = (  # of these in words alone: eight bars a group cannot be told apart
    "HiLAP on bow-CNN over flat bow-CNN at 0.5",
    "HiLAP-SL on bow-CNN over flat bow-CNN, tuned",
)
BARRED = tuple(pair for pair in GAINS if pair not in TOLD)
GROUPS = {  # how labels are grouped -> what stands below the groups
    "level": "level, and how many labels it has",
    "popularity": "labels by documents (training, validation), and how many",
}
LEAST_LABELS = 10  # of the lowest levels: a mean over fewer says little
LEARNING = ("hilap", "hilap-paper", "bowcnn-hilap", "flat", "c-hmcnn")
SCORED = ("hilap", "hilap-paper", "flat", "svm", "c-hmcnn")
Pages = dict[str, list[Runs]]
NOTHING = "nothing drawn: "
NOWHERE = (
    "--results {results} without --out would overwrite {kept}, made from the committed results; say where, by --out"
)
SPREAD = "error bars: standard deviation over seeds"
LEARNING_NOTE = """x counts epochs of training that were judged; reinforced ones are judged at their start too
a curve of HiLAP that begins at 0 starts from flat models that had learned before, in epochs that were not judged
thin lines: not every seed has the epoch, and the mean is over those that have it"""


def base_models(pages: Pages, out: Path) -> str:
    """Figure 3: every base model under every framework; a row of panels a set, a column a score."""
    shown = {name: bases_of(runs) for name, runs in pages.items() if any(one.method in BASE_METHODS for one in runs)}
    if not shown:
        return NOTHING + "no result of a base model (textcnn-flat, bowcnn-hilap, …)"
    figure, axes = panels(len(shown), len(F1), width=4.8)
    for row, (name, bases) in zip(axes, shown.items(), strict=True):
        for one, key in zip(row, F1, strict=True):
            series = {
                words: [score_bar(mine.get(framework), key) for mine in bases.values()]
                for framework, words in FRAMEWORKS.items()
            }
            low = dots(one, [_broken(BASE_NAMES[base]) for base in bases], series)
            title = f"{SETS.get(name, name)}: {HEADINGS[key]}"
            one.set_title(title + (f" (axis from {low:g})" if low else ""), fontsize=9)
    note = f"{SPREAD}; 1: one seed; axes begin at 0 unless the title says otherwise: compare places, not heights"
    legend_below(figure, axes, list(FRAMEWORKS.values()), note)
    save(figure, out / "base_models")
    return f"{len(shown)} sets"


def _broken(words: str) -> str:
    """A name in lines short enough to stand under a group."""
    return words.partition(",")[0].replace(" ", "\n")


def score_bar(runs: Runs | None, key: str) -> Bar | None:
    """A test score in percent, where there is one."""
    values = [] if runs is None else percent(runs.values("test", key))
    return Bar(fmean(values), stdev(values) if len(values) > 1 else None) if values else None


def gains(pages: Pages, out: Path) -> str:
    """Figure 4: what a system gains in Macro-F1 over another, by level and by popularity of labels."""
    drawn = {
        name: {pair: one for pair, one in gains_of(runs).items() if pair in BARRED} for name, runs in pages.items()
    }
    shown = {name: found for name, found in drawn.items() if found}
    if not shown:
        return NOTHING + "no set has counts of hilap and svm or flat, or of bow-CNN's two"
    figure, axes = panels(len(shown), 2, width=4.8)
    for row, (name, found) in zip(axes, shown.items(), strict=True):
        for one, (how, words) in zip(row, GROUPS.items(), strict=True):
            groups = next(iter(found.values()))[how][0]
            nothing = [None] * len(groups)  # a pair looks the same in every panel, also where another is missing
            bars(one, groups, {pair: found[pair][how][1] if pair in found else nothing for pair in BARRED})
            one.tick_params(axis="x", labelsize=7)
            one.set(xlabel=words, ylabel="Macro-F1, points", title=f"{SETS.get(name, name)}, by {how}")
    note = f"{SPREAD}, of both systems together; a system of one seed adds none; 1: one seed each"
    legend_below(figure, axes, list(BARRED), note)
    save(figure, out / "gains")
    return f"{len(shown)} sets"


@dataclass(frozen=True)
class Groups:
    """Macro-F1 of groups of labels."""

    names: list[str]
    sizes: list[int]
    scores: Floats  # (seeds, groups) in percent


def gains_of(runs: Sequence[Runs]) -> dict[str, dict[str, tuple[list[str], list[Bar]]]]:
    """Words for a pair of systems -> by level and by popularity -> groups with their sizes, gains in percent points."""
    known = {one.method: one for one in runs}
    found = {}
    for pair, (ours, theirs) in GAINS.items():
        if ours in known and theirs in known:
            mine, other = by_group(known[ours]), by_group(known[theirs])
            if mine is not None and other is not None:
                found[pair] = {how: (_sized(mine[how]), gain(mine[how], other[how])) for how in GROUPS}
    return found


def _sized(groups: Groups) -> list[str]:
    return [f"{name}\n{size:,}" for name, size in zip(groups.names, groups.sizes, strict=True)]


def gain(mine: Groups, other: Groups) -> list[Bar]:
    """What we have more in each group; the spread is that of a difference, where a system of one seed adds none."""
    heights = mine.scores.mean(axis=0) - other.scores.mean(axis=0)
    variances = [one.scores.var(axis=0, ddof=1) for one in (mine, other) if len(one.scores) > 1]
    spreads = np.sqrt(np.sum(variances, axis=0)).tolist() if variances else [None] * len(heights)
    return [Bar(height, spread) for height, spread in zip(heights.tolist(), spreads, strict=True)]


def by_group(runs: Runs) -> dict[str, Groups] | None:
    """By level and by popularity: Macro-F1 over the labels of each group.

    Groups without a label that Macro-F1 covers are left out. Popularity has three equal groups, the most frequent
    labels in the documents of the training and validation splits first.
    """
    counts = of_seeds(runs, "labels")
    if counts is None:
        return None
    level = counts["level"][0]
    thirds = np.array_split(np.argsort(-counts["training"][0], kind="stable"), 3)
    return {
        "level": _grouped(levels_of(level), counts["f1"]),
        "popularity": _grouped({f"P{i}": third for i, third in enumerate(thirds, 1) if len(third)}, counts["f1"]),
    }


def levels_of(level: Floats, least: int = LEAST_LABELS) -> dict[str, NDArray[np.intp]]:
    """Name of a group -> its labels: a group for each level, but the lowest in one that has so many labels at least."""
    depths = np.unique(level)
    if not len(depths):
        return {}
    low = max((depth for depth in depths if (level >= depth).sum() >= least), default=depths[0])
    groups = {f"L{depth:.0f}": np.flatnonzero(level == depth) for depth in depths if depth < low}
    several = "+" if depths[-1] > low else ""
    return groups | {f"L{low:.0f}{several}": np.flatnonzero(level >= low)}


def _grouped(members: Mapping[str, NDArray[np.intp]], f1: Floats) -> Groups:
    scores = np.array([100 * f1[:, rows].mean(axis=1) for rows in members.values()]).reshape(len(members), len(f1))
    return Groups(list(members), [len(rows) for rows in members.values()], scores.T)


def learning(pages: Pages, out: Path) -> str:
    """Validation scores after every epoch that was judged, all phases one after the other."""
    fault = "no result has a history of epochs"
    return _curves(pages, out / "learning", LEARNING, course, _learning_axes, fault, note=LEARNING_NOTE)


def course(runs: Runs) -> Curve | None:
    """The mean of the three F1 on validation documents in percent, mean over the seeds that have the epoch.

    A phase begins behind the longest seed of the one before. What was judged at its start stands where that ends, or
    at 0: it is no epoch.
    """
    told = [judged_epochs(runs, record) for record in runs.records]
    if not all(told):
        return None
    places: list[float] = []
    cells: list[list[Floats]] = []  # the three F1 of every seed that is there
    for phase in dict.fromkeys(str(row.get("phase")) for rows in told for row in rows):
        mine = [[row for row in rows if str(row.get("phase")) == phase] for rows in told]
        at_start = any(rows[0].get("epoch") == 0 for rows in mine if rows)
        first = (places[-1] if places else 0) + (not at_start)
        length = max(map(len, mine))
        places += [first + i for i in range(length)]
        cells += [[_f1(rows[i]) for rows in mine if i < len(rows)] for i in range(length)]
    whole = np.array([len(cell) == len(told) for cell in cells])
    return Curve(np.array(places, dtype=np.float64), np.array([np.mean(cell) for cell in cells]), whole)


def judged_epochs(runs: Runs, record: dict[str, Any]) -> list[dict[str, Any]]:
    """The epochs that have the three F1."""
    history = record.get("history", [])
    rows = [row for row in history if isinstance(row, dict)] if isinstance(history, list) else []
    found = [row for row in rows if all(key in row for key in F1)]
    if not all(isinstance(row[key], float | int) for row in found for key in F1):
        raise HilapError(f"{runs.name}/{runs.method}: history must have numbers as scores; run it again with --again")
    return found


def _f1(row: dict[str, Any]) -> Floats:
    return 100 * np.array([row[key] for key in F1], dtype=np.float64)


def _learning_axes(axes: Any) -> None:
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="epochs that were judged", ylabel="mean F1, validation, %")


def reliability(pages: Pages, out: Path) -> str:
    """Probability against the share that came true, over all (document, label) pairs."""
    fault = "no result has reliability tables"
    return _curves(pages, out / "reliability", SCORED, bins_of, _reliability_axes, fault, title=title_of_scores)


def title_of_scores(runs: Runs) -> str:
    """The system's name, and whose probabilities these are where they are not those of its walks."""
    decoding = [record.get("decoding") for record in runs.records]
    flat = any(isinstance(one, dict) and one.get("probabilities") == "flat" for one in decoding)
    return runs.system + (" (probabilities of its flat models)" if flat else "")


def bins_of(runs: Runs) -> Curve | None:
    """Mean probability and share right of each bin, the pairs of all seeds together; empty bins are left out."""
    found = pooled_bins(runs)
    return None if found is None else Curve(*found[1:], np.full(len(found[0]), True))


def pooled_bins(runs: Runs) -> tuple[Floats, Floats, Floats] | None:
    """Pairs of document and label, mean probability and share right of each bin that is not empty, over all seeds."""
    found = runs.columns(("reliability",), ("pairs", "probability", "right"))
    if found is None:
        return None
    pairs, probability, right = found.values()
    total = pairs.sum(axis=0)
    kept = total > 0
    weighted = [np.where(pairs > 0, pairs * values, 0.0).sum(axis=0)[kept] for values in (probability, right)]
    return total[kept], weighted[0] / total[kept], weighted[1] / total[kept]


def _reliability_axes(axes: Any) -> None:
    axes.plot([0, 1], [0, 1], color="0.8", linewidth=0.8, zorder=0)
    axes.set(xlabel="probability", ylabel="share right", xlim=(0, 1), ylim=(0, 1))


def precision_recall(pages: Pages, out: Path) -> str:
    """One curve over all (document, label) pairs for each system."""
    fault = "no result has precision-recall curves"
    path = out / "precision_recall"
    return _curves(pages, path, SCORED, pooled_curve, _precision_axes, fault, title=title_of_scores)


def pooled_curve(runs: Runs) -> Curve | None:
    """Recall and precision, the mean over seeds at the same hundredths of recall."""
    found, places = [], np.arange(1, 101) / 100
    for i in range(len(runs.records)):
        one = Runs(runs.name, runs.method, runs.records[i : i + 1])  # curves of seeds may have different lengths
        kept = one.columns(("precision_recall",), ("recall", "precision"))
        if kept is None or not kept["recall"].size:
            return None
        found.append(np.interp(places, kept["recall"][0], kept["precision"][0]))
    return Curve(places, np.mean(found, axis=0), np.full(len(places), True))


def _precision_axes(axes: Any) -> None:
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))


def _curves(
    pages: Pages,
    path: Path,
    methods: Sequence[str],
    curve: Callable[[Runs], Curve | None],
    dress: Callable[[Any], None],
    fault: str,
    *,
    title: Callable[[Runs], str] = lambda runs: runs.system,
    note: str = "",
) -> str:
    """A panel for each set with a line for each of the methods it has; the note also says which have none."""
    shown: dict[str, list[tuple[Runs, Curve]]] = {}
    absent = []
    for one in (one for runs in pages.values() for one in runs if one.method in methods):
        points = curve(one)
        if points is None:
            absent.append(one)
        else:
            shown.setdefault(one.name, []).append((one, points))
    if not shown:
        return NOTHING + fault
    styles = {title(one): methods.index(one.method) for drawn in shown.values() for one, _ in drawn}
    columns = min(3, len(shown))
    figure, axes = panels(-(-len(shown) // columns), columns)
    for panel, (name, drawn) in zip(axes.flat, shown.items(), strict=False):
        for one, points in drawn:
            line(panel, points, styles[title(one)], title(one), mark_every=max(1, len(points.places) // 10))
        dress(panel)
        panel.set_title(SETS.get(name, name), fontsize=9)
        panel.grid(True, linewidth=0.3)
    for panel in axes.flat[len(shown) :]:
        panel.set_visible(False)
    notes = [*filter(None, (note, not_kept(absent)))]
    legend_below(figure, axes, sorted(styles, key=styles.__getitem__), "\n".join(notes))
    save(figure, path)
    return f"{len(shown)} sets"


def not_kept(absent: Sequence[Runs]) -> str:
    """Which systems a figure leaves out on which sets."""
    sets: dict[str, list[str]] = {}
    for one in absent:
        sets.setdefault(one.system, []).append(SETS.get(one.name, one.name))
    told = "; ".join(f"{name}, on {' and '.join(mine)}" for name, mine in sets.items())
    return f"not kept for every seed, so not shown: {told}" if told else ""


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


def folder_for(results: Path, out: Path | None, kept: Path) -> Path | None:
    """Where to write: what is committed is made from the committed results alone, so others need a place of theirs."""
    return out if out is not None else kept if results.resolve() == RESULTS.resolve() else None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(DRAWN)}; without any, all of them")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, help="the folder; docs/figures for the committed results")
    chosen = parser.parse_args(arguments)
    out = folder_for(chosen.results, chosen.out, FIGURES)
    if out is None:
        print(NOWHERE.format(results=chosen.results, kept=FIGURES), file=sys.stderr)
        return 2
    unknown = [name for name in chosen.names if name not in DRAWN]
    if unknown:
        print(f"there is no figure {unknown[0]!r}; there are: {', '.join(DRAWN)}", file=sys.stderr)
        return 2
    try:
        pages = read_results(chosen.results)
        for name in chosen.names or DRAWN:
            print(f"{name}: {DRAWN[name](pages, out)}")
    except HilapError as fault:
        print(fault, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
