"""The result files that `run.py` writes, read and checked: what `table.py` and the figures are made from."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

from hilap.errors import HilapError  # noqa: E402
from hilap.files import read_text  # noqa: E402

SETS = {
    "funcat": "FunCat (cellcycle)",
    "go": "Gene Ontology (cellcycle)",
    "rcv1": "RCV1",
    "nyt": "NYT",
    "yelp": "Yelp",
    "arxiv": "arXiv abstracts",
    "trove": "PyPI descriptions (trove)",
    "medline": "MEDLINE abstracts",
}
CALLED = {"funcat": "FunCat", "go": "GO", "arxiv": "arXiv", "medline": "MEDLINE"}  # in a sentence
ABLATION = {  # method -> the row's name in the paper
    "flat-only": "Flat-Only",
    "hilap-sl-noflat": "HiLAP-SL-NoFlat",
    "hilap-sl": "HiLAP-SL",
    "hilap-nosl": "HiLAP-NoSL",
    "hilap-noflat": "HiLAP-NoFlat",
    "hilap-paper": "HiLAP",
}
BASELINES = {
    "flat": "Flat network, tuned",
    "flat-refit": "Flat network, tuned, all documents",
    "flat-half": "Flat network of the paper, 0.5",
    "flat-scut": "Flat network, a threshold for each label",
    "conditional": "Conditional sigmoids, tuned",
    "conditional-adjusted": "Conditional sigmoids, adjusted logits, tuned",
    "c-hmcnn": "C-HMCNN, tuned",
    "c-hmcnn-refit": "C-HMCNN, tuned, all documents",
    "c-hmcnn-paper": "C-HMCNN as its authors train it, tuned",
    "hmcn": "HMCN-F, sum first, 0.5",
    "hmcn-closed": "HMCN-F, sum first, 0.5, ancestors added",
    "hmcn-original": "HMCN-F, sigmoids first, 0.5",
    "hmcn-authors": "HMCN-F as its authors have it, 0.5",
    "hmcn-authors-tuned": "HMCN-F as its authors have it, tuned",
    "hmcn-authors-refit": "HMCN-F as its authors have it, tuned, all documents",
    "hmcn-tuned": "HMCN-F, sum first, tuned",
    "hmcn-r": "HMCN-R as its authors have it, 0.5",
    "hmcn-r-tuned": "HMCN-R as its authors have it, tuned",
    "hr-dgcnn": "HR-DGCNN, tuned",
    "svm": "SVM, tuned",
    "svm-refit": "SVM, tuned, all documents",
    "svm-zero": "SVM, margin above 0",
    "svm-scutfbr": "SVM, thresholds by SCutFBR",
    "svm-scutfbr-refit": "SVM, thresholds by SCutFBR, all documents",
    "leaf-svm": "Leaf-SVM, tuned",
    "td-svm": "TD-SVM, tuned",
    "hsvm": "HSVM, tuned",
    "hsvm-refit": "HSVM, tuned, all documents",
    "hr-svm": "HR-SVM, tuned",
    "hr-svm-refit": "HR-SVM, tuned, all documents",
    "hr-svm-squared": "HR-SVM with the loss of `svm`, tuned",
    "hr-svm-leaves": "HR-SVM as published, tuned",
    "hr-lr": "HR-LR, tuned",
    "clus-hmc": "Clus-HMC, one tree, tuned",
    "clus-hmc-ens": "Clus-HMC, 50 trees, tuned",
    "cssa": "CSSA, tuned",
    "cssa-refit": "CSSA, tuned, all documents",
}
ENCODERS = {  # the base models of Figure 3; the paper's own are the first three
    "textcnn": "TextCNN",
    "han": "HAN",
    "bowcnn": "bow-CNN",
    "default": "TF-IDF layers",
    "static": "Static vectors",
    "minilm": "MiniLM, frozen",
}
PAPERS_OWN = tuple(ENCODERS)[:3]
FRAMEWORKS = {
    "flat-half": "flat, 0.5",
    "flat": "flat, tuned",
    "flat-members": "flat, HiLAP's nets, tuned",
    "hmcn": "HMCN, tuned",
    "sl": "HiLAP-SL",
    "paper": "HiLAP, the paper's policy",
    "hilap": "HiLAP",
}
ON_PAPERS_OWN = ("hmcn", "paper")  # frameworks that are compared on the paper's own base models alone
BASES = {  # base model -> framework -> method
    encoder: {
        framework: f"{encoder}-{framework}"
        for framework in FRAMEWORKS
        if encoder in PAPERS_OWN or framework not in ON_PAPERS_OWN
    }
    for encoder in ENCODERS
} | {"wide": {"flat-half": "svm-zero", "flat": "svm", "flat-members": "hilap-flat-members", "hilap": "hilap"}}
BASE_NAMES = ENCODERS | {"wide": "Linear SVMs, the recommended preset's wide part"}
BASE_METHODS = {
    method: f"{name}, {FRAMEWORKS[framework]}"
    for encoder, name in ENCODERS.items()
    for framework, method in BASES[encoder].items()
}
NAMES = (
    {
        "hilap": "HiLAP, settings for the set",
        "hilap-preset": "HiLAP, the recommended preset as it is",
        "hilap-macro": "HiLAP, asked for Macro-F1 alone",
        "hilap-residual": "HiLAP, the preset `residual` as it is",
        "hilap-minilm": "HiLAP, the preset `residual` with MiniLM's vectors",
        "hilap-paper": "HiLAP, as in the paper",
        "hilap-paper-alpha": "HiLAP, as in the paper, alpha 30",
        "hilap-paper-refit": "HiLAP, as in the paper, all documents",
        "hilap-paper-walks": "HiLAP, as in the paper, four walks judged by each other",
        "hilap-original": "HiLAP, with what its published program adds",
        "hilap-quick": "HiLAP, quick",
    }
    | {
        "flat-searched": "Flat network, tuned, settings searched",
        "flat-searched-refit": "Flat network, tuned, settings searched, all documents",
    }
    | {"hilap-flat-members": "Flat models of `hilap`, tuned"}
    | {"hilap-start": "`hilap` before reinforcement"}
    | {method: name for method, name in ABLATION.items() if method != "hilap-paper"}
    | BASELINES
    | BASE_METHODS
)
# Walks that were reinforced.
WHOLE = (
    *("hilap", "hilap-preset", "hilap-macro", "hilap-residual", "hilap-minilm", "hilap-original", "hilap-quick"),
    *("hilap-paper", "hilap-paper-alpha", "hilap-paper-refit", "hilap-paper-walks", "hilap-nosl", "hilap-noflat"),
)
LEAST_EPOCHS = 4  # of fewer, that one of the last two was best says nothing
PARTS = ("hilap-start",)  # HiLAP's own, not reinforced: neither the whole nor a rival
# Rivals all the same, though HiLAP's own: its flat models and HiLAP-SL.
OWN_RIVALS = (
    "hilap-flat-members",
    *(method for method in BASE_METHODS if method.endswith(("-flat-members", "-sl"))),
)


@dataclass(frozen=True, eq=False)  # itself alone is equal to it, so that what is computed of it can be kept
class Runs:
    """All seeds of one method on one set."""

    name: str
    method: str
    records: tuple[dict[str, Any], ...]

    def values(self, *keys: str) -> list[float]:
        """One figure of every seed, or nothing where a seed lacks it."""
        found: list[Any] = list(self.records)
        for key in keys:
            found = [value.get(key) if isinstance(value, dict) else None for value in found]
        for value in found:
            if value is not None and not isinstance(value, int | float):
                place = ".".join(keys)
                raise HilapError(f"{self.name}/{self.method}: {place} must be a number, got {value!r}; run it again")
        return [] if any(value is None or math.isnan(value) for value in found) else [float(value) for value in found]

    def numbers(self, *keys: str) -> NDArray[np.float64] | None:
        """(seeds, n) what is kept as texts of numbers, such as counts; None where a seed has none (an older file)."""
        found: list[Any] = list(self.records)
        for key in keys:
            found = [value.get(key) if isinstance(value, dict) else None for value in found]
        if any(value is None for value in found):
            return None
        place = f"{self.name}/{self.method}: {'.'.join(keys)}"
        try:
            rows = [np.array(value.split(), dtype=np.float64) for value in found]
        except (AttributeError, ValueError):
            raise HilapError(f"{place} must be a text of numbers; run it again with --again") from None
        if len({len(row) for row in rows}) > 1:
            raise HilapError(f"{place} has different lengths for different seeds; run them again with --again")
        return np.stack(rows)

    def columns(self, place: Sequence[str], keys: Sequence[str]) -> dict[str, NDArray[np.float64]] | None:
        """Several such texts of equal length, finite and not below 0 but for the NaN of an empty bin."""
        found = {key: self.numbers(*place, key) for key in keys}
        known = {key: values for key, values in found.items() if values is not None}
        if len(known) < len(found):
            return None
        where = f"{self.name}/{self.method}: {'.'.join(place)}"
        if len({values.shape for values in known.values()}) > 1:
            raise HilapError(f"{where}: {', '.join(keys)} differ in length; run it again with --again")
        if any(np.isinf(values).any() or (values < 0).any() for values in known.values()):
            raise HilapError(f"{where} must be numbers of at least 0; run it again with --again")
        return known

    @property
    def cached(self) -> bool:
        """Whether vectors of documents may come from a cache: seconds then leave out what it takes to make them."""
        settings = [record.get("settings") or {} for record in self.records]
        return any("cache" in value for one in settings for value in one.values() if isinstance(value, dict))

    @property
    def last_epochs(self) -> dict[str, int]:
        """Phase -> how many epochs it had, where the best was the last but one, the last or in the last twentieth.

        In most seeds, and of phases of four and more: of fewer, the last two say nothing.
        """
        found: dict[str, list[tuple[int, int]]] = {}
        for record in self.records:
            judged: dict[str, list[tuple[float, int]]] = {}
            for epoch in record.get("history") or []:
                if epoch.get("select") is not None and "ridge" not in epoch:  # CSSA judges ridges, not epochs
                    judged.setdefault(epoch["phase"], []).append((epoch["select"], epoch["epoch"]))
            for phase, pairs in judged.items():
                best = max(pairs, key=lambda pair: pair[0])[1]
                found.setdefault(phase, []).append((best, pairs[-1][1]))
        late = {
            phase: [last for best, last in pairs if best > min(0.95 * last, last - 2) and last >= LEAST_EPOCHS]
            for phase, pairs in found.items()
        }
        return {phase: max(ends) for phase, ends in late.items() if 2 * len(ends) > len(self.records)}

    @property
    def form(self) -> Literal["whole", "part"] | None:
        """What the settings make of HiLAP: the whole with its reinforced walk, or a part; None where another system.

        A method that reads another one's model in its own way (`of`) is what that model is, by the settings which
        `run.py` keeps beside its own; without those nothing is said, and nothing is counted as HiLAP.
        """
        settings = self.records[0].get("trained_with", self.records[0].get("settings")) if self.records else None
        if not isinstance(settings, dict) or {"system", "of"} & set(settings):
            return None
        whole = settings.get("variant", "hilap") == "hilap" and settings.get("reinforced_epochs") != 0
        return "whole" if whole else "part"

    @property
    def system(self) -> str:
        """The system's name; of one that nobody has listed the word under which `run.py` knows it."""
        return NAMES.get(self.method, self.method)

    @property
    def title(self) -> str:
        """The system's name and the word under which `run.py` knows it."""
        return f"{self.system} (`{self.method}`)" if self.method in NAMES else f"`{self.method}`"


