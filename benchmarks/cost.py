"""What a walk costs against the size of the taxonomy and of the batch: `python benchmarks/cost.py`.

Synthetic trees and DAGs of 100 to 100,000 labels (each label below a random one of the level above, levels growing
three times; in a DAG every third label has a second parent), the paper's sizes for text (500 and 50), 20 steps for
every walk (stop is made impossible), batches of 32; then batches of 1 to 512 with 1,000 and 100,000 labels. Every
figure comes from a process of its own and is the best of several runs, in seconds of one thread's processor time. The
plain way (`reference.py`) is measured as far as its dense tables go, 10,000 labels.

Writes `results/cost.json` and draws `docs/figures/cost.svg` and `.png`; `--draw` only draws what was written before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from plotting import FIGURES, panels, save
from speed import _rates, label_sets, peak_megabytes

from hilap.taxonomy import Taxonomy

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "cost.json"
FIGURE = FIGURES / "cost"
STEPS, DIM, HIDDEN, WIDTH = 20, 300, 500, 50
SIZES = (100, 1_000, 10_000, 100_000)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
MOST_PLAIN = 10_000


def grown(labels: int, dag: bool) -> Taxonomy:
    """A tree or DAG of so many labels, ten at the top, each level three times the one above."""
    rng = np.random.default_rng(0)
    starts, size = [0], 10
    while starts[-1] < labels:
        starts.append(min(labels, starts[-1] + size))
        size *= 3
    level = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    parents: list[list[int]] = [[] for _ in range(labels)]
    for i in range(starts[1], labels):
        above = starts[level[i] - 1], starts[level[i]]
        parents[i] = sorted({int(x) for x in rng.integers(*above, 2 if dag and i % 3 == 0 else 1)})
    names = [f"L{i:06d}" for i in range(labels)]
    return Taxonomy(names, [[names[p] for p in mine] for mine in parents])


def function_of(labels: int, dag: bool, batch: int, way: str) -> Callable[[], Any]:
    """What is measured: prediction or training, ours or the plain way."""
    import torch
    from reference import PlainPolicy

    from hilap import decoding
    from hilap.network import reinforced_loss
    from hilap.policy import Policy

    torch.set_num_threads(1)
    taxonomy = grown(labels, dag)
    generator = torch.Generator().manual_seed(0)
    policy = Policy(taxonomy, DIM, hidden=HIDDEN, width=WIDTH, generator=generator)
    embeddings = torch.randn(batch, DIM, generator=generator)
    sets = taxonomy.from_indices(*label_sets(taxonomy, batch, 3), close=True)
    gold = torch.from_numpy(sets.toarray().astype(bool))
    never = torch.zeros(labels + 1).index_fill(0, torch.tensor([labels]), -1e9)

    def predict() -> None:
        policy.eval()
        with torch.no_grad():
            decoding.decode(policy, policy.documents(embeddings, bias=never), max_steps=STEPS)

    def learn() -> None:
        policy.train()
        policy.zero_grad()
        documents = policy.documents(embeddings, bias=never)
        reinforced_loss(policy, documents, gold, max_steps=STEPS, gamma=0.9, generator=generator)[0].mean().backward()

    found: dict[str, Callable[[], Any]] = {"predict": predict, "learn": learn}
    if way.endswith("plain"):
        plain = PlainPolicy(policy, taxonomy, lambda features: (features, None), never)  # type: ignore[arg-type, return-value]

        def learn_plain() -> None:
            policy.zero_grad()
            plain.reinforced(embeddings, gold, STEPS, generator).mean().backward()

        found |= {"predict plain": lambda: plain.walk(embeddings, None, STEPS, None), "learn plain": learn_plain}
    return found[way]


def measure(labels: int, dag: bool, batch: int, way: str) -> dict[str, float]:
    """Milliseconds for a document, and the peak memory of the process (Python, torch and numba take 300 MB of it)."""
    rate = _rates({way: function_of(labels, dag, batch, way)}, batch, seconds=3.0)[way]
    return {"ms": round(1000 / rate, 4), "peak_mb": round(peak_megabytes())}


def apart(labels: int, dag: bool, batch: int, way: str) -> dict[str, Any]:
    """One measurement in a process of its own."""
    words = [str(labels), "dag" if dag else "tree", str(batch), way]
    paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--inside", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    row = {"labels": labels, "dag": dag, "batch": batch, "way": way, **json.loads(done.stdout)}
    told = f"{row['ms']:>9.3f} ms {row['peak_mb']:>7.0f} MB"
    print(f"{labels:>7,} labels, {words[1]:<4}, batch {batch:>3}, {way:<13} {told}", flush=True)
    return row


def run() -> dict[str, Any]:
    by_size = [
        apart(labels, dag, 32, way)
        for labels in SIZES
        for dag in (False, True)
        for way in ("predict", "learn", *(("predict plain", "learn plain") if labels <= MOST_PLAIN else ()))
    ]
    by_batch = [
        apart(labels, False, batch, way)
        for labels in (1_000, 100_000)
        for batch in BATCHES
        for way in ("predict", "learn", *(("predict plain",) if labels <= MOST_PLAIN else ()))
    ]
    return {"steps": STEPS, "hidden": HIDDEN, "width": WIDTH, "by_size": by_size, "by_batch": by_batch}


def draw(found: dict[str, Any], path: Path = FIGURE) -> None:
    figure, ((left, right),) = panels(1, 2, width=5, height=4)
    for way, colour in (("predict", "black"), ("learn", "0.55")):
        for dag, line, mark in ((False, "-", "o"), (True, "--", "s")):
            _line(left, found["by_size"], way, colour, line, mark, f"{way}, {'DAG' if dag else 'tree'}", dag=dag)
        _line(left, found["by_size"], f"{way} plain", colour, ":", "x", f"{way}, tree, the plain way", dag=False)
        for labels, line, mark in ((1_000, "-", "o"), (100_000, "--", "s")):
            _line(right, found["by_batch"], way, colour, line, mark, f"{way}, {labels:,} labels", labels=labels)
    _line(
        right,
        found["by_batch"],
        "predict plain",
        "black",
        ":",
        "x",
        "predict, 1,000 labels, the plain way",
        labels=1000,
    )
    left.set(xlabel="labels", title=f"batches of 32, {found['steps']} steps a walk")
    right.set(xlabel="documents in a batch", title=f"trees, {found['steps']} steps a walk")
    right.set_xscale("log", base=2)
    for axes in (left, right):
        axes.set(yscale="log", ylabel="milliseconds for a document, one thread")
        axes.grid(True, which="major", linewidth=0.3)
        axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)  # over no line
    left.set_xscale("log")
    save(figure, path)


def _line(
    axes: Any, rows: list[dict[str, Any]], way: str, colour: str, line: str, mark: str, name: str, **which: Any
) -> None:
    mine = [row for row in rows if row["way"] == way and all(row[key] == value for key, value in which.items())]
    along = "batch" if "labels" in which else "labels"
    places, values = [row[along] for row in mine], [row["ms"] for row in mine]
    axes.plot(places, values, line, color=colour, marker=mark, markersize=4, label=name)


def main() -> None:
    from hilap.files import writing

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="only draw what was measured before")
    parser.add_argument("--inside", nargs=4, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        labels, kind, batch, way = chosen.inside
        return print(json.dumps(measure(int(labels), kind == "dag", int(batch), way)))
    if not chosen.draw:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        found = run()
        with writing(RESULTS) as lines:
            lines.write(json.dumps(found, indent=1) + "\n")
    return draw(json.loads(RESULTS.read_text()))


if __name__ == "__main__":
    main()
