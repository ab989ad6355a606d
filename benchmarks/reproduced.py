"""Whether the paper's own method does here what the paper says: beside its figures, and among the other systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cells import F1, HEADINGS, NONE, figure, markdown_table, mean_of, score_cells
from records import SETS, Runs, is_own
from roles import OWN_SETS

POLICIES = ("hilap-paper", "bowcnn-paper")  # the paper's policy and losses; the first that a set has stands for it
TITLE = "## The paper's own method"
WORDS = """\
The recommended preset is not the paper's method: it stands on SVMs, or on ten networks and a kernel machine, and its
policy adds little to what they say. This is how the method does that the paper describes, one network with its policy
and losses, read by an unbiased stop (`hilap-paper`; where that was not run, the paper's policy on bow-CNN with a tuned
stop). *Printed* is what the paper has for its HiLAP on the same data, where we have them; *rank* its place among all
settings of other systems of the set that we ran, by each score, most of them with a threshold chosen on validation
documents, which the paper's opponents do not have."""


def reproduced_section(pages: Mapping[str, Sequence[Runs]], printed: Mapping[str, Sequence[float]]) -> list[str]:
    """A line for each set that the paper's policy was run on, and what the lines say.

    `printed` has the paper's three scores of its own method, for the sets that are the paper's own.
    """
    found = {name: one for name, runs in pages.items() if (one := policy_of(runs)) is not None}
    if not found:
        return []
    rows = []
    for name, one in found.items():
        theirs = printed.get(name)
        [scores] = score_cells([one], F1)
        places, others = ranks_of(one, pages[name])
        cells = [NONE] * len(F1) if theirs is None else [figure(value) for value in theirs]
        rank = NONE if not others else f"{' / '.join(map(str, places))} of {others + 1}"
        rows.append([SETS.get(name, name), f"`{one.method}`", str(len(one.records)), *scores, *cells, rank])
    headings = ["Set", "Row", "Seeds", *HEADINGS.values(), *(f"*printed: {word}*" for word in HEADINGS.values())]
    parts = [TITLE, WORDS, markdown_table([*headings, "Rank by each score"], rows), words_of(found, pages, printed)]
    return [*parts, *(why for name, why in WHY.items() if name in found)]


def policy_of(runs: Sequence[Runs]) -> Runs | None:
    """The row that stands for the paper's method on a set."""
    known = {one.method: one for one in runs if all(mean_of(one, key) is not None for key in F1)}
    return next((known[method] for method in POLICIES if method in known), None)


def ranks_of(one: Runs, runs: Sequence[Runs]) -> tuple[list[int], int]:
    """Its place among other systems by each score, forms and parts of HiLAP left out, and how many those are."""
    others = [other for other in runs if not is_own(other.method) and mean_of(other, F1[0]) is not None]
    return [1 + sum(_points(other, key) > _points(one, key) for other in others) for key in F1], len(others)


def words_of(
    found: Mapping[str, Runs], pages: Mapping[str, Sequence[Runs]], printed: Mapping[str, Sequence[float]]
) -> str:
    """How far it lies from the print, and that of how many systems more than half are ahead of it."""
    told = []
    for name, one in found.items():
        if name in printed:
            gaps = [
                f"{HEADINGS[key]} {_points(one, key) - theirs:+.2f}"
                for key, theirs in zip(F1, printed[name], strict=True)
            ]
            told.append(f"against the print on {SETS.get(name, name)}: {', '.join(gaps)}")
    places = [place for name, one in found.items() for place in _halves(one, pages[name])]
    told.append(f"in the upper half of the systems in {sum(places)} of {len(places)} comparisons")
    return f"Reading: {'; '.join(told)}."


def _halves(one: Runs, runs: Sequence[Runs]) -> list[bool]:
    """Whether at most half of the others are ahead, by each score."""
    places, others = ranks_of(one, runs)
    return [place - 1 <= others / 2 for place in places] if others else []


def _points(one: Runs, key: str) -> float:
    return round(mean_of(one, key) or 0.0, 2)
