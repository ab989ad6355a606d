"""How linear systems grow with the data: `python benchmarks/linear.py [--documents 1000 10000 100000] [--method svm]`.

Synthetic sparse documents: as many features as documents (words by Zipf's law, about 100 a document, TF-IDF, length 1)
and 500 labels on three levels, or as many as `--labels` says; each label speaks for some words. Every figure comes from
a process of its own, so that its peak memory is its own (with Python, numpy and the data). The largest, 100,000
documents, takes minutes on both cores and is run only when asked for. Each figure goes to `results/linear.json` as soon
as it is there, in the place of an older one of the same method, documents, labels and jobs; `--out` names another file.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

from records import read_object  # noqa: E402

from hilap.baselines.hr_svm import HRSVM  # noqa: E402
from hilap.baselines.hsvm import HSVM  # noqa: E402
from hilap.baselines.leaf_svm import LeafSVM  # noqa: E402
from hilap.baselines.svm import SVM  # noqa: E402
from hilap.baselines.td_svm import TopDownSVM  # noqa: E402
from hilap.corpus import Examples  # noqa: E402
from hilap.files import writing  # noqa: E402
from hilap.taxonomy import Taxonomy  # noqa: E402

OUT = HERE / "results" / "linear.json"
SYSTEMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "svm": (SVM, {}),
    "leaf-svm": (LeafSVM, {}),
    "td-svm": (TopDownSVM, {}),
    "hsvm": (HSVM, {}),
    "hr-svm": (HRSVM, {}),
    "hr-lr": (HRSVM, {"loss": "logistic", "coupling": 0.5, "strength": 50.0}),  # on texts, as in settings/hr-lr.toml
}
KEY = ("method", "documents", "labels", "jobs")  # figures that agree in these are of the same thing
WORDS = 100
VALIDATION = 1_000


def taxonomy_of(labels: int) -> Taxonomy:
    """Ten labels at the top, a fifth of all below them, the rest below those."""
    top = min(10, labels)
    middle = max((labels - top) // 5, 1)
    parents: dict[str, list[str]] = {}
    for k in range(labels):
        above = None if k < top else k % top if k < top + middle else top + k % middle
        parents[f"L{k}"] = [] if above is None else [f"L{above}"]
    return Taxonomy.of(parents)


def documents(n: int, features: int, taxonomy: Taxonomy, seed: int) -> Examples:
    """Texts as TF-IDF rows: half of the words by Zipf's law, half from the words of the document's labels."""
    rng = np.random.default_rng([seed, 0])
    popular = 1 / np.arange(1, len(taxonomy) + 1) ** 0.7
    chosen = rng.choice(len(taxonomy), size=(n, 2), p=popular / popular.sum())
    ranks = 1 / np.arange(1, features + 1)
    common = np.searchsorted(np.cumsum(ranks / ranks.sum()), rng.random((n, WORDS // 2)))
    own = np.random.default_rng(1).integers(0, features, size=(len(taxonomy), 60))  # the same words for every seed
    special = own[np.repeat(chosen, WORDS // 4, axis=1), rng.integers(0, 60, size=(n, 2 * (WORDS // 4)))]
    columns = np.hstack([np.minimum(common, features - 1), special]).astype(np.int32)
    starts = np.arange(0, columns.size + 1, columns.shape[1])
    counts = sparse.csr_matrix((np.ones(columns.size, np.float32), columns.ravel(), starts), shape=(n, features))
    counts.sum_duplicates()
    weight = np.log(n / (1 + np.bincount(counts.indices, minlength=features))) + 1
    counts.data = (np.log(counts.data) + 1) * weight[counts.indices].astype(np.float32)
    lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(1)).ravel())
    counts.data /= np.repeat(lengths, np.diff(counts.indptr)).astype(np.float32)
    sets = [[taxonomy.labels[k] for k in row] for row in chosen.tolist()]
    return Examples.of(taxonomy, sets, features=sparse.csr_array(counts))


def measured(method: str, n: int, labels: int, jobs: int) -> dict[str, Any]:
    """Seconds, processor seconds and the peak memory of one training, and how well it went."""
    taxonomy = taxonomy_of(labels)
    train, valid = documents(n, n, taxonomy, 0), documents(VALIDATION, n, taxonomy, 1)
    system, settings = SYSTEMS[method]
    options = settings if method == "hsvm" else {**settings, "jobs": jobs}
    model = system(row_options={"standardise": False}, **options)
    before = peak_megabytes()
    wall, processor = time.perf_counter(), time.process_time()
    model.fit(train, valid=valid)
    return {
        "method": method,
        "documents": n,
        "features": n,
        "labels": labels,
        "jobs": jobs,
        "settings": settings,
        "seconds": time.perf_counter() - wall,
        "processor_seconds": time.process_time() - processor,
        "data_megabytes": before,
        "peak_megabytes": peak_megabytes(),
        "weights": int(model.linear_.weight.nnz),
        "micro_f1": model.validation_.scores["micro_f1"],
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Of Python and the packages that time and memory depend on."""
    packages = ("numpy", "scipy", "scikit-learn", "numba")
    return {"python": platform.python_version()} | {package: version(package) for package in packages}


def merged(known: list[dict[str, Any]], row: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows with one more, which takes the place of an older one of the same thing; in a fixed order."""
    rows = {tuple(one[key] for key in KEY): one for one in [*known, row]}
    order = {name: i for i, name in enumerate(SYSTEMS)}
    return [rows[key] for key in sorted(rows, key=lambda key: (order.get(key[0], len(order)), key))]


def keep(row: dict[str, Any], path: Path) -> None:
    """Add a figure to the file."""
    known = read_object(path)["rows"] if path.is_file() else []
    with writing(path) as stream:
        stream.write(json.dumps({"rows": merged(known, row)}, indent=1) + "\n")


def peak_megabytes() -> float:
    """The most memory this process has had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1_000_000 if sys.platform == "darwin" else 1_000)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--labels", type=int, default=500)
    parser.add_argument("--method", nargs="+", choices=SYSTEMS, default=["svm", "hr-svm"])
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=OUT, help="the file that figures are added to")
    parser.add_argument("--one", action="store_true", help="in this process, as JSON")
    given = parser.parse_args(words)
    if given.one:
        print(json.dumps(measured(given.method[0], given.documents[0], given.labels, given.jobs)))
        return
    print(
        f"{'method':10}{'documents':>11}{'seconds':>10}{'processor':>11}{'peak MB':>10}{'weights':>13}{'Micro-F1':>10}"
    )
    for method in given.method:
        for n in given.documents:
            command = [sys.executable, __file__, "--one", "--method", method, "--documents", str(n)]
            command += ["--labels", str(given.labels), "--jobs", str(given.jobs)]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            keep(found, given.out)
            print(
                f"{method:10}{n:11,}{found['seconds']:10.1f}{found['processor_seconds']:11.1f}"
                f"{found['peak_megabytes']:10,.0f}{found['weights']:13,}{100 * found['micro_f1']:10.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
