"""What searches of settings found on validation documents, from the files that `search.py` keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cells import F1, HEADINGS, markdown_table
from records import HERE, SETS, read_object

SEARCHES = HERE / "searches"
TITLE = "## What a search of settings finds"
WORDS = """\
`python benchmarks/search.py` gives every system the same processor time to try other settings than those it has here
(`spaces.toml` says which), judged by the mean of the three scores on the validation documents, one seed, by optuna's
TPE; the test split is never opened. The flat networks under HiLAP are not trained again for every trial, and the time
they took counts as spent by the first. *As it is*: the settings of the tables above. *Best*: the best trial, on the
documents that chose it, so it is a lucky one. HiLAP's flat models are cross-fitted on the validation documents too:
gains compare between systems, scores do not."""


def search_section(names: Sequence[str], folder: Path = SEARCHES) -> list[str]:
    """One line for each search on these sets; nothing where none was made."""
    found = [read_object(path) for name in names for path in sorted((folder / name).glob("*.json"))]
    rows = [_row(one) for one in found if one["best"] is not None]
    headings = ["Set", "System", "Trials", "Processor minutes", "As it is", "Best", "Gain of the mean", "Changes"]
    return [TITLE, WORDS, markdown_table(headings, rows), search_words(found)] if rows else []


def _row(found: Mapping[str, Any]) -> list[str]:
    trials = [trial for trial in found["trials"] if trial["scores"] is not None]
    best = next(trial for trial in trials if trial["changes"] == found["best"]["changes"])
    failed = len(found["trials"]) - len(trials)
    count = f"{len(trials)} ({failed} failed)" if failed else str(len(trials))
    changes = ", ".join(f"`{key}` {_shown(value)}" for key, value in best["changes"].items()) or "none"
    scores = [" / ".join(f"{100 * trial['scores'][key]:.2f}" for key in F1) for trial in (trials[0], best)]
    minutes = f"{found['cpu_seconds'] / 60:.0f}"
    name = SETS.get(found["set"], found["set"])
    return [name, f"`{found['method']}`", count, minutes, *scores, f"{gain_of(found):+.2f}", changes]


def gain_of(found: Mapping[str, Any]) -> float:
    """What the best trial has more than the settings as they are, in points of the mean of the three scores."""
    plain = found["trials"][0]["scores"]
    return 100 * (found["best"]["score"] - sum(plain[key] for key in F1) / len(F1))


def _shown(value: Any) -> str:
    return json.dumps(value).replace('"', "").replace("{", "(").replace("}", ")")


def search_words(found: Sequence[Mapping[str, Any]]) -> str:
    """Who gains most by searching, set by set."""
    told = []
    for name in dict.fromkeys(one["set"] for one in found):
        gains = sorted(((gain_of(one), one["method"]) for one in found if one["set"] == name), reverse=True)
        told.append(f"on {SETS.get(name, name)} {', '.join(f'`{method}` {gain:+.2f}' for gain, method in gains)}")
    three = ", ".join(HEADINGS.values())
    return f"Reading: what the best trial adds to the mean of {three}: {'; '.join(told)}."
