"""Search settings on validation documents: `python benchmarks/search.py --set funcat --method hilap --minutes 60`.

`spaces.toml` says what may be changed. Every method gets the same processor time, as many trials as are likely to fit
into it, and the same way of searching (optuna's TPE); its first trial is the settings as they are. A trial is judged by
the mean of Micro-F1, Macro-F1 and EBF on the validation split, which also chose its epochs and thresholds: the best of
many is a lucky one, so what it is worth is for other seeds and, once, for the test split to say (`run.py`). The test
split is never opened here. Trials are kept in `searches/<set>/<method>.json`: a search that was ended goes on from
there, and a trial that failed is one of them; with another seed or other settings it has to be another file.
`--members FOLDER` lends HiLAP the flat models that `run.py --models FOLDER` kept, so that a trial is the walk alone;
what may be changed is then in the tables `members_of_<method>`, and the time that the flat models took counts as spent
by the first trial. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run import DATA, HERE, HilapError, code_hash, hash_of, lent, methods, parts_of, run, settings_of, tomllib, writing

from hilap.errors import SettingError, require

SPACES, SEARCHES = HERE / "spaces.toml", HERE / "searches"
MOST_FAILED = 20  # trials one after the other, which end a search
SCORES = ("micro_f1", "macro_f1", "example_f1")
Params = dict[str, Any]
Scores = Mapping[str, float]


@dataclass(frozen=True)
class Trial:
    """Some changes of settings, and what came of them."""

    changes: Params
    scores: Params | None  # None: it failed
    cpu_seconds: float
    error: str | None = None
    code: str = ""  # the version of the program that made it

    @property
    def score(self) -> float | None:
        """The mean of the three scores."""
        return None if self.scores is None else sum(self.scores[name] for name in SCORES) / len(SCORES)


# -- what may be changed ----------------------------------------------------------------------------------------------


def space_of(method: str, name: str, tables: Mapping[str, Any]) -> dict[str, Params]:
    """The ranges of a method on a set, checked."""
    found = tables.get(method, {})
    ranges: dict[str, Params] = found.get(name, found.get("all", {}))
    if not ranges:
        raise SettingError(
            f"{SPACES.name} has nothing to search for {method} on {name}; it has: {', '.join(tables)}. Add a table "
            f"[{method}.{name}]"
        )
    for key, given in ranges.items():
        _check_range(f"{method}.{name}.{key}", given)
    return ranges


def _check_range(where: str, given: Any) -> None:
    choices = given.get("choices") if isinstance(given, dict) else None
    if choices is not None:
        require(len(given) == 1 and len(choices) > 1, where, "at least two choices, and nothing else", given)
        return
    known = isinstance(given, dict) and {"low", "high"} <= {*given} <= {"low", "high", "log", "whole"}
    require(known and given["low"] < given["high"], where, "choices, or numbers from low to high", given)
    require(not given.get("log") or given["low"] > 0, where, "above 0 where it is on a scale of powers", given)


def change_of(key: str, value: Any) -> str:
    """What `run.py --change` takes."""
    return f"{key}={_toml(value)}"


def _toml(value: Any) -> str:
    """A value as TOML: JSON, but for tables."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)


# -- searching --------------------------------------------------------------------------------------------------------


def search(
    ranges: Mapping[str, Params],
    judge: Callable[[Params], Scores],
    trials: list[Trial],
    *,
    seconds: float,
    seed: int,
    keep: Callable[[list[Trial]], None],
    before: float = 0.0,
    clock: Callable[[], float] = time.process_time,
) -> list[Trial]:
    """Trials, those that are there already first, until they have taken so many seconds of processor time.

    Parameters
    ----------
    judge
        Changes of settings -> scores on validation documents. What it raises makes a failed trial; where the settings
        as they are fail, or twenty trials one after the other, the search ends.
    keep
        Called after every trial with all of them.
    before
        Processor time that all trials build on, such as that of flat models they share: counted with the first one.
    """
    study = _study(ranges, trials, seed)
    while _one_more(trials, seconds, before):
        asked = study.ask(_distributions(ranges)) if trials else None
        changes = {} if asked is None else {key: _found(asked.params[key], ranges[key]) for key in ranges}
        code, began = code_hash(), clock()
        scores, error = _judged(judge, changes)
        if scores is None and not trials:  # not a matter of what is tried: all others would fail too, at no cost
            raise SettingError(f"the settings as they are cannot be judged, so there is nothing to search: {error}")
        spent = clock() - began + (0.0 if trials else before)
        trials = [*trials, Trial(changes, scores, spent, error, code)]
        if asked is not None:
            _tell(study, asked, trials[-1].score)
        keep(trials)
    return trials


