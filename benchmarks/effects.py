"""What single choices of docs/details.md do: `python benchmarks/effects.py --members FOLDER --only funcat`.

`effects.toml` says which choices are made otherwise. Each is run beside the settings as they are, with the same seeds,
and judged on validation documents; the test split is never opened. What was found is kept in
`effects/<set>/<method>/<name>.json`, seed by seed: what is there already is not run again, so it may be ended at any
moment. All effects are run with the first seed before any is run with the second. `--members` names a folder of models
that `run.py --models` kept; those that stand on flat models of these are left out without it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from cells import F1, HEADINGS, markdown_table, spread
from records import HERE, SETS, read_object

from hilap.errors import HilapError, SettingError
from hilap.files import read_text, writing

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LIST, EFFECTS = HERE / "effects.toml", HERE / "effects"
KEYS = {"point", "name", "set", "method", "members", "changes", "published"}
TITLE = "## What single choices do"
WORDS = """\
[Details](details.md) lists where the paper leaves a choice open, or its program or ours does something else. Here one
choice at a time is made otherwise, and everything else stays (`benchmarks/effects.py`): the mean of the validation
documents' scores as they are, and below what each change adds to them or takes away, as the mean over seeds and its
spread, seed against the same seed. *Changed where it is more than twice its own uncertainty* (the spread over the root
of the number of seeds) in bold; of so many comparisons some are so by chance. The test split is not looked at."""


@dataclass(frozen=True)
class Effect:
    """One choice made otherwise; without changes, the settings as they are."""

    point: int
    name: str
    set: str
    method: str
    members: bool = False
    changes: tuple[str, ...] = ()
    published: str | None = None

    @property
    def plain(self) -> Effect:
        """What it is compared with."""
        return Effect(0, "as it is", self.set, self.method, self.members)

    def file(self, folder: Path = EFFECTS) -> Path:
        """Where its scores are kept."""
        return folder / self.set / self.method / f"{re.sub(r'[^a-z0-9]+', '-', self.name.lower()).strip('-')}.json"


def effects_of(path: Path = LIST) -> list[Effect]:
    """The list, checked."""
    found = []
    for given in tomllib.loads(read_text(path, SettingError)).get("effects", []):
        unknown, missing = {*given} - KEYS, {"point", "name", "set", "method"} - {*given}
        if unknown or missing or ("published" in given) == ("changes" in given):
            raise SettingError(
                f"{path.name}: an effect has point, name, set, method, and either changes or published; got {given}"
            )
        found.append(Effect(**{**given, "changes": tuple(given.get("changes", ()))}))
    files = [one.file() for one in found]
    twice = {one.name for one in found if files.count(one.file()) > 1 or one.file() == one.plain.file()}
    if twice:
        raise SettingError(f"{path.name}: names have to differ, got twice: {', '.join(sorted(twice))}")
    return found


# -- running ----------------------------------------------------------------------------------------------------------


def jobs(effects: Sequence[Effect], seeds: int, folder: Path) -> Iterator[tuple[Effect, int]]:
    """What has no scores yet: seed by seed, each set of settings as they are before what is compared with them."""
    for seed in range(seeds):
        found: dict[Path, Effect] = {}  # members or not, as they are it is one file: the result is the same
        for one in (each for effect in effects for each in (effect.plain, effect)):
            found.setdefault(one.file(folder), one)
        for one in found.values():
            if str(seed) not in scores_of(one, folder):
                yield one, seed


def scores_of(one: Effect, folder: Path = EFFECTS) -> dict[str, dict[str, Any]]:
    """Seed -> scores; nothing where it was not run."""
    path = one.file(folder)
    if not path.exists():
        return {}
    kept = read_object(path)
    if kept.get("settings") != settings_of(one):
        raise SettingError(f"{path}: it was run with other settings than those of today; move it away to begin anew")
    return dict(kept["seeds"])


def settings_of(one: Effect) -> Any:
    """Its settings, as JSON has them."""
    from run import settings_of as of_method

    return json.loads(json.dumps(of_method(one.method, one.set, list(one.changes))))


def measure(one: Effect, seed: int, members: Path | None, data: Path) -> dict[str, Any]:
    """Train, and judge on validation documents."""
    from published import HABITS
    from run import code_hash, run

    if one.published is not None and one.published not in HABITS:
        raise SettingError(f"published: one of {', '.join(HABITS)} is needed, got {one.published!r}")
    habit: AbstractContextManager[None] = nullcontext() if one.published is None else HABITS[one.published]()
    code = code_hash()
    with habit:
        lent = members if one.members else None
        found = run(
            one.set, one.method, seed, test=False, changes=list(one.changes), folder=data, models=None, members=lent
        )
    scores = {key: found["valid"][key] for key in F1}
    return {**scores, "cpu_seconds": found["training"]["cpu_seconds"], "code": code}


def keep(one: Effect, seed: int, scores: Mapping[str, Any], folder: Path) -> None:
    """Beside the other seeds."""
    path = one.file(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    seeds = dict(sorted({**scores_of(one, folder), str(seed): dict(scores)}.items()))
    kept = {**vars(one), "settings": settings_of(one), "seeds": seeds}
    with writing(path) as lines:
        lines.write(json.dumps(kept, indent=1) + "\n")


# -- the page ---------------------------------------------------------------------------------------------------------


def effects_section(names: Sequence[str], folder: Path = EFFECTS, path: Path = LIST) -> list[str]:
    """A table for each method with a line for each choice; nothing where none was measured on these sets."""
    groups: dict[tuple[str, str], list[Effect]] = {}
    for one in effects_of(path):
        if one.set in names and shared(one, folder):
            groups.setdefault((one.set, one.method), []).append(one)
    if not groups:
        return []
    parts = [TITLE, WORDS]
    for (name, method), group in groups.items():
        parts += [f"### {SETS.get(name, name)}: single choices of `{method}`", _table(group, folder)]
    return parts


def shared(one: Effect, folder: Path = EFFECTS) -> list[str]:
    """The seeds that were run both ways."""
    return sorted({*scores_of(one, folder)} & {*scores_of(one.plain, folder)})


def differences(one: Effect, key: str, folder: Path = EFFECTS) -> list[float]:
    """What it adds to a score, in points, seed by seed."""
    changed, plain = scores_of(one, folder), scores_of(one.plain, folder)
    return [100 * (changed[seed][key] - plain[seed][key]) for seed in shared(one, folder)]


def _table(group: Sequence[Effect], folder: Path) -> str:
    plain = scores_of(group[0].plain, folder)
    rows = [["", "*as it is*", str(len(plain)), *(spread([100 * one[key] for one in plain.values()]) for key in F1)]]
    for one in group:
        cells = [_cell(differences(one, key, folder)) for key in F1]
        rows.append([str(one.point), one.name, str(len(shared(one, folder))), *cells])
    return markdown_table(["Point", "Choice", "Seeds", *HEADINGS.values()], rows)


def _cell(values: Sequence[float]) -> str:
    """A difference with its sign; bold where it is more than twice its uncertainty."""
    mean = fmean(values)
    text = spread(values) if mean < 0 else f"+{spread(values)}"
    if len(values) < 2:
        return text
    error = (sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)) ** 0.5
    return f"**{text}**" if abs(mean) > 2 * error else text


def main() -> None:
    from run import DATA

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="SET[/METHOD]", help="these alone; may be given again")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--members", type=Path, help="models kept by run.py --models, that lend their flat models")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with the data sets")
    parser.add_argument("--out", type=Path, default=EFFECTS)
    parser.add_argument("--list", action="store_true", help="say what would be run, and run nothing")
    chosen = parser.parse_args()
    wanted = [one for one in effects_of() if chosen.members is not None or not one.members]
    if chosen.only:
        wanted = [one for one in wanted if {one.set, f"{one.set}/{one.method}"} & {*chosen.only}]
    if not wanted:
        raise SettingError(f"--only {chosen.only}: there is no such effect in {LIST.name} (some need --members)")
    for one, seed in list(jobs(wanted, chosen.seeds, chosen.out)):
        name = f"{one.set} {one.method} {seed}, {one.name}"
        if chosen.list:
            print(name)
            continue
        scores = measure(one, seed, chosen.members, chosen.data)
        keep(one, seed, scores, chosen.out)
        print(f"{name}: {' / '.join(f'{100 * scores[key]:.2f}' for key in F1)}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except HilapError as fault:
        raise SystemExit(str(fault)) from None
    except KeyboardInterrupt:
        sys.exit(130)
