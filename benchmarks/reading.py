"""What the figures say, in words made from them and nothing else: where HiLAP is first, where not, at what cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from statistics import fmean
from typing import Any, TypeGuard

from cells import F1, HEADINGS, NONE, figure, listing, markdown_table, mean_of
from certainty import LIMIT, Comparison, best_words, p_value, p_words
from orientation import SHAPES
from parts import stages_of
from records import CALLED, SETS, Runs, is_hilap, is_own, is_rival

WORDS = """\
Who is first on a set, and how far HiLAP lies ahead of the best of all the others we ran, whatever their encoder, or
behind; *p* says how easily chance alone would make such a lead ([how](#how-to-read-the-tables)). HiLAP is `hilap`, with
settings chosen for each set on validation documents (`benchmarks/settings/hilap.toml`), or, where that was not run, the
best of its other forms; `hilap-preset` is the recommended preset as it is, which came of these settings. *Other rows*
counts what it is compared with: settings of other systems, so that one network at three thresholds is three rows, and
HiLAP's own flat models and HiLAP-SL on other base models; parts of HiLAP that its ablation leaves are not among them.
Systems that were not run yet are not in it: the sections below say which were."""
CARE = """\
**Read this with care.** The recommended preset learns its flat models from the validation documents too, and has
several of them; most other systems are one network, or one SVM a label, of the training documents. Rows with *all
documents* in their name (`...-refit`) and `c-hmcnn-paper` learn from both as well: they are the nearest comparison,
equal in documents, though not in the number of models, and HiLAP's settings were worked on longer than theirs
(decisions 10 to 13). Where flat models of HiLAP's own stand in a table (`hilap-flat-members`), all is equal but the
walk with what goes with it: biases that lift labels which would be placed too seldom (in other systems thresholds for
each label come nearest to them: `flat-scut`, `svm-scutfbr`), and what rewards have taught. `hilap-start` has the first
without the second."""
APART = "[What each part adds](#what-each-part-adds) tells the two apart."
LOOKED = """\
The test split of our sets was looked at more often than once: HiLAP's settings were changed after figures of earlier
ones, and of stronger baselines, had been seen on it. Every choice was made on validation documents, but which questions
were asked was known from the test. What stood before, and why it was changed, is in decisions
[10](decisions/0010-flat-models-under-the-policy.md), [11](decisions/0011-condensed-scores-and-a-short-walk.md),
[12](decisions/0012-a-kernel-part-for-features.md) and [13](decisions/0013-walks-as-they-are-decoded.md)."""
AGAIN = """\
Of the committed results FunCat's `hilap`, `hilap-start` and `hilap-flat-members` were run twice with the same
settings. The first time they had 31.30 / 9.66 / 31.60, 31.51 / 9.62 / 31.22 and 31.50 / 9.10 / 31.28 on the test
split, where `flat-refit` with 9.90 was ahead by Macro-F1. They were made again, knowing that, because they came from
different networks and from older code; processors differ too. So that HiLAP is first there by Macro-F1 is one draw of
two, and as its p says no sure thing. The ablation on FunCat was made again as well, for counts: `hilap-paper` had
27.48 / 2.94 / 27.79 with five seeds."""
WITH_VECTORS = (
    "It is not the recommended one: it needs a pretrained encoder, whose weights are not ours to ship, {speed}. Nor is "
    "it an equal comparison: other systems do not see such vectors, but for those on that encoder alone (`minilm-...`)."
)
GO_MACRO = """\
Why not on GO's Macro-F1: most of its labels have a handful of documents, and whoever gives a rare label to many
documents finds some of them. A flat network with a threshold for each label (`flat-scut`) does so without measure, at
the price of nearly all its Micro-F1; single networks (`flat-refit`, `c-hmcnn`) do so a little more often than HiLAP,
whose mean of several networks and a kernel machine is less sure of rare labels and more often right of the others.
HiLAP could have more of it too, for points of Micro-F1 and EBF: scores allow one or the other ([decision
15](decisions/0015-what-scores-allow.md))."""
OWN_MODELS = "hilap-flat-members"
OWN_AHEAD = (
    "Why not on {places}: what is ahead are HiLAP's own flat models with one threshold for all labels "
    f"(`{OWN_MODELS}`), no other system. Where probabilities are right, one threshold is the best that anyone can do "
    "for Micro-F1; from the same probabilities Macro-F1 is gained by lower thresholds for rare labels, at the price of "
    "Micro-F1. HiLAP is chosen by the mean of the three, which may rise where one of them falls. What it has more than "
    "these models: {gaps}. No other way of reading the same probabilities that was tried, on FunCat and GO, brought "
    "more by that mean ([decision 15](decisions/0015-what-scores-allow.md))."
)
MACRO_ALONE = (
    "Asked for Macro-F1 alone (`hilap-macro`: the flat models of `hilap`, its biases and the epoch of its walk chosen "
    "by that score), as whoever takes a threshold for each label does, HiLAP is first by Macro-F1 of systems that are "
    "no parts of it in {counted}. Most of these have one threshold, chosen by the mean of the three scores; none was "
    "asked for Macro-F1 alone but those with thresholds for each label (`flat-scut`, `svm-scutfbr`). Micro-F1 / "
    "Macro-F1 / EBF: {told}."
)
FUNCAT_MACRO = """\
Why not on FunCat's Macro-F1: chance, as far as we can tell. On all documents of the other two splits, scored by models
that have not seen them, one network has about the Macro-F1 of what HiLAP stands on, less with the lift that HiLAP has,
and less of the other two scores ([decision 15](decisions/0015-what-scores-allow.md)); here single networks
(`flat-refit`) are within the spread over seeds."""
TROVE_MACRO = """\
Why not on trove's Macro-F1: HSVM learned from all documents (`hsvm-refit`) is a structured SVM, which HiLAP's wide part
can be too; on MEDLINE it is. On trove's validation documents one SVM for each label did better ([decision
11](decisions/0011-condensed-scores-and-a-short-walk.md))."""
WHY = {  # set, score and who is ahead -> why HiLAP is not first, where the reason is known
    ("go", "macro_f1", "flat-scut"): GO_MACRO,
    ("funcat", "macro_f1", "flat-refit"): FUNCAT_MACRO,
    ("trove", "macro_f1", "hsvm-refit"): TROVE_MACRO,
}


def reading_section(
    pages: Mapping[str, Sequence[Runs]], standings: Mapping[str, Sequence[Standing | None]], paper: Mapping[str, Any]
) -> list[str]:
    """A table over all sets: who is first by which score, from what `standings_of` says of each set."""
    rows, places, outside, why, own, gaps = [], [], [], [], [], []
    for name, runs in pages.items():
        ranked = standings[name]
        known = [one for one in ranked if _compared(one)]
        places += known
        lost = [(name, one.key, one.rival.method) for one in known if one.behind and one.rival is not None]
        why += [WHY[place] for place in lost if place in WHY]
        outside += [one for one in standings_of([run for run in runs if is_apart(run)]) if _compared(one)]
        mine = [f"{CALLED.get(name, name)}'s {HEADINGS[key]}" for _, key, rival in lost if rival == OWN_MODELS]
        if mine and (more := own_gaps(runs)):
            own += mine
            gaps.append(f"on {CALLED.get(name, name)} {more}")
        others = sum(map(is_rival, runs))
        cells = [NONE if one is None else one.short for one in ranked]
        rows.append([SETS.get(name, name), reached(ranked), str(others), *cells])
    three = " / ".join(HEADINGS.values())
    table = markdown_table(["Set", f"HiLAP: {three}", "Other rows", *HEADINGS.values()], rows)
    told = [*count_words(places), *apart_words(places, outside), *preset_words(pages), *to_beat_words(pages, paper)]
    notes = [*care_words(pages), *with_vectors_words(pages)] if places else []
    if own:
        why.insert(0, OWN_AHEAD.format(places=listing(own), gaps="; ".join(gaps)))
    alone = macro_words(pages)
    return ["## Where HiLAP is first", WORDS, table, *([" ".join(told)] if told else []), *notes, *why, *alone]


def reached(standings: Sequence[Standing | None]) -> str:
    """The three scores of the form that stands for HiLAP."""
    means = [None if one is None else mean_of(one.ours, one.key) for one in standings]
    return " / ".join(NONE if mean is None else f"{mean:.2f}" for mean in means) if any(means) else NONE


def count_words(places: Sequence[Standing]) -> list[str]:
    """How often HiLAP is first, equal and behind, and how often that is more than chance would easily make."""
    if not places:
        return []
    first, behind = ([one for one in places if getattr(one, way)] for way in ("first", "behind"))
    equal = len(places) - len(first) - len(behind)
    told = [f"HiLAP is first in **{len(first)} of {len(places)}** of these comparisons,"]
    told.append(f"in **{sum(one.sure for one in first)}** of them with p < {LIMIT}.")
    if equal:
        told.append(f"In {equal} it is equal to the best other one, to two decimals.")
    told.append(f"Where it is behind, it is so with p < {LIMIT} in {sum(one.sure for one in behind)} of {len(behind)}.")
    return told


def apart_words(places: Sequence[Standing], outside: Sequence[Standing]) -> list[str]:
    """How often HiLAP is first of systems alone, where some of the others that it was compared with are parts of it."""
    if not outside or [one.rival for one in places] == [one.rival for one in outside]:
        return []
    first = [one for one in outside if one.first]
    told = f"Of systems that are no parts of HiLAP itself it is first in **{len(first)} of {len(outside)}**"
    return [f"{told}, in **{sum(one.sure for one in first)}** with p < {LIMIT}."]


def preset_words(pages: Mapping[str, Sequence[Runs]]) -> list[str]:
    """How often the preset with nothing chosen for a set is first of systems alone: what users get at once."""
    places = []
    for runs in pages.values():
        there = [run for run in runs if run.method == "hilap-preset" or not is_own(run)]
        places += [one for one in standings_of(there) if _compared(one)]
    if not places:
        return []
    first = [one for one in places if one.first]
    told = "Beside systems that are no parts of HiLAP, the preset with nothing chosen for a set (`hilap-preset`) is"
    counted = f"**{len(first)} of {len(places)}**, in **{sum(one.sure for one in first)}** with p < {LIMIT}"
    return [f"{told} first in {counted}."]


def macro_words(pages: Mapping[str, Sequence[Runs]]) -> list[str]:
    """What HiLAP has when it is asked for Macro-F1 alone, beside the best other system by that score."""
    places, told = [], []
    for name, runs in pages.items():
        one = standing([run for run in runs if run.method == "hilap-macro" or not is_own(run)], "macro_f1")
        if not _compared(one) or one.rival is None:
            continue
        places.append(one)
        ours, theirs = (" / ".join(figure(mean_of(run, key)) for key in F1) for run in (one.ours, one.rival))
        gap = f"Macro-F1 {one.ahead:+.2f}, {p_words(one.p)}"
        told.append(f"on {CALLED.get(name, name)} {ours}, and `{one.rival.method}` {theirs} ({gap})")
    if not places:
        return []
    first = [one for one in places if one.first]
    counted = f"**{len(first)} of {len(places)}**, in **{sum(one.sure for one in first)}** with p < {LIMIT}"
    return [MACRO_ALONE.format(counted=counted, told="; ".join(told))]


def own_gaps(runs: Sequence[Runs]) -> str:
    """What `hilap` has more than its own flat models, by each score that both have; empty where one was not run."""
    ours, flat = (next((one for one in runs if one.method == method), None) for method in ("hilap", OWN_MODELS))
    pairs = {key: (mean_of(ours, key), mean_of(flat, key)) for key in F1}
    gaps = {key: more - less for key, (more, less) in pairs.items() if more is not None and less is not None}
    return ", ".join(f"{HEADINGS[key]} {gap:+.2f}" for key, gap in gaps.items())


def is_apart(runs: Runs) -> bool:
    """Whether it is HiLAP or has nothing of it: not its flat models, nor HiLAP-SL."""
    return is_hilap(runs) or not is_own(runs)


def _compared(one: Standing | None) -> TypeGuard[Standing]:
    return one is not None and one.ahead is not None


def to_beat_words(pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[str]:
    """In how many scores the recommended preset is ahead of the opponents that were measured before."""
    gaps = [gap for name, runs in pages.items() for gap, _ in to_beat(name, runs, paper).values()]
    ahead = sum(gap > 0 for gap in gaps)
    told = f"`hilap` is ahead of the opponents to beat, not measured by us, in **{ahead} of {len(gaps)}**."
    return [told] if gaps else []


def care_words(pages: Mapping[str, Sequence[Runs]]) -> list[str]:
    """What a comparison with the recommended preset leaves out; how often the test was looked at, of our own sets."""
    if not any(one.method == "hilap" for runs in pages.values() for one in runs):
        return []
    told = f"{CARE}\n{APART}" if any(stages_of(runs) for runs in pages.values()) else CARE
    looked = [LOOKED] if set(pages) & set(SHAPES) else []
    return [told, *looked, *([AGAIN] if stages_of(pages.get("funcat", ())) else [])]


def with_vectors_words(pages: Mapping[str, Sequence[Runs]]) -> list[str]:
    """Why the form with a pretrained encoder's vectors is not the recommended one, where both are here."""
    above, sure, seeds, speeds = [], 0, set[int](), []
    for runs in pages.values():
        known = {one.method: one for one in runs}
        pair = [known[method] for method in ("hilap-minilm", "hilap") if method in known]
        if len(pair) < 2:
            continue
        for key in F1:
            ours, words = (mean_of(one, key) for one in pair)
            if ours is not None and words is not None:
                above.append(round(ours, 2) > round(words, 2))
                p = p_value(*pair, key) if above[-1] else None
                sure += p is not None and p < LIMIT
                seeds.add(len(pair[0].records))
        rates = [one.values("prediction", "documents_per_cpu_second") for one in pair]
        speeds += [[fmean(rate) for rate in rates]] if all(rates) else []
    if not above:
        return []
    speed = "and is slow"
    if speeds:
        slow, fast = (_between(column) for column in zip(*speeds, strict=True))
        speed = f"and labels {slow} documents in a second of processor time where `hilap` labels {fast}"
    counted = f"`hilap-minilm` is above `hilap` in {sum(above)} of {len(above)} scores, in {sure} with p < {LIMIT}"
    counted += ", with one seed of its own." if seeds == {1} else "."
    return [f"{counted} {WITH_VECTORS.format(speed=speed)}"]


