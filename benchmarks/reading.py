"""What the figures say, in words made from them and nothing else: where HiLAP is first, where not, at what cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from cells import F1, HEADINGS, NONE, mean_of
from certainty import Comparison
from records import SETS, Runs, is_hilap, is_rival

from hilap.metrics.words import markdown_table

WORDS = """\
Who is first on a set, and how far HiLAP lies ahead of the best of all the others we ran, whatever their encoder, or
behind. HiLAP is the recommended preset (`hilap`) or, where that was not run, the best of its other forms. Systems that
were not run yet are not in it: the sections below say which were."""


def reading_section(pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[str]:
    """A table over all sets: who is first by which score."""
    rows, places = [], []
    for name, runs in pages.items():
        ranked = [standing(runs, key) for key in F1]
        places += [one.ahead > 0 for one in ranked if one is not None and one.ahead is not None]
        others = sum(is_rival(one.method) for one in runs)
        cells = [NONE if one is None else one.short for one in ranked]
        rows.append([SETS.get(name, name), str(others), *cells])
    table = markdown_table(["Set", "Other systems", *HEADINGS.values()], rows)
    told = [f"HiLAP is first in **{sum(places)} of {len(places)}** of these comparisons."] if places else []
    gaps = [gap for name, runs in pages.items() for gap, _ in to_beat(name, runs, paper).values()]
    if gaps:
        ahead = sum(gap > 0 for gap in gaps)
        told.append(f"`hilap` is ahead of the opponents to beat, not measured by us, in **{ahead} of {len(gaps)}**.")
    return ["## Where HiLAP is first", WORDS, table, *([" ".join(told)] if told else [])]


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
    def short(self) -> str:
        """For a cell."""
        ahead = self.ahead
        if ahead is None or self.ours is None or self.rival is None:
            return "nothing to compare with"
        first, words = (self.ours, "") if ahead > 0 else (self.rival, "HiLAP ")
        return f"`{first.method}` ({words}{ahead:+.2f})"

    def __str__(self) -> str:
        """For a sentence."""
        ahead = self.ahead
        if ahead is None or self.ours is None or self.rival is None:
            return ""
        ours, rival = f"`{self.ours.method}`", f"`{self.rival.method}`"
        if ahead > 0:
            return f"first on {HEADINGS[self.key]} ({ours}, {ahead:.2f} above {rival})"
        return f"not first on {HEADINGS[self.key]} ({rival} is, {ours} is {-ahead:.2f} below)"


def standing(runs: Sequence[Runs], key: str) -> Standing | None:
    """HiLAP against the others by one score; None where nobody has it."""
    known = [one for one in runs if mean_of(one, key) is not None]
    ours = [one for one in known if is_hilap(one.method)]
    return Standing(key, ours, [one for one in known if is_rival(one.method)]) if known else None


def _best(runs: Sequence[Runs], key: str) -> Runs | None:
    return max(runs, key=lambda one: mean_of(one, key) or 0.0, default=None)


def set_words(runs: Sequence[Runs], tested: Mapping[str, Comparison]) -> list[str]:
    """What a set says: where HiLAP is first and where not, how sure that is, and what it costs."""
    standings = [standing(runs, key) for key in F1]
    told = [str(one) for one in standings if one is not None and one.ahead is not None]
    if not told:
        return ["Reading: HiLAP and other systems are not both here yet, so nothing is claimed."]
    parts = [f"Reading: of {len(runs)} systems HiLAP is {'; '.join(told)}. {cost_words(runs, standings)}".rstrip()]
    if tested:
        parts.append(f"Best in this table against the runner-up: {'; '.join(map(str, tested.values()))}.")
    return parts


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
            told.append(f"`{method}` {fmean(training):,.0f} s, {fmean(speed):,.0f} documents/s{note}")
    return f"Cost in processor time, training and prediction: {'; '.join(told)}." if told else ""
