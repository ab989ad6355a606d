"""How fast the text encoders are, against the straightforward way to write them: `python benchmarks/encoders.py`.

Documents a second of one thread's processor time, in one run on one machine: compare ratios, not machines. Texts are
synthetic, of 256 words each unless `--words` says otherwise, drawn from 30,000 words by Zipf's law. The straightforward
ways have the same weights, and what they give is compared with what the encoder gives before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hilap.adam import Adam, gradients_by_rows
from hilap.corpus.examples import Examples
from hilap.encoders import make
from hilap.encoders.tokens import words
from hilap.encoders.vocabulary import PADDING, UNKNOWN
from hilap.files import writing
from hilap.taxonomy import Taxonomy

VOCABULARY = 30_000
TRAIN_BATCH, PREDICT_BATCH, PLAIN_BATCH = 32, 256, 32
SENTENCE = 25  # words
Forward = Callable[[Any], Tensor]


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


# -- the straightforward ways -----------------------------------------------------------------------------------------


def padded(batch: Any, width: int, before: int = 0) -> Tensor:
    """(B, before + width) word numbers, nothing behind the last."""
    ids = torch.full((len(batch), before + width), PADDING)
    for i in range(len(batch)):
        line = batch.tokens[batch.starts[i] : batch.starts[i + 1]]
        ids[i, before : before + len(line)] = line
    return ids


def plain_textcnn(encoder: Any) -> tuple[nn.Module, Forward]:
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

    return module, forward


def plain_bowcnn(encoder: Any) -> tuple[nn.Module, Forward]:
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

    return module, forward


def plain_han(encoder: Any) -> tuple[nn.Module, Forward]:
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

    return module, forward


PLAIN: dict[str, Callable[[Any], tuple[nn.Module, Forward]]] = {
    "textcnn": plain_textcnn,
    "bowcnn": plain_bowcnn,
    "han": plain_han,
}


# -- timing -----------------------------------------------------------------------------------------------------------


def rate(job: Callable[[int], None], documents: int, batches: int) -> float:
    """Documents a second, of the fastest of several batches after one to warm up."""
    job(0)
    seconds = []
    for number in range(batches):
        start = time.process_time()
        job(number)
        seconds.append(time.process_time() - start)
    return documents / min(seconds)


def predicting(forward: Forward, prepared: Any, size: int, batches: int) -> float:
    def job(number: int) -> None:
        with torch.no_grad():
            forward(prepared.batch(rows_of(prepared, size, number)))

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


def measured(name: str, preset: str, examples: Examples, max_words: int, batches: int) -> dict[str, Any]:
    """One encoder and its straightforward way."""
    encoder = make(name, preset=preset, dropout=0.0, max_words=max_words)
    encoder.fit(examples, generator=torch.Generator().manual_seed(0))
    start = time.process_time()
    prepared = encoder.prepare(examples)
    preparing = len(examples) / (time.process_time() - start)
    module, forward = PLAIN[name](encoder)
    few = prepared.batch(rows_of(prepared, 8, 0))
    with torch.no_grad():
        difference = float((encoder(few) - forward(few)).abs().max())
    return {
        "encoder": name,
        "preset": preset,
        "width": encoder.dim,
        "difference": difference,
        "prepare": preparing,
        "predict": predicting(encoder, prepared, PREDICT_BATCH, batches),
        "predict_plain": predicting(forward, prepared, PLAIN_BATCH, batches),
        "train": training(encoder, encoder, prepared, batches),
        "train_plain": training(module, forward, prepared, batches),
    }


def words_rate(texts: list[str]) -> float:
    start = time.process_time()
    for text in texts:
        words(text, 256)
    return len(texts) / (time.process_time() - start)


def shown(row: dict[str, Any]) -> str:
    ratios = [row[what] / row[f"{what}_plain"] for what in ("predict", "train")]
    return (
        f"{row['encoder']:8} {row['preset']:6} {row['width']:6,} {row['prepare']:9,.0f} "
        f"{row['predict']:9,.0f} {row['predict_plain']:7,.0f} {ratios[0]:6.1f}x "
        f"{row['train']:8,.0f} {row['train_plain']:7,.0f} {ratios[1]:6.1f}x  {row['difference']:.0e}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoders", nargs="*", default=[*PLAIN], metavar="ENCODER", help=", ".join(PLAIN))
    parser.add_argument("--preset", action="append", choices=["paper", "light"], help="default: both")
    parser.add_argument("--words", type=int, default=256, help="words of a text (default 256)")
    parser.add_argument("--batches", type=int, default=5, help="how often each thing is timed (default 5)")
    parser.add_argument("--json", help="also write the figures to this file")
    options = parser.parse_args()
    unknown = [name for name in options.encoders if name not in PLAIN]
    if unknown:
        parser.error(f"there is no encoder {unknown[0]!r} here; there are: {', '.join(PLAIN)}")
    torch.set_num_threads(1)
    texts = synthetic(3 * PREDICT_BATCH, options.words)
    examples = Examples.of(Taxonomy.of({"a": []}), [[]] * len(texts), texts=texts)
    print(f"{options.words} words a text, one thread, documents a second of processor time")
    print(f"finding words alone: {words_rate(texts):,.0f}")
    print("                                        predict   plain            train   plain          largest")
    print("encoder  preset  width   prepare                                                       difference")
    rows = []
    for name in options.encoders:
        for preset in options.preset or ["paper", "light"]:
            rows.append(measured(name, preset, examples, options.words, options.batches))
            print(shown(rows[-1]), flush=True)
    if options.json:
        with writing(options.json) as stream:
            json.dump({"words": options.words, "torch": torch.__version__, "rows": rows}, stream, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
