"""What the tables and figures beside the set tables say, in words made from their figures and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from cells import F1, HEADINGS, NONE, markdown_table, mean_of, wrapped
from certainty import p_value, sign_of
from figures import GAINS, GROUPS, LEAST_LABELS, SCORED, gains_of, pooled_bins, title_of_scores
from records import ABLATION, SETS, Runs, is_hilap

STEPS = {  # what is added -> with it, without it
    "reinforcement": ("hilap-paper", "hilap-sl"),
    "the supervised loss under reinforcement": ("hilap-paper", "hilap-nosl"),
    "the flat loss under reinforcement": ("hilap-paper", "hilap-noflat"),
    "the flat loss in HiLAP-SL": ("hilap-sl", "hilap-sl-noflat"),
}
FIGURE_4 = "## Gains by level and by popularity (the paper's Figure 4)"
FIGURE_4_WORDS = wrapped(f"""\
What a system has more in Macro-F1 than another, in points, by groups of labels on all sets that have both: L1 is the
top level, P1 the third of the labels with the most documents in the training and validation splits. The lowest levels
are taken together until they have {LEAST_LABELS} labels (*L5+*). *Least* and *most* are the groups where it gains
least and most, with how many labels they have. The paper finds the largest gains at the bottom level and for the least
frequent labels: *most in the last group* counts the sets where that is so.""")
RELIABILITY = "## Whether probabilities come true"
LEAST_PAIRS = 100  # of a bin: fewer move by chance
RELIABILITY_WORDS = f"""\
All pairs of document and label, in 15 bins by their probability: how far the mean probability of a bin lies from the
share of its pairs that are right, where that is most, and in brackets both (said → right). Bins with fewer than
{LEAST_PAIRS} pairs, all seeds together, are left out. Probabilities of HiLAP's recommended preset are those of its
flat models: margins of SVMs scaled by one slope and one intercept for all labels (Platt), sigmoids of networks and what
a kernel part says as they are."""


def ablation_words(runs: Sequence[Runs], paper: Mapping[str, Any]) -> list[str]:
    """Which variant is best, what each step adds here and in the paper, and where a tuned flat network stands."""
    known = {one.method: one for one in runs}
    shown = [known[method] for method in ABLATION if method in known]
    told = [f"Best by {'; '.join(f'{HEADINGS[key]}: {_best(shown, key)}' for key in F1)}."]
    rows = paper["tables"]["table_ablation"]["rows"]
    for words, (more, less) in STEPS.items():
        if more in known and less in known:
            theirs = [a - b for a, b in zip(rows[ABLATION[more]], rows[ABLATION[less]], strict=True)]
            told.append(f"{words[0].upper()}{words[1:]} {step_words(known[more], known[less], theirs)}")
    return [" ".join(["Reading:", *told, *tuned_words(shown, known.get("flat"))])]


def _best(runs: Sequence[Runs], key: str) -> str:
    return f"`{max(runs, key=lambda one: mean_of(one, key) or 0.0).method}`"


def step_words(more: Runs, less: Runs, theirs: Sequence[float]) -> str:
    """What a step adds by each score, with its marks, and by which scores the paper has it the other way."""
    gaps = {key: (mean_of(more, key) or 0.0) - (mean_of(less, key) or 0.0) for key in F1}
    tested = {key: p_value(more, less, key) for key in F1}
    cells = [f"{HEADINGS[key]} {gap:+.2f} {sign_of(tested[key])}".rstrip() for key, gap in gaps.items()]
    untested = " (not tested)" if None in tested.values() else ""
    against = [HEADINGS[key] for (key, gap), one in zip(gaps.items(), theirs, strict=True) if gap * one < 0]
    contrary = f"; contrary to the paper by {', '.join(against)}" if against else "; nowhere contrary to the paper"
    up = sum(gap > 0 for gap in gaps.values())
    verdict = "helps" if up == len(gaps) else "helps by some scores" if up else "does not help"
    return f"(`{more.method}` over `{less.method}`) {verdict}: {', '.join(cells)}{untested}{contrary}."


def tuned_words(variants: Sequence[Runs], flat: Runs | None) -> list[str]:
    """The variants are read as the paper reads them; a flat network with a threshold of its own stands beside them."""
    told = "These are the paper's policy and losses, read at a fixed 0.5 or with an unbiased stop"
    means = {key: mean_of(flat, key) for key in F1}
    if flat is None or any(mean is None for mean in means.values()):
        return [f"{told}."]
    above = [HEADINGS[key] for key in F1 if (means[key] or 0.0) > max(mean_of(one, key) or 0.0 for one in variants)]
    reached = " / ".join(f"{mean:.2f}" for mean in means.values())
    beats = f"above every variant by {', '.join(above)}" if above else "above the best variant by no score"
    return [f"{told}; a flat network with a tuned threshold (`flat`) stands at {reached}, {beats}."]


def inconsistency_words(pages: Mapping[str, Sequence[Runs]], methods: Sequence[str]) -> list[str]:
    """Who gives labels without their ancestors, and who does not."""
    shares = {
        (one.method, name): fmean(values)
        for name, runs in pages.items()
        for one in runs
        if one.method in methods and (values := one.values("test", "inconsistent_share"))
    }
    above = {place: 100 * share for place, share in shares.items() if share > 0}
    worst = {method: max(share for (one, _), share in shares.items() if one == method) for method, _ in shares}
    forms = {one.method for runs in pages.values() for one in runs if is_hilap(one)}
    ours = [method for method in worst if method in forms]
    zero = [f"`{method}`" for method, share in worst.items() if share == 0 and method not in ours]
    told = [f"Reading: {sum(share > 0 for share in worst.values())} of {len(worst)} rows are above 0 on some set"]
    if above:
        (least, there), (most, here) = min(above, key=above.__getitem__), max(above, key=above.__getitem__)
        told[0] += f", from {above[least, there]:.2f} (`{least}`, {SETS.get(there, there)})"
        told[0] += f" to {above[most, here]:.2f} (`{most}`, {SETS.get(here, here)})"
    broken = [f"`{method}`" for method in ours if worst[method] > 0]
    if ours:
        told.append(
            f"Not at 0, of HiLAP: {', '.join(broken)}" if broken else "HiLAP is at 0 on every set, in every form"
        )
    if zero:
        told.append(f"At 0 wherever they were run are also {', '.join(zero)}: it is not HiLAP's alone")
    return [". ".join(told) + "."]


def groups_section(pages: Mapping[str, Sequence[Runs]]) -> list[str]:
    """Figure 4 as a table: each pair's largest and smallest gain, and how often the paper's finding holds."""
    gains = {name: gains_of(runs) for name, runs in pages.items()}
    pairs = [pair for pair in GAINS if any(pair in found for found in gains.values())]
    rows = [
        [pair, how, *group_cells({name: found[pair][how] for name, found in gains.items() if pair in found})]
        for pair in pairs
        for how in GROUPS
    ]
    headings = ["Gain of", "By", "Least", "Most", "Below 0", "Most in the last group"]
    return [FIGURE_4, FIGURE_4_WORDS, markdown_table(headings, rows)] if rows else []


def group_cells(found: Mapping[str, tuple[list[str], list[Any]]]) -> list[str]:
    """One pair by level or by popularity, on all sets: its lowest and its highest bar, and how often it is where."""
    heights = {
        f"{_group_words(group)}, {SETS.get(name, name)}": bar.height
        for name, one in found.items()
        for group, bar in zip(*one, strict=True)
    }
    highest = [(max(bars, key=lambda bar: bar.height), bars[-1]) for _, bars in found.values()]
    last = sum(best is bar and bar.height > 0 for best, bar in highest)  # the least loss is no gain
    places = [choose(heights, key=heights.__getitem__) for choose in (min, max)]
    ends = [f"{heights[place]:+.2f} ({place})" for place in places]
    lost = sum(height < 0 for height in heights.values())
    return [*ends, f"{lost} of {len(heights)} groups", f"{last} of {len(found)} sets"]


def _group_words(group: str) -> str:
    """A group of labels as it stands below its bars, in words: its name, and how many labels it has."""
    name, size = group.split("\n")
    return f"{name}, {size} label{'' if size == '1' else 's'}"


def reliability_section(pages: Mapping[str, Sequence[Runs]]) -> list[str]:
    """How far probabilities lie from the share that comes true at most: the reliability figure as a table."""
    found = {(one.method, name): far for name, runs in pages.items() for one in runs if (far := farthest(one))}
    methods = [method for method in SCORED if any(method == one for one, _ in found)]
    if not methods:
        return []
    names = [name for name in pages if any(name == one for _, one in found)]
    titles = {one.method: f"{title_of_scores(one)} (`{one.method}`)" for runs in pages.values() for one in runs}
    rows = [[titles[method], *(_far_cell(found.get((method, name))) for name in names)] for method in methods]
    table = markdown_table(["System", *(SETS.get(name, name) for name in names)], rows)
    ours = {name: far for (method, name), far in found.items() if method == "hilap"}
    return [RELIABILITY, RELIABILITY_WORDS, table, *([reliability_words(ours)] if ours else [])]


def farthest(runs: Runs) -> tuple[float, float] | None:
    """Of the bins with enough pairs: the mean probability of that where most is missing, and the share right there."""
    bins = pooled_bins(runs) if runs.method in SCORED else None
    if bins is None:
        return None
    pairs, said, right = bins
    enough = np.flatnonzero(pairs >= LEAST_PAIRS)
    if not len(enough):
        return None
    at = enough[np.argmax(np.abs(said - right)[enough])]
    return float(said[at]), float(right[at])


def _far_cell(far: tuple[float, float] | None) -> str:
    return NONE if far is None else f"{abs(far[1] - far[0]):.2f} ({far[0]:.2f} → {far[1]:.2f})"


def reliability_words(found: Mapping[str, tuple[float, float]]) -> str:
    """Whether the recommended preset's probabilities say too little or too much, and by how much at most."""
    told = []
    for name, (said, right) in found.items():
        way = "as they are" if said == right else "too low" if right > said else "too high"
        told.append(f"on {SETS.get(name, name)} by {abs(right - said):.2f} ({way}: {said:.2f} said, {right:.2f} right)")
    return f"Reading: the probabilities of `hilap` are off at most {'; '.join(told)}."