def _between(values: Sequence[float]) -> str:
    low, high = f"{min(values):,.0f}", f"{max(values):,.0f}"
    return low if low == high else f"{low} to {high}"


def to_beat(name: str, runs: Sequence[Runs], paper: Mapping[str, Any]) -> dict[str, tuple[float, dict[str, Any]]]:
    """Score -> the recommended system's lead over the best of the opponents to beat, and that opponent."""
    ours = next((one for one in runs if one.method == "hilap"), None)
    rivals = [row for row in paper["opponents"]["rows"] if row["set"] == name and row.get("mark") == "to_beat"]
    found = {}
    for place, key in enumerate(F1):
        mean = mean_of(ours, key)
        if mean is not None and rivals:
            rival = max(rivals, key=lambda row: row["values"][place])
            found[key] = mean - rival["values"][place], rival
    return found


class Standing:
    """How HiLAP stands on one set by one score.

    Parameters
    ----------
    key
        The score.
    ours, others
        HiLAP's forms and the other systems that have this score. The recommended form stands for all of them.
    """

    def __init__(self, key: str, ours: Sequence[Runs], others: Sequence[Runs]) -> None:
        self.key = key
        self.ours = _best([one for one in ours if one.method == "hilap"] or ours, key)
        self.rival = _best(others, key)

    @property
    def ahead(self) -> float | None:
        """HiLAP's lead in percent points, below 0 where it is behind; None where one side is missing."""
        if self.ours is None or self.rival is None:
            return None
        return (mean_of(self.ours, self.key) or 0.0) - (mean_of(self.rival, self.key) or 0.0)

    @property
    def first(self) -> bool:
        """Whether HiLAP is ahead, by what two decimals show."""
        return self.ahead is not None and round(self.ahead, 2) > 0

    @property
    def behind(self) -> bool:
        """Whether another is ahead, by what two decimals show."""
        return self.ahead is not None and round(self.ahead, 2) < 0

    @cached_property
    def p(self) -> float | None:
        """How easily chance would make the difference to the best other system; None where it cannot be tested."""
        return None if self.ours is None or self.rival is None else p_value(self.ours, self.rival, self.key)

    @property
    def sure(self) -> bool:
        """Whether the difference, ahead or behind, is more than chance would easily make."""
        return self.p is not None and self.p < LIMIT

    @property
    def short(self) -> str:
        """For a cell."""
        ahead = self.ahead
        if ahead is None or self.ours is None or self.rival is None:
            return "nothing to compare with"
        if not self.first and not self.behind:
            return f"`{self.ours.method}` and `{self.rival.method}` (equal, {p_words(self.p)})"
        first, words = (self.ours, "") if self.first else (self.rival, "HiLAP ")
        return f"`{first.method}` ({words}{ahead:+.2f}, {p_words(self.p)})"

    def __str__(self) -> str:
        """For a sentence."""
        ahead = self.ahead
        if ahead is None or self.ours is None or self.rival is None:
            return ""
        ours, rival = f"`{self.ours.method}`", f"`{self.rival.method}`"
        if not self.first and not self.behind:
            return f"equal to the best on {HEADINGS[self.key]} ({ours} and {rival}, {p_words(self.p)})"
        if self.first:
            return f"first on {HEADINGS[self.key]} ({ours}, {ahead:.2f} above {rival}, {p_words(self.p)})"
        return f"not first on {HEADINGS[self.key]} ({rival} is, {ours} is {-ahead:.2f} below, {p_words(self.p)})"


