"""How fast the parts are, and how much memory they take: `python benchmarks/speed.py metrics taxonomy corpus method`.

Every job runs in a process of its own, so that its peak memory is its own (with Python, numpy and the synthetic data it
works on). Seconds are those of the job without making its data. All data is synthetic and comes from a fixed seed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from hilap.taxonomy import Taxonomy

RCV1_DOCUMENTS = 781_265
RCV1_LEVELS = (4, 55, 43, 1)
GO_LEVELS = (3, 40, 150, 420, 760, 840, 720, 510, 330, 190, 95, 45, 16, 6)  # 4,125 labels on 14 levels
GO_SEVERAL_PARENTS = 1_477

Job = Callable[["Clock"], None]
SECTIONS: dict[str, dict[str, Job]] = {}


class Clock:
    """Collects what a job says about itself."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.notes: dict[str, Any] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the seconds spent inside."""
        gc.collect()
        start = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - start


def job(section: str, title: str) -> Callable[[Job], Job]:
    def register(function: Job) -> Job:
        SECTIONS.setdefault(section, {})[title] = function
        return function

    return register


# -- synthetic data ---------------------------------------------------------------------------------------------------


def layered(sizes: tuple[int, ...], several_parents: int = 0, seed: int = 0) -> Taxonomy:
    """A taxonomy with so many labels on each level; some labels get a second parent from any level above."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *sizes])
    level = np.repeat(np.arange(len(sizes)), sizes)
    parents: list[list[int]] = [[] for _ in level]
    for i in range(sizes[0], len(level)):
        parents[i].append(int(rng.integers(starts[level[i] - 1], starts[level[i]])))
    for i in rng.choice(np.arange(starts[2], len(level)), several_parents, replace=False) if several_parents else ():
        second = int(rng.integers(0, starts[level[i]]))
        if second not in parents[i]:
            parents[i].append(second)
    names = [f"L{i:06d}" for i in range(len(level))]
    return Taxonomy(names, [[names[p] for p in above] for above in parents])


def label_sets(taxonomy: Taxonomy, documents: int, per_document: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns and row starts of random label sets, popular labels more often than others (Zipf)."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, len(taxonomy) + 1)
    ranks = rng.permutation(len(taxonomy))
    counts = 1 + rng.poisson(per_document - 1, documents)
    columns = rng.choice(len(taxonomy), int(counts.sum()), p=(popularity / popularity.sum())[ranks])
    return columns.astype(np.int32), np.concatenate([[0], np.cumsum(counts)])


def rcv1_like() -> tuple[Taxonomy, Any, Any]:
    """Gold and predicted sets of RCV1's test size, about 3.2 labels a document; some predictions inconsistent."""
    taxonomy = layered(RCV1_LEVELS)
    rng = np.random.default_rng(1)
    gold = taxonomy.from_indices(*label_sets(taxonomy, RCV1_DOCUMENTS, 1.45), close=True)
    keep = rng.random(gold.nnz) < 0.85
    kept = sparse.csr_array((keep, gold.indices, gold.indptr), shape=gold.shape)
    extra = rng.integers(0, gold.nnz, gold.nnz // 8)
    rows = np.repeat(np.arange(gold.shape[0]), np.diff(gold.indptr))[extra]
    wrong = sparse.csr_array((np.ones(len(rows), dtype=bool), (rows, gold.indices[rng.permutation(extra)])), gold.shape)
    return taxonomy, gold, (kept + wrong).astype(np.int32)


def go_like() -> Taxonomy:
    return layered(GO_LEVELS, GO_SEVERAL_PARENTS)


# -- metrics ----------------------------------------------------------------------------------------------------------


@job("metrics", "report of all set metrics, 781,265 documents x 103 labels")
def metrics_report(clock: Clock) -> None:
    from hilap.metrics import report

    taxonomy, gold, predicted = rcv1_like()
    with clock.running():
        found = report(gold, predicted, taxonomy)
    clock.notes = {
        "labels per document": round(gold.nnz / gold.shape[0], 2),
        "inconsistent": round(found.scores["inconsistent_share"], 3),
        "micro_f1": round(found.scores["micro_f1"], 3),
    }


@job("metrics", "Micro-, Macro- and example F1 alone, the same")
def metrics_core(clock: Clock) -> None:
    from hilap.metrics import example, macro, micro

    _, gold, predicted = rcv1_like()
    with clock.running():
        for metric in (micro, macro, example):
            metric(gold, predicted)


@job("metrics", "LCA scores, the same")
def metrics_lca(clock: Clock) -> None:
    from hilap.metrics.lca import lca_scores

    taxonomy, gold, predicted = rcv1_like()
    with clock.running():
        lca_scores(gold, predicted, taxonomy)


@job("metrics", "100 bootstrap samples, the same")
def metrics_bootstrap(clock: Clock) -> None:
    from hilap.metrics.significance import bootstrap

    _, gold, predicted = rcv1_like()
    with clock.running():
        bootstrap(gold, predicted, samples=100)


@job("metrics", "100 permutations between two systems, the same")
def metrics_permutations(clock: Clock) -> None:
    from hilap.metrics.significance import permutation_test

    taxonomy, gold, predicted = rcv1_like()
    with clock.running():
        permutation_test(gold, predicted, taxonomy.close_matrix(predicted), permutations=100)


@job("metrics", "report with LCA, scores and 1,000 bootstrap samples, 1,278 documents x 4,125 labels (GO)")
def metrics_go(clock: Clock) -> None:
    from hilap.metrics import report

    taxonomy = go_like()
    gold = taxonomy.from_indices(*label_sets(taxonomy, 1_278, 3), close=True)
    predicted = taxonomy.from_indices(*label_sets(taxonomy, 1_278, 3, seed=1), close=True)
    scores = np.random.default_rng(0).random(gold.shape)
    with clock.running():
        report(gold, predicted, taxonomy, scores=scores, bootstrap=1_000)
    clock.notes = {"labels per document": round(gold.nnz / gold.shape[0], 2)}


# -- taxonomy ---------------------------------------------------------------------------------------------------------


@job("taxonomy", "encode and close 1,000,000 sets of about 5 labels, DAG of 4,125 labels")
def taxonomy_encode(clock: Clock) -> None:
    taxonomy = go_like()
    columns, starts = label_sets(taxonomy, 1_000_000, 5)
    names = np.array(taxonomy.labels, dtype=object)[columns].tolist()
    sets = [names[a:b] for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
    del names
    with clock.running():
        closed = taxonomy.encode(sets, close=True)
    clock.notes = {"labels given": len(columns), "labels closed": int(closed.nnz)}


@job("taxonomy", "read 100,000 labels from JSONL, build and close")
def taxonomy_read(clock: Clock) -> None:
    from hilap.taxonomy.readers import read

    sizes = (20, 480, 3_500, 11_000, 20_000, 24_000, 20_000, 12_000, 6_000, 2_000, 800, 200)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "taxonomy.jsonl"
        with path.open("w") as lines:
            lines.writelines(json.dumps(record) + "\n" for record in layered(sizes, 10_000).records())
        with clock.running():
            taxonomy = read(path)
            closure = taxonomy.closure
    clock.notes = {"edges": taxonomy.n_edges, "closure": int(closure.nnz)}


# -- corpus -----------------------------------------------------------------------------------------------------------


@job("corpus", "stream 100,000 documents of 200 words from JSONL, in batches")
def corpus_stream(clock: Clock) -> None:
    _stream(clock, "corpus.jsonl")


@job("corpus", "the same, compressed with gzip")
def corpus_stream_gzip(clock: Clock) -> None:
    _stream(clock, "corpus.jsonl.gz")


def _stream(clock: Clock, name: str, documents: int = 100_000) -> None:
    from hilap.corpus import read
    from hilap.files import writing

    taxonomy = layered(RCV1_LEVELS)
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(20_000)], dtype=object)
    columns, starts = label_sets(taxonomy, documents, 1.55)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        with writing(path) as lines:
            for i in range(documents):
                text = " ".join(words[rng.integers(0, len(words), 200)])
                mine = [taxonomy.labels[c] for c in columns[starts[i] : starts[i + 1]]]
                lines.write(json.dumps({"id": str(i), "text": text, "labels": mine}) + "\n")
        with clock.running():
            seen = sum(len(batch) for batch in read(path, taxonomy).batches())
        megabytes = path.stat().st_size / 1e6
    clock.notes = {"documents": seen, "documents/s": round(seen / clock.seconds), "MB": round(megabytes)}


