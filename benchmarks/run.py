"""One system on one data set with one seed: `python benchmarks/run.py --set funcat --method hilap --seed 0 --test`.

Settings come from `settings/<method>.toml`: a table `all`, and one for each set that differs; `system` names a baseline
(without it, it is HiLAP) or a class of your own: "mine.py:Mine" in a file beside the settings, "package.module:Mine"
where it is installed (CONTRIBUTING.md says what it must have). The result goes to
`results/<set>/<method>/<seed>.json`; what is there already is not run again. Epochs, thresholds and biases are chosen
on the validation split. The test split is opened only with `--test`; without it the result has validation scores alone
and goes to `<seed>.valid.json`. `--models FOLDER` keeps the trained model, and `--test` later takes it from there if
its settings are the same: so a model can be judged on validation documents first, and is not trained twice.
Times are of training alone, by the clock on the wall and by the processor's. What kernels took to compile, which the
first run in a new clone has to do and no later one, is left out of them, and stands beside them as `compiling`.
In encoder options `data:` begins a path in the data directory, `package:` one in an installed package, and `cache:` one
in `build/cache`, where vectors of texts are kept from run to run (what is kept there is not counted as time again).
`--members FOLDER` takes the flat models of such a model, whose other settings may differ: the result is the same as
without, in a fraction of the time; their share of the training time is added to that of the run.

`like = "svm"` in a file of settings: they are that method's but for what else is said. Two more words say that a method
shares what another one has trained; with `--models` it is trained once. `of = "textcnn-flat"`: the model is that
method's, and what else is said changes how labels are read off it. `members_of = "textcnn-hilap"`: the settings are
that method's with changes, the flat models the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

from curves import curves_of  # noqa: E402

from hilap.corpus import Examples  # noqa: E402
from hilap.corpus.datasets import DATASETS, load, load_folder  # noqa: E402
from hilap.errors import HilapError, SettingError  # noqa: E402
from hilap.files import writing  # noqa: E402
from hilap.metrics import example, macro, micro  # noqa: E402
from hilap.metrics.ranking import pooled_area  # noqa: E402
from hilap.metrics.report import Report, report  # noqa: E402

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(os.environ.get("HILAP_DATA", HERE.parent.parent / "shared" / "data"))
CACHE = HERE.parent / "build" / "cache"
RESULTS = HERE / "results"
OPTIONS = ("encoder_options", "wide_vector_options")  # settings that may name places
OURS = ("system", "members_of")  # words in a file of settings that are no settings of a classifier
CLOCKS = ("seconds", "cpu_seconds")  # by the clock on the wall, and by the processor's
NEEDED = ("fit", "predict", "predict_proba", "save", "load")  # what a class of one's own must have
FROM = ("src", "benchmarks/run.py", "benchmarks/curves.py", "benchmarks/settings")  # what a result is made from
MOST_PAIRS = 8_000_000  # of document and label whose probabilities are asked for at once
BLOCK = 256  # documents: HiLAP decodes so many together
NAMESPACES = ("GO0003674", "GO0005575", "GO0008150")  # every example of GO carries these three roots


def parts_of(name: str, folder: Path) -> dict[str, Examples]:
    """The splits of a set: one of the paper's from its official files, else a folder in our own format."""
    return load(name, folder / name) if name in DATASETS else load_folder(folder / name)


def settings_of(method: str, name: str, changes: list[str]) -> dict[str, Any]:
    """The settings of a method on a set, from its file, with changes such as `encoder_options.dropout=0.5`."""
    path = HERE / "settings" / f"{method}.toml"
    if not path.is_file():
        raise SystemExit(f"there is no method {method!r}; there are: {', '.join(methods())}")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    settings = {**tables.get("all", {}), **tables.get(name, {})}
    if "members_of" in settings:
        settings = {**settings_of(settings["members_of"], name, []), **settings}
    if "like" in settings:
        settings = {**settings_of(settings.pop("like"), name, []), **settings}
    for change in changes:
        key, _, value = change.partition("=")
        settings = _changed(settings, key.split("."), tomllib.loads(f"value = {value}")["value"])
    return settings


