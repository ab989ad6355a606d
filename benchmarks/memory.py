"""Memory of training against the number of documents: all in memory, and streamed from a working folder.

    python benchmarks/memory.py                            # the table of docs/speed.md, some minutes
    python benchmarks/memory.py --documents 5000 20000 --encoders hashed

Synthetic corpora of a hundred words a document are written to a temporary folder. Each training is a process of its own
(one flat epoch of a tiny network, a thousand validation documents); its anonymous memory (RssAnon: without pages of
mapped files, which the system drops when memory is short) is sampled from outside. Streamed or not, the weights must be
the same to the last bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

LABELS, WORDS, LENGTH = 60, 30_000, 100
LIMIT = "4MB"
ENCODERS = {
    "textcnn": {"preset": "light", "filters": 8, "dimensions": 8, "kernels": [3], "vocabulary": 10_000},
    "hashed": {"features": 8_192, "word_ngrams": [1, 1], "hidden": [16]},
    "tfidf": {"max_features": 10_000, "hidden": [16]},
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--documents", type=int, nargs="+", default=[10_000, 40_000, 160_000])
    options.add_argument("--encoders", nargs="+", choices=ENCODERS, default=["textcnn", "tfidf"])
    options.add_argument("--train", nargs=3, metavar=("FOLDER", "ENCODER", "MEMORY"), help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.train:
        train(Path(given.train[0]), given.train[1], given.train[2])
        return
    print(f"| | {' | '.join(f'{n:,} documents' for n in given.documents)} | bytes a further document |")
    print("|---" + "|--:" * (len(given.documents) + 1) + "|")
    measure(given.documents, given.encoders)


def measure(sizes: list[int], encoders: list[str]) -> None:
    """Print a row of peaks for each encoder, in memory and streamed."""
    found: dict[tuple[str, str], list[tuple[float, str]]] = {}
    with tempfile.TemporaryDirectory(prefix="hilap-memory-") as name:
        for n in sizes:
            folder = Path(name) / str(n)
            write(folder, n)
            for encoder in encoders:
                for memory in ("1TB", LIMIT):
                    found.setdefault((encoder, memory), []).append(peak(folder, encoder, memory))
                (whole, streamed) = (found[encoder, memory][-1][1] for memory in ("1TB", LIMIT))
                if whole != streamed:
                    raise SystemExit(f"{encoder}, {n:,} documents: streamed training gave other weights")
    for (encoder, memory), peaks in found.items():
        how = "in memory" if memory == "1TB" else f"streamed, limit {memory}"
        cells = [f"{size / 1e6:,.0f} MB" for size, _ in peaks]
        slope = (peaks[-1][0] - peaks[0][0]) / max(1, sizes[-1] - sizes[0])
        print(f"| {encoder}, {how} | {' | '.join(cells)} | {slope:,.0f} |")


def write(folder: Path, n: int) -> None:
    """A taxonomy, a training corpus of n documents and a thousand validation documents."""
    folder.mkdir()
    with open(folder / "taxonomy.jsonl", "w") as stream:
        for label in range(LABELS):
            parents = [] if label < 6 else [f"l{label % 6}"]
            stream.write(json.dumps({"label": f"l{label}", "parents": parents}) + "\n")
    rng = np.random.default_rng(0)
    words = np.array([f"w{number:05d}" for number in range(WORDS)])
    for name, size in (("train.jsonl", n), ("valid.jsonl", 1_000)):
        with open(folder / name, "w") as stream:
            for start in range(0, size, 1_000):
                some = min(1_000, size - start)
                chosen = words[np.minimum(rng.zipf(1.3, (some, LENGTH)), WORDS) - 1]
                labels = rng.integers(0, LABELS, (some, 2))
                for row in range(some):
                    document = {"id": str(start + row), "text": " ".join(chosen[row])}
                    stream.write(json.dumps({**document, "labels": [f"l{k}" for k in labels[row]]}) + "\n")


def peak(folder: Path, encoder: str, memory: str) -> tuple[float, str]:
    """The highest anonymous memory of a training in bytes, and a hash of its weights."""
    command = [sys.executable, __file__, "--train", str(folder), encoder, memory]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)}
    highest = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as running:
        status = Path(f"/proc/{running.pid}/status")
        while running.poll() is None:
            for line in status.read_text().splitlines():
                if line.startswith("RssAnon:"):
                    highest = max(highest, 1024 * int(line.split()[1]))
            time.sleep(0.02)
        said = running.stdout.read() if running.stdout else ""
    if running.returncode:
        raise SystemExit(f"training {encoder} with {memory} failed")
    print(f"{folder.name} {encoder} {memory}: {highest / 1e6:.0f} MB, {said.strip()}", file=sys.stderr, flush=True)
    return highest, said.split()[0]


def train(folder: Path, encoder: str, memory: str) -> None:
    """Train once, and print a hash of the weights and the processor time."""
    import hilap

    taxonomy = hilap.read_taxonomy(folder / "taxonomy.jsonl")
    documents = hilap.read_corpus(folder / "train.jsonl", taxonomy).load(memory)
    valid = hilap.read_corpus(folder / "valid.jsonl", taxonomy).load()
    classifier = hilap.HiLAPClassifier(
        encoder=encoder, encoder_options=ENCODERS[encoder], variant="flat", flat_epochs=1, batch_size=256, tune=None
    ).fit(documents, valid=valid)
    digest = hashlib.sha256()
    for name, weight in sorted(classifier.network_.state_dict().items()):
        digest.update(name.encode() + weight.numpy().tobytes())
    print(digest.hexdigest()[:16], f"{time.process_time():.0f}s")


if __name__ == "__main__":
    main()