def is_hilap(runs: Runs) -> bool:
    """Whether it is HiLAP itself, whatever its encoder and losses; HiLAP-SL and the flat parts alone are not.

    Of methods that are not listed here their settings decide, as in the two below.
    """
    if runs.method not in NAMES:
        return runs.form == "whole"
    return runs.method in WHOLE or (runs.method in BASE_METHODS and runs.method.endswith(("-hilap", "-paper")))


def is_rival(runs: Runs) -> bool:
    """Whether it is another system: neither HiLAP nor one of the parts that its ablation leaves."""
    if runs.method not in NAMES:
        return runs.form is None
    return not is_hilap(runs) and runs.method not in ABLATION and runs.method not in PARTS


def is_own(runs: Runs) -> bool:
    """Whether it is a form or a part of HiLAP: also its flat models and HiLAP-SL, which are rivals all the same."""
    return not is_rival(runs) or runs.method in OWN_RIVALS


def read_results(folder: Path) -> dict[str, list[Runs]]:
    """The runs with test scores: set -> methods, both in the order of the page."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*/*/*.json")):
        record = read_object(path)
        if "test" in record:
            _check_place(record, path)
            found.setdefault((path.parts[-3], path.parts[-2]), []).append(record)
    pages: dict[str, list[Runs]] = {}
    for name, method in sorted(found, key=lambda key: (rank(SETS, key[0]), rank(NAMES, key[1]))):
        records = sorted(found[name, method], key=lambda record: int(record["seed"]))
        pages.setdefault(name, []).append(Runs(name, method, tuple(records)))
    for name, runs in pages.items():
        _check_alike(name, runs)
    return pages


def read_object(path: Path) -> dict[str, Any]:
    """A file that holds one JSON object."""
    try:
        value = json.loads(read_text(path, HilapError))
    except json.JSONDecodeError as fault:
        raise HilapError(f"{path}:{fault.lineno}: not valid JSON ({fault.msg}); run it again with --again") from None
    except RecursionError:
        raise HilapError(f"{path}: nested too deeply to be a result; run it again with --again") from None
    if not isinstance(value, dict):
        raise HilapError(f"{path}: a JSON object is needed, got {type(value).__name__}; run it again with --again")
    return value


def _check_place(record: dict[str, Any], path: Path) -> None:
    """A file copied or renamed by hand must not count as another seed or system."""
    given = (record.get("set"), record.get("method"), f"{record.get('seed')}.json")
    if given != path.parts[-3:] or not isinstance(record["seed"], int):
        raise HilapError(f"{path}: says it is {'/'.join(map(str, given))}; put it there, or run it again with --again")


def _check_alike(name: str, runs: Sequence[Runs]) -> None:
    """A mean is taken over seeds of the same settings, and systems are compared on the same data."""
    for one in runs:
        if len({json.dumps(record.get("settings"), sort_keys=True) for record in one.records}) > 1:
            raise HilapError(f"{name}/{one.method}: the seeds have different settings; run them again with --again")
    records = [record for one in runs for record in one.records]
    if len({json.dumps(record.get("data"), sort_keys=True) for record in records}) > 1:
        raise HilapError(f"{name}: the results come from different data; run the older ones again with --again")
    if len({json.dumps(record["shape"], sort_keys=True) for record in records if "shape" in record}) > 1:
        raise HilapError(f"{name}: the results differ in what shape the set has; run the older ones again with --again")


def rank(known: Iterable[str], word: str) -> tuple[int, str]:
    """For sorting: known words in their order, then the others by the alphabet."""
    order = list(known)
    return (order.index(word) if word in order else len(order), word)