def standing(runs: Sequence[Runs], key: str) -> Standing | None:
    """HiLAP against the others by one score; None where nobody has it."""
    known = [one for one in runs if mean_of(one, key) is not None]
    ours = [one for one in known if is_hilap(one)]
    return Standing(key, ours, [one for one in known if is_rival(one)]) if known else None


def standings_of(runs: Sequence[Runs]) -> list[Standing | None]:
    """How HiLAP stands on a set by each of the three scores."""
    return [standing(runs, key) for key in F1]


def _best(runs: Sequence[Runs], key: str) -> Runs | None:
    return max(runs, key=lambda one: mean_of(one, key) or 0.0, default=None)


def set_words(runs: Sequence[Runs], standings: Sequence[Standing | None], tested: dict[str, Comparison]) -> list[str]:
    """What a set says: where HiLAP is first and where not, how sure that is, and what it costs."""
    told = [str(one) for one in standings if one is not None and one.ahead is not None]
    if not told:
        return ["Reading: HiLAP and other systems are not both here yet, so nothing is claimed."]
    parts = [f"Reading: {rows_words(runs)} HiLAP is {'; '.join(told)}. {cost_words(runs, standings)}".rstrip()]
    return [*parts, *best_words(tested)]


def rows_words(runs: Sequence[Runs]) -> str:
    """How many rows a set has, and whose they are."""
    own = [one for one in runs if is_own(one)]
    rivals = sum(map(is_rival, own))
    counted = f", {rivals} of them among the others" if rivals else ""
    others = f"{len(runs) - len(own)} settings of other systems"
    return f"of {len(runs)} rows on this set ({others}, {len(own)} forms and parts of HiLAP{counted})"


def cost_words(runs: Sequence[Runs], standings: Sequence[Standing | None]) -> str:
    """The recommended form's cost beside that of its strongest rivals."""
    chosen = {one.method: one for one in runs if one.method == "hilap"}
    chosen |= {one.rival.method: one.rival for one in standings if one is not None and one.rival is not None}
    told = []
    for method, one in chosen.items():
        training = one.values("training", "cpu_seconds")
        speed = one.values("prediction", "documents_per_cpu_second")
        if training and speed:
            note = " (vectors from a cache, their making not counted)" if one.cached else ""
            memory = one.values("peak_mb")
            held = f", {fmean(memory):,.0f} MB" if memory else ""
            told.append(f"`{method}` {fmean(training):,.0f} s, {fmean(speed):,.0f} documents/s{held}{note}")
    return f"Cost in processor time, training and prediction, and in memory: {'; '.join(told)}." if told else ""
