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
METHOD = {"FunCat": (FUNCAT_LEVELS, 0, 2.8), "GO": (GO_LEVELS, GO_SEVERAL_PARENTS, 2.9)}
"""Levels, labels with several parents, and labels drawn for a document: closed upward 8.8 and 35 of them, as there."""
PUBLISHED = {"FunCat": (16, 82), "GO": (4.6, 52)}  # documents/s, training (reinforced) and prediction, measured apart
STEPS, FEATURES, DIM, WIDTH = 45, 77, 150, 1000  # as in the paper and its published code


class Method:
    """A network that walks like a trained one, ours and in the plain way, with the same weights.

    Its policy is residual, and its flat logits get a push: about +4 for gold labels, -6 for others, with a deviation of
    1. So greedy walks place the gold labels and stop, and sampled ones mostly do: walks are as long as they are after
    training on such data. The push is added to both.
    """

    def __init__(self, size: str, documents: int) -> None:
        import torch
        from reference import PlainPolicy
        from torch import nn

        from hilap.policy import Policy

        torch.set_num_threads(1)
        levels, several_parents, per_document = METHOD[size]
        taxonomy = layered(levels, several_parents)
        self.generator = torch.Generator().manual_seed(0)
        torch.manual_seed(0)
        self.encoder = nn.Sequential(nn.Linear(FEATURES, DIM), nn.ReLU())
        self.head = nn.Linear(DIM, len(taxonomy))
        self.policy = Policy(taxonomy, DIM, hidden=WIDTH, width=WIDTH, residual=True, generator=self.generator)
        sets = taxonomy.from_indices(*label_sets(taxonomy, documents, per_document), close=True)
        self.gold = torch.from_numpy(sets.toarray().astype(bool))
        self.features = torch.randn(documents, FEATURES, generator=self.generator)
        self.push = torch.where(self.gold, 4.0, -6.0) + torch.randn(self.gold.shape, generator=self.generator)
        self.rows = slice(0, 32)
        self.plain = PlainPolicy(self.policy, taxonomy, self.encode)
        parameters = [*self.encoder.parameters(), *self.head.parameters(), *self.policy.parameters()]
        self.adam = torch.optim.Adam(parameters, lr=1e-6, weight_decay=1e-6, fused=True)  # stays what it is

    def encode(self, features: Any) -> tuple[Any, Any]:
        """(B, D) embeddings and (B, L) flat logits of the current rows."""
        embeddings = self.encoder(features)
        return embeddings, self.head(embeddings) + self.push[self.rows]

    def learn_ours(self) -> None:
        """One update."""
        from hilap.network import reinforced_loss, supervised_loss

        gold = self.gold[self.rows]
        embeddings, logits = self.encode(self.features[self.rows])
        documents = self.policy.documents(embeddings, logits).sharing()
        reinforced, _ = reinforced_loss(
            self.policy, documents, gold, max_steps=STEPS, gamma=0.9, generator=self.generator
        )
        self._update(reinforced + supervised_loss(self.policy, documents, logits, gold, flat_share=0.5))

    def learn_plain(self) -> None:
        """One update, the plain way."""
        self._update(self.plain.loss(self.features[self.rows], self.gold[self.rows], STEPS, self.generator))

    def _update(self, losses: Any) -> None:
        self.adam.zero_grad()
        losses.mean().backward()
        self.adam.step()

    def predict_ours(self, batch: int) -> Any:
        """(n, L) greedy sets of all documents, in batches."""
        import torch

        from hilap import decoding

        def block(rows: slice) -> Any:
            self.rows = rows
            documents = self.policy.documents(*self.encode(self.features[rows]))
            return decoding.decode(self.policy, documents, max_steps=STEPS).placed

        with torch.no_grad():
            return torch.cat([block(rows) for rows in self._blocks(batch)])

    def predict_plain(self, batch: int) -> Any:
        """The same, the plain way."""
        import torch

        def block(rows: slice) -> Any:
            self.rows = rows
            return self.plain.walk(self.features[rows], None, STEPS, None)[0]

        return torch.cat([block(rows) for rows in self._blocks(batch)])

    def _blocks(self, batch: int) -> list[slice]:
        return [slice(i, i + batch) for i in range(0, len(self.features), batch)]