def _one_more(trials: list[Trial], seconds: float, before: float) -> bool:
    """Whether another trial is likely to fit into the time: the mean of those so far does."""
    if len(trials) > MOST_FAILED and all(trial.scores is None for trial in trials[-MOST_FAILED:]):
        return False  # what fails costs next to nothing: the time would never be spent
    spent = sum(trial.cpu_seconds for trial in trials)
    return not trials or spent + (spent - before) / len(trials) <= seconds


def _judged(judge: Callable[[Params], Scores], changes: Params) -> tuple[Params | None, str | None]:
    """Its scores, or why there are none."""
    try:
        found = judge(changes)
    except Exception as fault:  # whatever it is, the other trials are worth having
        return None, f"{type(fault).__name__}: {fault}"
    scores = {name: float(found[name]) for name in SCORES}
    return (scores, None) if all(map(math.isfinite, scores.values())) else (None, f"not a number: {scores}")


def best_of(trials: list[Trial]) -> Trial | None:
    """The one with the highest score; the earlier of equals."""
    return max((trial for trial in trials if trial.score is not None), key=lambda trial: trial.score, default=None)


def _study(ranges: Mapping[str, Params], trials: list[Trial], seed: int) -> Any:
    """A study that knows the trials. Its draws go on from their number, so that a search that is resumed draws new."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed + len(trials)))
    distributions = _distributions(ranges)
    for trial in trials:
        if {*trial.changes} == {*ranges} and all(_fits(trial.changes[key], ranges[key]) for key in ranges):
            params = {key: _as_known(value, ranges[key]) for key, value in trial.changes.items()}
            state = optuna.trial.TrialState.FAIL if trial.score is None else optuna.trial.TrialState.COMPLETE
            known = {"params": params, "distributions": distributions, "value": trial.score, "state": state}
            study.add_trial(optuna.trial.create_trial(**known))
    return study


def _tell(study: Any, asked: Any, score: float | None) -> None:
    import optuna

    if score is None:
        study.tell(asked, state=optuna.trial.TrialState.FAIL)
    else:
        study.tell(asked, score)


def _distributions(ranges: Mapping[str, Params]) -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    found: dict[str, Any] = {}
    for key, given in ranges.items():
        if "choices" in given:  # as text: optuna takes no lists
            found[key] = CategoricalDistribution([json.dumps(value) for value in given["choices"]])
        else:
            kind = IntDistribution if given.get("whole") else FloatDistribution
            found[key] = kind(given["low"], given["high"], log=bool(given.get("log")))
    return found


def _fits(value: Any, given: Params) -> bool:
    """Whether a value is in the range: the ranges may have been changed since."""
    if "choices" in given:
        return value in given["choices"]
    return isinstance(value, int | float) and given["low"] <= value <= given["high"]


def _as_known(value: Any, given: Params) -> Any:
    """A value as optuna knows it."""
    return json.dumps(value) if "choices" in given else value


def _found(value: Any, given: Params) -> Any:
    """A value that optuna drew, as settings have it; numbers with four digits, which are worth writing down."""
    if "choices" in given:
        return json.loads(value)
    return value if given.get("whole") else min(max(float(f"{value:.4g}"), given["low"]), given["high"])


# -- the file ---------------------------------------------------------------------------------------------------------


def read_trials(path: Path, of: Mapping[str, Any]) -> list[Trial]:
    """The trials of a search; none where there is no file. `of`: what must be the same, such as the seed."""
    if not path.exists():
        return []
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        trials = [
            Trial(dict(one["changes"]), one["scores"], float(one["cpu_seconds"]), one["error"], one["code"])
            for one in content["trials"]
        ]
    except (ValueError, KeyError, TypeError) as fault:
        raise SettingError(f"{path}: this is no file of a search ({fault!r}); move it away to begin anew") from None
    for key, value in of.items():
        if content.get(key) != value:
            raise SettingError(
                f"{path}: it was searched with {key} {content.get(key)!r}, now it is {value!r}, and trials of both "
                "cannot be compared; move it away to begin anew, or name another folder with --out"
            )
    return trials


def write_trials(path: Path, of: Mapping[str, Any], trials: list[Trial]) -> None:
    """All trials, the best named first."""
    best = best_of(trials)
    content = {
        **of,
        "cpu_seconds": round(sum(trial.cpu_seconds for trial in trials), 1),
        "best": None if best is None else {"changes": best.changes, "score": best.score},
        "trials": [vars(trial) for trial in trials],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as lines:
        lines.write(json.dumps(content, indent=1) + "\n")


def shown(trial: Trial, number: int, as_they_are: Trial) -> str:
    """One line for a trial."""
    if trial.scores is None:
        return f"{number}: failed, {trial.error}"
    figures = " / ".join(f"{100 * trial.scores[name]:.2f}" for name in SCORES)
    gain = (
        "" if as_they_are.score is None or trial.score is None else f" ({100 * (trial.score - as_they_are.score):+.2f})"
    )
    changes = ", ".join(f"{key}={value}" for key, value in trial.changes.items()) or "as it is"
    return f"{number}: {figures}{gain}, {trial.cpu_seconds:.0f} s: {changes}"


def members_seconds(name: str, method: str, seed: int, members: Path, folder: Path) -> float:
    """The processor time that flat models took which are lent to every trial."""
    data = {part: hash_of(examples) for part, examples in parts_of(name, folder).items()}
    return lent(members / name / method / str(seed), data)[1]["cpu_seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", required=True, help="funcat, go, or a folder of the data directory")
    parser.add_argument("--method", required=True, action="append", help=f"one or more of: {', '.join(methods())}")
    parser.add_argument("--minutes", type=float, required=True, help="processor time for each method")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with the data sets")
    parser.add_argument("--members", type=Path, help="models kept by run.py, that lend their flat models")
    parser.add_argument("--out", type=Path, default=SEARCHES)
    chosen = parser.parse_args()
    tables = tomllib.loads(SPACES.read_text(encoding="utf-8"))
    table = "{}" if chosen.members is None else "members_of_{}"
    spaces = {method: space_of(table.format(method), chosen.set, tables) for method in chosen.method}
    for method, ranges in spaces.items():
        path = chosen.out / chosen.set / f"{method}.json"
        plain = settings_of(method, chosen.set, [])
        of = {"set": chosen.set, "method": method, "seed": chosen.seed, "settings": plain}
        before = 0.0
        if chosen.members is not None:
            of["members"] = True
            before = members_seconds(chosen.set, method, chosen.seed, chosen.members, chosen.data)

        def judge(changes: Params, method: str = method) -> Scores:
            listed = [change_of(key, value) for key, value in changes.items()]
            options: Any = {"test": False, "folder": chosen.data, "models": None, "members": chosen.members}
            scores: Scores = run(chosen.set, method, chosen.seed, changes=listed, **options)["valid"]
            return scores

        def keep(trials: list[Trial], path: Path = path, of: Params = of, method: str = method) -> None:
            write_trials(path, of, trials)
            print(f"{chosen.set} {method} {shown(trials[-1], len(trials), trials[0])}", flush=True)

        known, limit = read_trials(path, of), 60 * chosen.minutes
        found = search(ranges, judge, known, seconds=limit, seed=chosen.seed, keep=keep, before=before)
        best = best_of(found)
        if best is not None:
            print(f"{chosen.set} {method}: best of {len(found)} is {shown(best, found.index(best) + 1, found[0])}")


if __name__ == "__main__":
    try:
        main()
    except HilapError as fault:
        raise SystemExit(str(fault)) from None
    except ImportError as fault:
        raise SystemExit(f"{fault}; install the extra: pip install 'hilap[bench]'") from None
    except KeyboardInterrupt:
        sys.exit(130)