# -- the method --------------------------------------------------------------------------------------------------------


FUNCAT_LEVELS = (18, 80, 178, 142, 77, 4)  # 499 labels on 6 levels


def _method(clock: Clock, levels: tuple[int, ...], several_parents: int, steps: int, *, learn: bool) -> None:
    """Ours and the plain reference in one run, one thread, the paper's sizes (1,000 and 1,000), batches of 32."""
    import torch
    from reference import PlainPolicy

    from hilap import decoding
    from hilap.network import reinforced_loss
    from hilap.policy import Policy

    torch.set_num_threads(1)
    taxonomy = layered(levels, several_parents)
    generator = torch.Generator().manual_seed(0)
    policy = Policy(taxonomy, 150, hidden=1000, width=1000, generator=generator)
    columns, starts = label_sets(taxonomy, 32, 8 if several_parents == 0 else 12)
    gold = torch.from_numpy(taxonomy.from_indices(columns, starts, close=True).toarray().astype(bool))
    embeddings = torch.randn(32, 150, generator=generator)
    with torch.no_grad():  # a stop that comes after about as many steps as there are labels, as in a trained policy
        policy.e_stop.mul_(0.0)
    plain = PlainPolicy(policy, taxonomy)

    def ours() -> None:
        if learn:
            documents = policy.documents(embeddings)
            loss, _ = reinforced_loss(
                policy, documents, gold, max_steps=steps, gamma=0.9, generator=generator, rollouts=1
            )
            loss.mean().backward()
        else:
            with torch.no_grad():
                decoding.decode(policy, policy.documents(embeddings), max_steps=steps)

    def theirs() -> None:
        if learn:
            plain.loss(embeddings, gold, steps, 0.9, generator).mean().backward()
        else:
            plain.walk(embeddings, None, steps, None)

    with clock.running():
        rates = {name: _rate(function) for name, function in (("ours", ours), ("plain", theirs))}
    clock.notes |= {name: f"{rate:,.1f} docs/s" for name, rate in rates.items()}
    clock.notes["ratio"] = f"{rates['ours'] / rates['plain']:.1f}"