def _changed(settings: dict[str, Any], keys: list[str], value: Any) -> dict[str, Any]:
    """With another value; `encoder_options.dropout` is one in a table, whose others stay."""
    table = settings.get(keys[0], {})
    if len(keys) > 1 and not isinstance(table, dict):
        raise SystemExit(f"{keys[0]} is no table of options but {table!r}; change it as a whole: {keys[0]}=VALUE")
    inner = value if len(keys) == 1 else _changed(table, keys[1:], value)
    return {**settings, keys[0]: inner}


def located(settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The settings with places for `data:`, `package:` and `cache:`, so that no file of settings names a machine's."""
    found = dict(settings)
    for name in OPTIONS:
        if name in settings:
            options = settings[name].items()
            found[name] = {key: _place(value, folder) if isinstance(value, str) else value for key, value in options}
    return found


def _place(value: str, folder: Path) -> str:
    kind, mark, path = value.partition(":")
    if mark and kind in ("data", "cache"):
        return str((folder if kind == "data" else CACHE) / path)
    if mark and kind == "package":
        package, _, inside = path.partition("/")
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise SystemExit(f"the package {package} is not here; install it: pip install {package.replace('_', '-')}")
        return str(Path(spec.origin).parent / inside)
    return value


def methods() -> list[str]:
    return sorted(path.stem for path in (HERE / "settings").glob("*.toml"))


def run(
    name: str,
    method: str,
    seed: int,
    *,
    test: bool,
    changes: list[str],
    folder: Path,
    models: Path | None,
    members: Path | None = None,
) -> dict[str, Any]:
    """Train, choose on validation, and look at the test split if asked to."""
    import torch

    torch.set_num_threads(1)  # two runs side by side use two cores better than one run on both
    parts = parts_of(name, folder)
    settings = settings_of(method, name, changes)
    owner = settings.get("of", method)
    learned = settings_of(owner, name, []) if "of" in settings else settings
    model = None if models is None else models / name / owner / str(seed)
    lender = lender_of(name, settings.get("members_of"), seed, models)
    if members is not None:  # asked for, so it must be there
        lender = members / name / settings.get("members_of", method) / str(seed)
    made, trained = trained_model({**learned, "seed": seed}, parts, model, lender, folder=folder)
    if "of" in settings:
        made = read_otherwise(made, {key: value for key, value in settings.items() if key != "of"}, parts)
    found: dict[str, Any] = {
        "set": name,
        "method": method,
        "seed": seed,
        "settings": settings,
        **({"trained_with": learned} if "of" in settings else {}),
        "decoding": decoding_of(made),
        **trained,
        "history": [_rounded(record) for record in history_of(made) if "select" in record],
        "valid": {key: _round(value) for key, value in validation_of(made, parts).scores.items()},
        **solver_of(made),
    }
    if test:
        found["test"] = on_test(made, parts, found)
        found["shape"] = shape_of(parts)
    return found


def shape_of(parts: dict[str, Examples]) -> dict[str, Any]:
    """What a set is like, as in the paper's Table 1: labels with all ancestors, levels of the longest way down."""
    train, sizes = parts["train"], {part: len(parts[part]) for part in ("train", "valid", "test")}
    taxonomy, placed = train.taxonomy, sum(int(parts[part].labels.sum()) for part in sizes)
    inputs = ["texts"] if train.texts is not None else []
    return {
        "inputs": " and ".join(inputs + ([] if train.features is None else [f"{train.features.shape[1]:,} features"])),
        "labels": len(taxonomy),
        "structure": "tree" if taxonomy.is_tree else "DAG",
        "levels": taxonomy.depth,
        "labels_per_document": round(placed / sum(sizes.values()), 2),
        **sizes,
    }


def lender_of(name: str, method: str | None, seed: int, models: Path | None) -> Path | None:
    """The kept model of the method that members are of, if there is one; without it they are trained anew."""
    if models is None or method is None:
        return None
    lender = models / name / method / str(seed)
    return lender if lender.with_suffix(".json").is_file() else None


def read_otherwise(made: Any, changes: dict[str, Any], parts: dict[str, Examples]) -> Any:
    """The same model with labels read off it in another way, and its validation scores."""
    if not hasattr(made, "with_decoding"):
        raise SettingError(
            f"of: {type(made).__name__} has no with_decoding, so {', '.join(changes)} cannot change after training; "
            "add it to the class, or write settings of its own instead of `of`"
        )
    other = made.with_decoding(**changes)
    other.validation_ = judged(other, parts)
    return other


def judged(made: Any, parts: dict[str, Examples]) -> Report:
    """How well a model does on the validation documents."""
    valid, counts = parts["valid"], np.asarray(parts["train"].labels.sum(0)).ravel()
    return report(valid.labels, made.predict(valid), valid.taxonomy, training=counts, lca=False)


def validation_of(made: Any, parts: dict[str, Examples]) -> Report:
    """What a model says of itself on the validation documents; one that says nothing is asked now."""
    known = getattr(made, "validation_", None)
    return judged(made, parts) if known is None else known


def history_of(made: Any) -> list[dict[str, Any]]:
    """Its training, epoch by epoch; of a class of one's own it may be unknown."""
    return list(getattr(made, "history_", ()))


def decoding_of(made: Any) -> dict[str, Any]:
    """What validation chose: HiLAP's decoding, or a baseline's thresholds."""
    if hasattr(made, "decode_"):
        return dict(made.decode_.to_dict())
    thresholds = getattr(made, "thresholds_", None)
    if thresholds is None:  # a class of one's own need not have any
        return {}
    return {"threshold": _round(float(thresholds.mean())), "thresholds_differ": bool(np.ptp(thresholds) > 0)}


def solver_of(made: Any) -> dict[str, Any]:
    """How far a solver came that goes round after round without being judged: its last record."""
    rounds = [record for record in history_of(made) if record.get("phase") in ("passes", "rounds", "sweeps")]
    return {"solver": _rounded(rounds[-1])} if rounds else {}


# -- the system -------------------------------------------------------------------------------------------------------


def kind_of(settings: dict[str, Any]) -> Any:
    """The class of the system that settings are for."""
    if "system" not in settings:
        from hilap import HiLAPClassifier

        return HiLAPClassifier
    if is_own(settings):
        return own_class(settings["system"])
    from hilap.baselines import method

    return method(settings["system"])


def is_own(settings: dict[str, Any]) -> bool:
    """Whether the system is a class of one's own, named as `place:Class`, and not one of hilap's."""
    system = settings.get("system")
    return isinstance(system, str) and (":" in system or system.endswith(".py"))


def own_class(system: str) -> Any:
    """The class named as `mine.py:Mine`, a file beside the settings, or as `package.module:Mine`.

    It is the researcher's own code, and importing it runs it, as running a script of theirs would.
    """
    place, _, name = system.rpartition(":")
    if not place or not name.isidentifier():
        raise SettingError(f"system must be 'FILE.py:CLASS' or 'MODULE:CLASS', got {system!r}")
    module = _module_of_file(place, system) if place.endswith(".py") else _module_named(place, system)
    kind = getattr(module, name, None)
    if not isinstance(kind, type):
        there = [word for word, value in vars(module).items() if isinstance(value, type)]
        raise SettingError(
            f"system: there is no class {name} in {place}, got {system!r}; there are: {', '.join(there)}"
        )
    missing = [word for word in NEEDED if not callable(getattr(kind, word, None))]
    if missing:
        raise SettingError(
            f"system: {name} of {place} has no {', '.join(missing)}; the bench calls {', '.join(NEEDED)}, which a "
            "subclass of hilap.baselines.base.Baseline has"
        )
    return kind


def _module_of_file(place: str, system: str) -> Any:
    path = HERE / "settings" / place
    if not path.is_file():
        raise SettingError(f"system: there is no file {path}, got {system!r}; put it there, or correct the name")
    spec = spec_from_file_location(f"own_system_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SettingError(f"system: {path} cannot be imported; give a Python file")
    module = sys.modules[spec.name] = module_from_spec(spec)  # there, so that its classes can be found again
    spec.loader.exec_module(module)
    return module


def _module_named(place: str, system: str) -> Any:
    try:
        return import_module(place)
    except ModuleNotFoundError as fault:
        if fault.name is None or not f"{place}.".startswith(f"{fault.name}."):
            raise  # the module is there; what it imports itself is not
        raise SettingError(
            f"system: there is no module {place!r}, got {system!r}; install it, or put a file beside the settings: "
            "'mine.py:Mine'"
        ) from None


def sources_of(settings: dict[str, Any], kind: Any) -> list[Path]:
    """The files of a class of one's own: the one that is named, and the one that has the class; none for hilap's."""
    if not is_own(settings):
        return []
    place = settings["system"].rpartition(":")[0]
    named = HERE / "settings" / place if place.endswith(".py") else sys.modules[place].__file__
    home = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return sorted({Path(found).resolve() for found in (named, home) if found is not None})


def lent(lender: Path, data: dict[str, str]) -> tuple[Any, dict[str, float]]:
    """A model that lends its members, and what of its training time, by either clock, was theirs."""
    from hilap import HiLAPClassifier

    if not lender.with_suffix(".json").is_file():
        raise SystemExit(f"--members: there is no model {lender}; keep one there with --models, or leave --members out")
    note = json.loads(lender.with_suffix(".json").read_text(encoding="utf-8"))
    if note["data"] != data:
        raise SystemExit(f"{lender}: this model was trained on other data")
    made = HiLAPClassifier.load(lender)
    if "members" in note["training"]:  # lent to the lender too: its own history does not have them
        return made, note["training"]["members"]
    seconds = [(record["phase"].startswith("flat"), record.get("seconds", 0.0)) for record in made.history_]
    share = sum(spent for flat, spent in seconds if flat) / max(1e-9, sum(spent for _, spent in seconds))
    return made, {clock: share * float(note["training"][clock]) for clock in CLOCKS}


def compiling() -> dict[str, float]:
    """What this process has spent on compiling kernels so far, by both clocks; nothing where it has none."""
    module = sys.modules.get("hilap.compiling")  # numba's memory is no part of a system that does without it
    return dict.fromkeys(CLOCKS, 0.0) if module is None else {clock: getattr(module.SPENT, clock) for clock in CLOCKS}


def clocks() -> dict[str, float]:
    """Both clocks, which stand still while kernels are compiled: who comes first would pay for all who follow."""
    now, spent = {"seconds": time.perf_counter(), "cpu_seconds": time.process_time()}, compiling()
    return {clock: now[clock] - spent[clock] for clock in CLOCKS}


def trained_model(
    settings: dict[str, Any],
    parts: dict[str, Examples],
    model: Path | None,
    lender: Path | None = None,
    *,
    folder: Path = DATA,
) -> tuple[Any, dict[str, Any]]:
    """The model, trained now or taken from where an earlier run has kept it, and what its training was."""
    kind = kind_of(settings)
    own = sources_of(settings, kind)
    data = {part: hash_of(parts[part]) for part in ("train", "valid", "test")}
    facts: dict[str, Any] = {"settings": settings, "data": data}
    if own:  # code of one's own changes from day to day: a model of yesterday's is not today's
        facts["own"] = hash_of_files(own)
    note = None if model is None else model.with_suffix(".json")
    if note is not None and note.is_file():
        kept = json.loads(note.read_text(encoding="utf-8"))
        if {key: kept.get(key) for key in facts} == json.loads(json.dumps(facts)):
            known = {key: kept[key] for key in ("training", "peak_mb", "versions", "data", "code")}
            return kind.load(model), {**known, "commit": kept.get("commit")}
    code, commit = code_hash(own), commit_of()  # of what is imported now, not of what is there when training has ended
    helps: dict[str, Any] = {}
    before = dict.fromkeys(CLOCKS, 0.0)
    if lender is not None:
        if "system" in settings:
            raise SystemExit(f"--members: {settings['system']} has no flat models of HiLAP's; leave it out")
        helps["members"], before = lent(lender, data)
    began, at_first = clocks(), compiling()
    given = {key: value for key, value in located(settings, folder).items() if key not in OURS}
    made = kind(**given).fit(parts["train"], valid=parts["valid"], **helps)
    ended, at_last = clocks(), compiling()
    packages = ("torch", "numpy", "scikit-learn")
    compiled = {clock: round(at_last[clock] - at_first[clock], 1) for clock in CLOCKS}
    trained = {
        "training": {clock: round(ended[clock] - began[clock] + before[clock], 1) for clock in CLOCKS}
        | ({"compiling": compiled} if any(compiled.values()) else {})
        | ({"members": {clock: round(before[clock], 1) for clock in CLOCKS}} if lender is not None else {}),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "versions": {"python": platform.python_version()} | {package: version(package) for package in packages},
        "data": data,
        "code": code,
        "commit": commit,
    }
    if model is not None and note is not None:
        model.parent.mkdir(parents=True, exist_ok=True)
        made.save(model)
        with writing(note) as lines:
            lines.write(json.dumps({**facts, **trained}))
    return made, trained


def on_test(made: Any, parts: dict[str, Examples], found: dict[str, Any]) -> dict[str, Any]:
    """All metrics on the test split; Macro-F1 over labels with documents in (train or valid) and test."""
    test, taxonomy = parts["test"], parts["test"].taxonomy
    began = clocks()["cpu_seconds"]
    predicted = made.predict(test)
    seconds = clocks()["cpu_seconds"] - began
    found["prediction"] = {"documents_per_cpu_second": round(len(test) / seconds, 1)}
    counts = np.asarray(parts["train"].labels.sum(0) + parts["valid"].labels.sum(0)).ravel()
    scores = chances_of(made, test)
    result = report(test.labels, predicted, taxonomy, scores=scores, training=counts, macro="both", lca=False)
    flat = {key: _round(value) for key, value in result.scores.items()} | {"macro_labels": result.macro_labels}
    flat["au_prc_interpolated"] = _round(pooled_area(test.labels, scores, "interpolated"))  # as Clus has it
    roots = [label for label in NAMESPACES if label in taxonomy]
    if roots:
        keep = np.setdiff1d(np.arange(len(taxonomy)), [taxonomy.index(label) for label in roots])
        gold, found_rest, seen = test.labels[:, keep], predicted[:, keep], counts[keep]
        rest = {"micro_f1": micro(gold, found_rest), "example_f1": example(gold, found_rest)}
        rest["macro_f1"] = macro(gold, found_rest, over="both", training=seen)
        flat |= {f"rootless_{key}": _round(value.f1) for key, value in rest.items()}
        for key, curve in (("au_prc_pooled", "average_precision"), ("au_prc_interpolated", "interpolated")):
            flat[f"rootless_{key}"] = _round(pooled_area(gold, scores[:, keep], curve))
    found["counts"] = counts_of(test.labels, predicted)
    found["counts"]["labels"] |= {"training": _text(counts), "level": _text(taxonomy.levels)}
    found |= curves_of(test.labels, scores)
    return flat


def chances_of(made: Any, examples: Examples) -> np.ndarray:
    """(n, L) probabilities, where there are many documents block after block: the same, as each depends on its own.

    A linear system holds its margins and what becomes of them as float64, several times over: of all 781,265 test
    documents of RCV1 together that would be gigabytes. Whole blocks of HiLAP's stay together, as samples that it may
    draw depend on a document's place in one.
    """
    n, labels = examples.labels.shape
    size = max(MOST_PAIRS // labels // BLOCK, 1) * BLOCK
    first = made.predict_proba(examples if n <= size else examples.take(range(size)))
    if n <= size:
        return first
    found = np.empty((n, labels), dtype=first.dtype)
    found[:size] = first
    for start in range(size, n, size):
        rows = range(start, min(start + size, n))
        found[start : rows.stop] = made.predict_proba(examples.take(rows))
    return found


def counts_of(gold: Any, predicted: Any) -> dict[str, dict[str, str]]:
    """For Figure 4 and tests of significance: for each document and each label, how many were right, placed, gold.

    As texts of numbers: a list would be one line for each of thousands of numbers.
    """
    three = {"right": gold.multiply(predicted), "placed": predicted, "gold": gold}
    return {
        over: {key: _text(np.asarray(matrix.sum(axis)).ravel()) for key, matrix in three.items()}
        for over, axis in (("documents", 1), ("labels", 0))
    }


def _text(numbers: np.ndarray) -> str:
    return " ".join(str(number) for number in numbers.astype(np.int64).tolist())


def hash_of(examples: Examples) -> str:
    from hilap.training.data import _fingerprint

    return _fingerprint(examples)[:16]


def code_hash(own: Sequence[Path] = ()) -> str:
    """A hash of the library's source, and of files of one's own: results with the same one come from the same code."""
    return hash_of_files([*sorted((HERE.parent / "src" / "hilap").rglob("*.py")), *own])


def hash_of_files(paths: Iterable[Path]) -> str:
    """A hash of what is in files, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def commit_of() -> str | None:
    """The commit that is checked out, with a `+` where what a result is made from differs from it.

    None where there is no git, or no repository of this project's own. Nothing is written, not even git's index.
    """
    root = HERE.parent
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment["GIT_OPTIONAL_LOCKS"] = "0"

    def answer(*words: str) -> list[str] | None:
        command = ["git", "-C", str(root), *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        except OSError:
            return None
        return done.stdout.splitlines() if done.returncode == 0 else None

    found = answer("rev-parse", "--show-toplevel", "--short", "HEAD")
    changed = answer("status", "--porcelain", "--", *FROM)
    if found is None or changed is None or Path(found[0]) != root.resolve():
        return None
    return found[1] + ("+" if changed else "")


def _round(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _rounded(record: dict[str, Any]) -> dict[str, Any]:
    return {key: _round(value) for key, value in record.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", required=True, help="funcat, go, or a folder of the data directory")
    parser.add_argument("--method", required=True, help=f"one of: {', '.join(methods())}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--test", action="store_true", help="look at the test split: once, at the end")
    parser.add_argument("--change", action="append", default=[], metavar="KEY=VALUE", help="a setting, as TOML")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with the data sets")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--models", type=Path, help="keep trained models here, and take them from here")
    parser.add_argument("--members", type=Path, help="models kept by an earlier run, that lend their flat models")
    parser.add_argument("--again", action="store_true", help="run it even where there is a result")
    chosen = parser.parse_args()
    if chosen.change and chosen.test and chosen.out.resolve() == RESULTS:
        raise SettingError(
            f"--change with --test would write {', '.join(chosen.change)} where results of the settings as they are "
            "belong; name another folder with --out, or write a file of settings for it"
        )
    path = chosen.out / chosen.set / chosen.method / f"{chosen.seed}{'' if chosen.test else '.valid'}.json"
    if path.exists() and not chosen.again:
        return print(f"{path.relative_to(chosen.out)} is there already; --again runs it again")
    found = run(
        chosen.set,
        chosen.method,
        chosen.seed,
        test=chosen.test,
        changes=chosen.change,
        folder=chosen.data,
        models=chosen.models,
        members=chosen.members,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as lines:
        lines.write(json.dumps(found, indent=1) + "\n")
    part = found.get("test") or found["valid"]
    shown = " / ".join(f"{100 * part[key]:.2f}" for key in ("micro_f1", "macro_f1", "example_f1"))
    return print(f"{chosen.set} {chosen.method} {chosen.seed}: {shown} ({'test' if chosen.test else 'validation'})")


if __name__ == "__main__":
    try:
        main()
    except HilapError as fault:  # what, where, what was given, what to do: no traceback says it better
        raise SystemExit(str(fault)) from None
