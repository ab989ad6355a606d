"""Tiny pretrained models, written to a folder as the real ones are, and encoders that use them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file

from hilap.corpus.examples import Examples
from hilap.encoders import Encoder, make
from hilap.encoders.own import ModuleEncoder
from hilap.taxonomy import Taxonomy

TAXONOMY = Taxonomy.of({"a": [], "b": ["a"], "c": []})
WORDS = [*"abcdefghijklmnopqrst", "beer", "craft", "law", "court", "##s", "##ing"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def word_pieces(words: Sequence[str] = WORDS) -> dict:
    """What `tokenizer.json` of a tiny BERT holds."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return json.loads(tokenizer.to_str())


def write_vectors(folder: Path, *, width: int = 12, name: str = "embeddings", **more: np.ndarray) -> np.ndarray:
    """A model2vec-like folder; gives back its vectors."""
    folder.mkdir(parents=True, exist_ok=True)
    table = np.random.default_rng(0).normal(size=(len(SPECIAL) + len(WORDS), width)).astype(np.float32)
    save_file({name: table, **more}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_text(json.dumps(word_pieces()))
    return table


def write_bert(folder: Path, *, width: int = 64, positions: int = 64, **changes: object) -> Path:
    """A folder with a random BERT of two layers."""
    from transformers import BertConfig, BertModel

    shape = {"hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 96}
    config = BertConfig(vocab_size=len(SPECIAL) + len(WORDS), max_position_embeddings=positions, **shape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertModel(config)
        for name, weight in model.named_parameters():  # BERT starts near 0, where little can be told apart
            if name.endswith("weight") and "LayerNorm" not in name:
                torch.nn.init.normal_(weight, std=0.2)
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(word_pieces()))
    if changes:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


class Letters(ModuleEncoder):
    """An encoder of a user's own."""

    name = "letters"

    def __init__(self, width: int = 64) -> None:
        super().__init__(width=width)

    def tensor(self, examples):
        lines = [list(text.encode("utf-8", "replace")[:40].ljust(40)) for text in examples.texts]
        return torch.tensor(lines, dtype=torch.long).view(-1, 40)

    def module(self):
        return torch.nn.Sequential(torch.nn.EmbeddingBag(256, self.options["width"]), torch.nn.Tanh())


TINY = {
    "hashed": {"features": 300, "character_ngrams": (2, 3), "hidden": (70, 9)},
    "static": {"vectors": "{vectors}", "weighting": "idf", "hidden": (70,)},
    "static tuned": {"vectors": "{vectors}", "tune": True, "weighting": "sif", "hidden": (9,)},
    "static bare": {"vectors": "{vectors}", "weighting": "none", "standardise": False, "hidden": None},
    "transformer": {"model": "{bert}", "max_tokens": 32, "hidden": (70,)},
    "transformer tuned": {"model": "{bert}", "max_tokens": 32, "frozen": False, "pooling": "max", "hidden": None},
    "transformer cls": {"model": "{bert}", "max_tokens": 32, "frozen": False, "pooling": "cls", "hidden": (9,)},
    "several": {"parts": ["{hashed}", {"encoder": "mlp", "options": {"hidden": [9]}}]},
    "letters": {"width": 70},
}
"""Name -> the options of an encoder in a small form; `{vectors}` and `{bert}` are folders."""


def tiny(name: str, folder: Path) -> Encoder:
    """One of the encoders in a small form; what it needs is written to the folder."""
    kind, options = name.split()[0], dict(TINY[name])
    if options.get("vectors"):
        write_vectors(folder / "vectors")
        options["vectors"] = str(folder / "vectors")
    if options.get("model"):
        options["model"] = str(write_bert(folder / "bert"))
    if "parts" in options:
        options["parts"] = [{"encoder": "hashed", "options": TINY["hashed"]}, *options["parts"][1:]]
    return Letters(**options) if kind == "letters" else make(kind, **options)


def needs(name: str) -> list[str]:
    """The optional packages that an encoder needs."""
    return {"static": ["tokenizers"], "transformer": ["tokenizers", "transformers"]}.get(name.split()[0], [])


def documents(n: int = 40, seed: int = 0, most: int = 45) -> Examples:
    """Texts of known and unknown words, some empty, with features and labels that depend on both."""
    random = np.random.default_rng(seed)
    vocabulary = [word for word in WORDS if not word.startswith("#")] + ["beers", "unheard", "é"]
    texts = [" ".join(random.choice(vocabulary, random.integers(0, most))) for _ in range(n)]
    texts[0] = ""
    rows = random.normal(size=(n, 5)).astype(np.float32)
    labels = [
        [label for label, has in (("b", "beer" in text), ("c", row[0] > 0)) if has]
        for text, row in zip(texts, rows, strict=True)
    ]
    return Examples.of(TAXONOMY, labels, texts=texts, features=rows)