def _rate(function: Callable[[], None], documents: int = 32, seconds: float = 8.0) -> float:
    """Documents per second of CPU time, the best of several runs."""
    function()
    best, began = float("inf"), time.perf_counter()
    while time.perf_counter() - began < seconds:
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return documents / best


@job("method", "reinforced training, FunCat's size")
def method_funcat_training(clock: Clock) -> None:
    _method(clock, FUNCAT_LEVELS, 0, 45, learn=True)


@job("method", "greedy prediction, FunCat's size")
def method_funcat_prediction(clock: Clock) -> None:
    _method(clock, FUNCAT_LEVELS, 0, 45, learn=False)


@job("method", "reinforced training, GO's size")
def method_go_training(clock: Clock) -> None:
    _method(clock, GO_LEVELS, GO_SEVERAL_PARENTS, 45, learn=True)


@job("method", "greedy prediction, GO's size")
def method_go_prediction(clock: Clock) -> None:
    _method(clock, GO_LEVELS, GO_SEVERAL_PARENTS, 45, learn=False)


# -- running ----------------------------------------------------------------------------------------------------------


def peak_megabytes() -> float:
    """The most memory this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(part for part in status.read_text().splitlines() if part.startswith("VmHWM"))
        return float(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


def run_inside(section: str, title: str) -> None:
    clock = Clock()
    SECTIONS[section][title](clock)
    print(json.dumps({"seconds": clock.seconds, "peak_mb": peak_megabytes(), "notes": clock.notes}))


def run_apart(section: str, title: str) -> dict[str, Any]:
    """One job in a process of its own."""
    source = str(Path(__file__).resolve().parents[1] / "src")
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, __file__, "--inside", section, title]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    )
    return {"section": section, "job": title, **json.loads(done.stdout)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "sections",
        nargs="*",
        metavar="section",
        help=f"of {', '.join(SECTIONS)}; all of them without one, or with 'all'",
    )
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--inside", nargs=2, metavar=("SECTION", "JOB"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        return run_inside(*chosen.inside)
    unknown = [name for name in chosen.sections if name not in (*SECTIONS, "all")]
    if unknown:
        parser.error(f"there is no section {unknown[0]!r}; there are: {', '.join(SECTIONS)}")
    sections = list(SECTIONS) if "all" in (chosen.sections or ["all"]) else chosen.sections
    found = [run_apart(section, title) for section in sections for title in SECTIONS[section]]
    if chosen.json:
        return print(json.dumps(found, indent=2))
    for row in found:
        notes = ", ".join(f"{name} {value}" for name, value in row["notes"].items())
        print(f"{row['section']:<10}{row['seconds']:>8.2f} s {row['peak_mb']:>8,.0f} MB  {row['job']}", end="")
        print(f"  ({notes})" if notes else "")
    return None


if __name__ == "__main__":
    main()
