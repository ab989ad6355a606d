"""What label texts do to rare labels: `python benchmarks/label_text.py [--set trove] [--system static-flat ...]`.

Labels of the prepared sets have at least ten training documents or so, so rare ones are made: of the leaves with some
validation documents, `--thinned` lose all their training documents and as many more keep three. Documents are dropped
whole, so that what is missing is missing, not marked as wrong. Then each system is trained without label texts, with
weights that start at them, and with weights tied to them; scores are of the validation documents, which also choose
epochs and thresholds, for all ways alike. Groups of labels are by their training documents: F1 is the mean over the
group's labels with validation documents, AP the same of average precision, which no threshold touches. The test split
is never opened. The first line is a yardstick: the cosine of a document's and a label's static vectors, no training.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

from hilap import HiLAPClassifier, read_corpus, read_taxonomy  # noqa: E402
from hilap.corpus import Examples  # noqa: E402
from hilap.encoders import make  # noqa: E402
from hilap.files import writing  # noqa: E402
from hilap.label_text import label_rows  # noqa: E402
from hilap.metrics import example, macro, micro  # noqa: E402
from hilap.metrics.counts import column_counts, label_counts  # noqa: E402
from hilap.metrics.flat import f1_from_counts  # noqa: E402
from hilap.metrics.ranking import label_areas  # noqa: E402

DATA = Path(os.environ.get("HILAP_DATA", HERE.parent.parent / "shared" / "data"))
GROUPS = {"0": (0, 0), "1-5": (1, 5), "6-20": (6, 20), "more": (21, np.inf)}
WAYS: dict[str, bool | str] = {"none": False, "start": "start", "tied": "tied"}
KEPT = 3  # documents of a label that is thinned but not taken away

_STATIC = {"encoder": "static", "encoder_options": {"dropout": 0.5}, "tune": "mean", "select": "mean"}
_TEXTCNN = {"encoder": "textcnn", "encoder_options": {"preset": "light"}, "tune": "mean", "select": "mean"}
SYSTEMS: dict[str, dict[str, Any]] = {
    "static-flat": {**_STATIC, "variant": "flat", "flat_epochs": 15, "patience": 4},
    "static-hilap": {**_STATIC, "supervised_epochs": 5, "reinforced_epochs": 3, "patience": 2},
    "textcnn-flat": {**_TEXTCNN, "variant": "flat", "flat_epochs": 6},
}


def thinned(train: Examples, valid: Examples, count: int, seed: int = 0) -> Examples:
    """The training documents without those of some leaves, and with only a few of some others."""
    taxonomy = train.taxonomy
    seen = column_counts(valid.labels)
    leaves = [k for k in map(taxonomy.index, taxonomy.leaves) if seen[k] >= 2]
    chosen = np.random.default_rng(seed).permutation(leaves)[: 2 * count]
    columns = train.labels.tocsc()
    documents = [columns.indices[columns.indptr[k] : columns.indptr[k + 1]] for k in chosen]
    gone = np.concatenate([mine[KEPT:] for mine in documents])
    spared = np.concatenate([mine[:KEPT] for mine in documents[count:]])
    never = np.concatenate(documents[:count])
    rest = np.setdiff1d(np.arange(len(train)), np.union1d(np.setdiff1d(gone, spared), never))
    return train.take(rest)


def groups_of(counts: NDArray[Any], there: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The labels with validation documents by their number of training documents."""
    found = {name: (counts >= low) & (counts <= high) & there for name, (low, high) in GROUPS.items()}
    return {name: np.flatnonzero(mask) for name, mask in found.items()}


def scores(classifier: HiLAPClassifier, valid: Examples, groups: dict[str, NDArray[Any]]) -> list[float]:
    """Micro-F1, Macro-F1, EBF, then F1 and AP of each group, in percent."""
    found, chances = classifier.predict_both(valid)
    gold = valid.labels
    f1 = f1_from_counts(*label_counts(gold, found))
    areas = label_areas(gold, chances)
    overall = [micro(gold, found).f1, macro(gold, found).f1, example(gold, found).f1]
    by_group = [
        values[labels].mean() if len(labels) else np.nan for labels in groups.values() for values in (f1, areas)
    ]
    return [100 * float(value) for value in (*overall, *by_group)]


