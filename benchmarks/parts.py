"""What each part of the recommended preset adds: its flat models, the walk on them, and what rewards teach it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from cells import F1, HEADINGS, markdown_table, mean_of, score_cells
from certainty import LIMIT, p_value, p_words
from records import SETS, Runs

STAGES = ("hilap-flat-members", "hilap-start", "hilap")  # each has what the one before has, and more
STEPS = {  # what is added -> with it, without it
    "the walk and its biases": (STAGES[1], STAGES[0]),
    "reinforcement": (STAGES[2], STAGES[1]),
    "both": (STAGES[2], STAGES[0]),
}
PARTS = "What each part adds"
PARTS_WORDS = """\
The paper's central claim is that a walk learned by rewards is better than what it stands on. Here the recommended
preset is taken apart: its *flat models* with one threshold for all labels; then the *walk* on the same models before
any reward was seen, with biases that lift labels which would be placed too seldom; then the walk after *reinforcement*,
which is `hilap`. Before any reward the policy itself says next to nothing: its embeddings start at a tenth of their
usual length ([details](details.md), point 40), and the second stage is nearly what the flat models give when they are
cut from the top down with those biases ([decision 15](decisions/0015-what-scores-allow.md)). So the first step shows
what biases and consistency are worth, and only the second what a policy has learned. Between two rows of scores stands
what the lower has more, in points, and how easily chance alone would make such a difference
([how](#how-to-read-the-tables)). Only sets where all three were run."""


def parts_section(pages: Mapping[str, Sequence[Runs]]) -> list[str]:
    """A table for each set that has all stages, and what they say together."""
    found = {name: stages for name, runs in pages.items() if (stages := stages_of(runs))}
    if not found:
        return []
    tables = [part for name, mine in found.items() for part in (f"### {SETS.get(name, name)}: parts", _table(mine))]
    return [f"## {PARTS}", PARTS_WORDS, parts_words(found), *tables]


def stages_of(runs: Sequence[Runs]) -> dict[str, Runs]:
    """Method -> runs of all stages in their order; nothing where one of them, or one of its scores, is missing."""
    known = {one.method: one for one in runs if all(mean_of(one, key) is not None for key in F1)}
    return {method: known[method] for method in STAGES} if set(STAGES) <= set(known) else {}


def gap_of(stages: Mapping[str, Runs], step: str, key: str) -> float:
    """What a step adds to a score, in points."""
    more, less = (mean_of(stages[method], key) or 0.0 for method in STEPS[step])
    return more - less


def p_of(stages: Mapping[str, Runs], step: str, key: str) -> float | None:
    more, less = (stages[method] for method in STEPS[step])
    return p_value(more, less, key)


def _table(stages: Mapping[str, Runs]) -> str:
    """Scores of the stages, and between them what a step adds; at the end what both add."""
    scores = dict(zip(stages, score_cells(list(stages.values()), F1), strict=True))
    rows = []
    for step, (method, before) in STEPS.items():
        gaps = [f"{gap_of(stages, step, key):+.2f}, {p_words(p_of(stages, step, key))}" for key in F1]
        if step == "both":
            rows.append([f"*{step} together*", "", *gaps])
            continue
        if not rows:
            rows.append([stages[before].title, str(len(stages[before].records)), *scores[before]])
        rows.append([f"*{step}*", "", *gaps])
        rows.append([stages[method].title, str(len(stages[method].records)), *scores[method]])
    return markdown_table(["Stage", "Seeds", *HEADINGS.values()], rows)


def parts_words(found: Mapping[str, Mapping[str, Runs]]) -> str:
    """Each step by each score: the mean over sets, and on how many it goes up and down."""
    told = []
    for step, (more, less) in STEPS.items():
        cells = [f"{HEADINGS[key]} {_moves(found, step, key)}" for key in F1]
        told.append(f"{step[0].upper()}{step[1:]} (`{more}` over `{less}`): {'; '.join(cells)}.")
    sets = "one set" if len(found) == 1 else f"{len(found)} sets"
    words = f"Reading, as the mean over {sets}, and on how many of them it goes up and down:"
    return "\n".join([f"{words}\n", *(f"- {line}" for line in told)])


def _moves(found: Mapping[str, Mapping[str, Runs]], step: str, key: str) -> str:
    gaps = {name: gap_of(stages, step, key) for name, stages in found.items()}
    sure = {name for name, stages in found.items() if (p := p_of(stages, step, key)) is not None and p < LIMIT}
    told = []
    for way, sign in (("up", 1), ("down", -1)):
        moved = [name for name, gap in gaps.items() if sign * round(gap, 2) > 0]  # by what is printed
        certain = sum(name in sure for name in moved)
        told.append(f"{way} on {len(moved)}" + (f" ({certain} with p < {LIMIT})" if certain else ""))
    return f"{fmean(gaps.values()):+.2f}, {', '.join(told)}"
