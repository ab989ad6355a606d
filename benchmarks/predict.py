"""`hilap predict` from file to file, and where its time goes: `python benchmarks/predict.py`.

For each kind of model a small one is trained on documents of one data set; then the command line's own function labels
a file of documents of 256 words each. Seconds are of processor time on one thread, by stage: reading the file,
tokenising, encoding, walking (the label sets), probabilities, and writing (with making the records). The time to start
Python and to open the model is not in the rate; it is printed beside it.
"""

from __future__ import annotations

import argparse
import gzip
import inspect
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("HILAP_DATA", HERE.parent.parent / "shared" / "data"))
sys.path.insert(0, str(HERE.parent / "src"))

SHORT = {"preset": "paper", "supervised_epochs": 1, "reinforced_epochs": 1}
MODELS: dict[str, dict[str, Any]] = {
    "default (wide part, residual policy)": {"preset": "residual", "reinforced_epochs": 1},
    "tfidf": {**SHORT, "encoder": "tfidf"},
    "hashed": {**SHORT, "encoder": "hashed"},
    "textcnn light, residual policy": {
        "preset": "residual",
        "flat_epochs": 1,
        "reinforced_epochs": 1,
        "wide": False,
        "folds": 1,
        "pool_validation": False,
        "encoder": "textcnn",
        "encoder_options": {"preset": "light"},
    },
    "textcnn light": {**SHORT, "encoder": "textcnn", "encoder_options": {"preset": "light"}},
    "bowcnn light": {**SHORT, "encoder": "bowcnn", "encoder_options": {"preset": "light"}},
    "bowcnn paper": {**SHORT, "encoder": "bowcnn", "encoder_options": {"preset": "paper"}},
    "han light": {**SHORT, "encoder": "han", "encoder_options": {"preset": "light"}},
}
WORDS = 256


def long_texts(texts: list[str], n: int) -> Iterator[str]:
    """So many texts of exactly 256 words, cut out of the given ones one after the other."""
    words = (word for _ in range(10_000) for text in texts for word in text.split())
    for _ in range(n):
        yield " ".join(next(words) for _ in range(WORDS))


@contextmanager
def timed(stages: dict[str, float], name: str, owner: Any, attribute: str) -> Iterator[None]:
    """Count the processor time of a function under a stage's name."""
    function: Callable[..., Any] = getattr(owner, attribute)

    def counted(*args: Any, **named: Any) -> Any:
        start = time.process_time()
        try:
            return function(*args, **named)
        finally:
            stages[name] = stages.get(name, 0.0) + time.process_time() - start

    with mock.patch.object(owner, attribute, counted):
        yield


def measure(model: Path, documents: Path, out: Path) -> tuple[float, dict[str, float]]:
    """Seconds of processor time of a whole `hilap predict`, and of each of its stages."""
    from hilap.classifier import HiLAPClassifier

    command = import_module("hilap.cli.predict")  # the package has the function under this name
    from hilap.corpus.source import Corpus
    from hilap.network import Network

    stages: dict[str, float] = {}
    batches = Corpus.batches

    def reading(self: Any, *args: Any, **named: Any) -> Iterator[Any]:
        blocks = iter(batches(self, *args, **named))
        while True:
            start = time.process_time()
            block = next(blocks, None)
            stages["reading"] = stages.get("reading", 0.0) + time.process_time() - start
            if block is None:
                return
            yield block

    arguments = {k: v.default for k, v in inspect.signature(command.predict).parameters.items()}
    arguments |= {"model": model, "input": str(documents), "out": str(out)}
    with (
        timed(stages, "opening", command, "open_model"),
        timed(stages, "tokenising", Network, "prepare"),
        timed(stages, "encoding", Network, "see"),
        timed(stages, "walking", HiLAPClassifier, "_placed"),
        timed(stages, "probabilities", HiLAPClassifier, "_chances"),
        mock.patch.object(Corpus, "batches", reading),
    ):
        start = time.process_time()
        command.predict(**arguments)
        whole = time.process_time() - start
    whole -= stages.pop("opening")
    stages["writing"] = whole - sum(stages.values())
    return whole, stages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="arxiv", help="a folder of the data directory with texts")
    parser.add_argument("--documents", type=int, default=5_000)
    parser.add_argument("--train", type=int, default=2_000, help="documents that the small models are trained on")
    parser.add_argument("--only", action="append", help="a model of the table; may be given again")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()

    import torch

    from hilap import HiLAPClassifier
    from hilap.corpus.datasets import load_folder

    torch.set_num_threads(1)
    parts = load_folder(DATA / chosen.set)
    train = parts["train"].take(range(chosen.train))
    found = {}
    with tempfile.TemporaryDirectory() as place:
        documents = Path(place, "documents.jsonl.gz")
        with gzip.open(documents, "wt", encoding="utf-8", compresslevel=3) as lines:
            for i, text in enumerate(long_texts(list(parts["valid"].texts), chosen.documents)):
                lines.write(json.dumps({"id": str(i), "text": text}) + "\n")
        for name in chosen.only or MODELS:
            model = Path(place, "model")
            HiLAPClassifier(**MODELS[name]).fit(train, valid=parts["valid"]).save(model)
            measure(model, documents, Path(place, "warm.jsonl"))  # compiles what is compiled at first use
            whole, stages = measure(model, documents, Path(place, "out.jsonl"))
            found[name] = {"documents/s": chosen.documents / whole, **{k: v / whole for k, v in stages.items()}}
            if not chosen.json:
                shares = ", ".join(f"{stage} {100 * seconds / whole:.0f}%" for stage, seconds in stages.items())
                print(f"{name}: {chosen.documents / whole:,.0f} documents/s ({shares})", flush=True)
    if chosen.json:
        print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