def likeness(train: Examples, valid: Examples, groups: dict[str, NDArray[Any]]) -> list[float]:
    """AP of each group, in percent, where labels are ranked by how alike their texts and the document are."""
    encoder = make("static", hidden=None).fit(train, generator=torch.Generator().manual_seed(0))
    blocks = encoder.prepare(valid), label_rows(train.taxonomy, encoder)
    documents, labels = (F.normalize(encoder(block.batch(np.arange(len(block))))) for block in blocks)
    areas = label_areas(valid.labels, (documents @ labels.T).numpy())
    return [100 * float(areas[some].mean()) if len(some) else np.nan for some in groups.values()]


def named(values: Sequence[float], names: Sequence[str]) -> dict[str, float | None]:
    """Scores by their names, for a file; None where a group has no labels."""
    found = zip(names, values, strict=True)
    return {name: None if np.isnan(value) else round(float(value), 3) for name, value in found}


def main(words: Sequence[str] | None = None) -> None:
    """Train every system in every way and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="trove", help="a folder of the data directory")
    parser.add_argument("--data", type=Path, default=DATA, help="the data directory")
    parser.add_argument("--system", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--thinned", type=int, default=12, help="leaves that lose all, and as many that lose most")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    given = parser.parse_args(words)
    folder = given.data / given.set
    taxonomy = read_taxonomy(folder / "taxonomy.jsonl")
    train, valid = (read_corpus(folder / f"{part}.jsonl.gz", taxonomy).load() for part in ("train", "valid"))
    train = thinned(train, valid, given.thinned)
    groups = groups_of(column_counts(train.labels), column_counts(valid.labels) > 0)
    print(
        f"{given.set}: {len(train):,} training documents; labels:", {name: len(some) for name, some in groups.items()}
    )
    print(
        "| system | label text | Micro / Macro / EBF |", " | ".join(f"{name}: F1 / AP" for name in groups), "| CPU s |"
    )
    print("|---|---|---|" + "---|" * len(groups) + "--:|")
    alike = likeness(train, valid, groups)
    print("| likeness | | |", " | ".join(f"– / {value:.1f}" for value in alike), "| |")
    rows: list[dict[str, Any]] = []
    for system in given.system:
        for way in given.ways:
            began = time.process_time()
            each = [
                scores(
                    HiLAPClassifier(**SYSTEMS[system], label_text=WAYS[way], seed=seed).fit(train, valid=valid),
                    valid,
                    groups,
                )
                for seed in given.seeds
            ]
            cells = [f"{value:.1f}" for value in np.mean(each, axis=0)]
            pairs = [" / ".join(cells[k : k + 2]) for k in range(3, len(cells), 2)]
            spent = (time.process_time() - began) / len(given.seeds)
            print("|", " | ".join([system, way, " / ".join(cells[:3]), *pairs, f"{spent:.0f}"]), "|", flush=True)
            names = ["micro_f1", "macro_f1", "ebf", *(f"{what} of {name}" for name in groups for what in ("f1", "ap"))]
            row = {"system": system, "way": way, "cpu_seconds": round(spent, 1), "settings": SYSTEMS[system]}
            seeds = {str(seed): named(one, names) for seed, one in zip(given.seeds, each, strict=True)}
            rows.append({**row, "seeds": seeds})
    if given.json:
        found = {
            "set": given.set,
            "thinned": given.thinned,
            "documents": len(train),
            "labels": {name: len(some) for name, some in groups.items()},  # by their training documents
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
            "likeness": named(alike, [f"ap of {name}" for name in groups]),
            "rows": rows,
        }
        with writing(given.json) as stream:
            stream.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