def _rates(functions: dict[str, Callable[[], Any]], documents: int, seconds: float = 10.0) -> dict[str, float]:
    """Documents per second of processor time: taken in turns, so that both meet the same machine; the best of each."""
    best = {name: float("inf") for name in functions}
    for function in functions.values():
        function()
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        for name, function in functions.items():
            start = time.process_time()
            function()
            best[name] = min(best[name], time.process_time() - start)
    return {name: documents / seconds for name, seconds in best.items()}


def _tell(clock: Clock, rates: dict[str, float], published: float) -> None:
    clock.notes = {name: f"{rate:,.1f} docs/s" for name, rate in rates.items()}
    clock.notes["ratio"] = f"{rates['ours'] / rates['plain']:.1f}"
    clock.notes["published code"] = f"{published:g} docs/s, {rates['ours'] / published:.0f} times slower"


def _training(size: str) -> Job:
    def run(clock: Clock) -> None:
        method = Method(size, 32)
        with clock.running():
            rates = _rates({"ours": method.learn_ours, "plain": method.learn_plain}, 32)
        _tell(clock, rates, PUBLISHED[size][0])

    return run


def _prediction(size: str, batch: int) -> Job:
    def run(clock: Clock) -> None:
        documents = max(32, batch)
        method = Method(size, documents)
        method.policy.eval()
        same = method.predict_ours(batch) == method.predict_plain(batch)
        ways = {"ours": lambda: method.predict_ours(batch), "plain": lambda: method.predict_plain(batch)}
        with clock.running():
            rates = _rates(ways, documents)
        _tell(clock, rates, PUBLISHED[size][1])
        clock.notes |= {"labels/document": f"{method.gold.sum(1).float().mean():.1f}", "same sets": bool(same.all())}

    return run


def _memory(size: str, way: str) -> Job:
    def run(clock: Clock) -> None:
        learns, batch = way.startswith("learn"), 32 if way.startswith("learn") else 256
        method = Method(size, batch)
        method.policy.train(learns)
        before = peak_megabytes()
        with clock.running():
            for _ in range(2):
                getattr(method, way)(*([] if learns else [batch]))
        clock.notes = {"above the model and the data": f"{peak_megabytes() - before:,.0f} MB"}

    return run


for _size in METHOD:
    job("method", f"training with all three losses, {_size}'s size, batches of 32")(_training(_size))
    for _batch in (1, 32, 256):
        job("method", f"greedy prediction, {_size}'s size, batches of {_batch}")(_prediction(_size, _batch))
    for _way, _what in {
        "learn_ours": "training of ours, batches of 32",
        "learn_plain": "training of the plain way, batches of 32",
        "predict_ours": "prediction of ours, batches of 256",
        "predict_plain": "prediction of the plain way, batches of 256",
    }.items():
        job("method", f"memory, {_size}'s size: {_what}")(_memory(_size, _way))


PARTS = {  # where processor time is spent, by the function it is spent in
    "walking": ("walking.py:walk",),
    "open actions and rewards": ("walking.py:retrace", "walking.py:mark", "worth.py", "episodes.py"),
    "scores of candidates": ("sums.py",),
    "layers, forwards": ("torch._C._nn.linear", "torch.relu"),
    "layers, backwards": ("run_backward",),
    "optimizer": ("_fused_adam", "adam.py", "optimizer.py"),
}


def _profile(size: str, way: str) -> Job:
    def run(clock: Clock) -> None:
        import cProfile
        import pstats

        learns, batch = way.startswith("learn"), 32 if way.startswith("learn") else 256
        method = Method(size, batch)
        method.policy.train(learns)
        arguments = [] if learns else [batch]
        getattr(method, way)(*arguments)
        profile = cProfile.Profile(time.process_time)
        with clock.running():
            profile.enable()
            for _ in range(10):
                getattr(method, way)(*arguments)
            profile.disable()
        spent = dict.fromkeys([*PARTS, "the rest"], 0.0)
        for (file, _, name), (_, _, seconds, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
            place = f"{file}:{name}"
            part = next((part for part, signs in PARTS.items() if any(sign in place for sign in signs)), "the rest")
            spent[part] += seconds
        whole = sum(spent.values())
        clock.notes = {part: f"{seconds / whole:.0%}" for part, seconds in spent.items()}

    return run


for _size in METHOD:
    job("profile", f"training with all three losses, {_size}'s size, batches of 32")(_profile(_size, "learn_ours"))
    job("profile", f"greedy prediction, {_size}'s size, batches of 256")(_profile(_size, "predict_ours"))


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
