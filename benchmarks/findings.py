"""What the tables and figures beside the set tables say, in words made from their figures and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from cells import F1, HEADINGS, mean_of
from certainty import p_value, sign_of
from figures import GROUPS, gains_of
from records import ABLATION, SETS, Runs, is_hilap

STEPS = {  # what is added -> with it, without it
    "reinforcement": ("hilap-paper", "hilap-sl"),
    "the supervised loss under reinforcement": ("hilap-paper", "hilap-nosl"),
    "the flat loss under reinforcement": ("hilap-paper", "hilap-noflat"),
    "the flat loss in HiLAP-SL": ("hilap-sl", "hilap-sl-noflat"),
}
FIGURE_4 = "## Gains by level and by popularity (the paper's Figure 4)"
FIGURE_4_WORDS = """\
Macro-F1 of groups of labels, in points: L1 is the top level, P1 the third of the labels with the most
training documents. The paper finds the largest gains at the bottom level and for the least frequent labels (P3)."""


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
    ours = [method for method in worst if is_hilap(method)]
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
    """Figure 4 in words: each pair's largest and smallest gain, and how often the paper's finding holds."""
    gains = {name: gains_of(runs) for name, runs in pages.items()}
    pairs = dict.fromkeys(pair for found in gains.values() for pair in found)
    told = [
        f"- {group_words(pair, {name: found[pair] for name, found in gains.items() if pair in found})}"
        for pair in pairs
    ]
    return [FIGURE_4, FIGURE_4_WORDS, "\n".join(told)] if told else []


def group_words(pair: str, found: Mapping[str, Mapping[str, tuple[list[str], list[Any]]]]) -> str:
    """One pair: by level and by popularity, where its bar is highest and where lowest."""
    parts = []
    for how in GROUPS:
        heights = {
            f"{group.partition(chr(10))[0]} of {SETS.get(name, name)}": bar.height
            for name, one in found.items()
            for group, bar in zip(*one[how], strict=True)
        }
        last = sum(
            max(bars, key=lambda bar: bar.height) is bars[-1] for _, bars in (one[how] for one in found.values())
        )
        most, least = max(heights, key=heights.__getitem__), min(heights, key=heights.__getitem__)
        lost = sum(height < 0 for height in heights.values())
        parts.append(
            f"by {how} from {heights[least]:+.2f} ({least}) to {heights[most]:+.2f} ({most}), "
            f"below 0 in {lost} of {len(heights)} groups, "
            f"most in the last (deepest or rarest) on {last} of {len(found)} sets"
        )
    return f"{pair}: {'; '.join(parts)}."
