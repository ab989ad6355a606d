"""A torch module of your own as the encoder: trained, saved and opened again."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

import hilap
from hilap import HiLAPClassifier, samples
from hilap.corpus.examples import Examples
from hilap.encoders import ENCODERS, ModuleEncoder

FOLDER = Path("own-encoder-model")


class Letters(ModuleEncoder):
    """The first letters of a text as bytes, through embeddings and a convolution."""

    name = "letters"

    def __init__(self, *, letters: int = 200, width: int = 64) -> None:
        super().__init__(letters=letters, width=width)

    def tensor(self, examples: Examples) -> Tensor:
        """(n, letters) the bytes of each text, blanks behind its end."""
        n = self.options["letters"]
        raw = b"".join(text.encode()[:n].ljust(n) for text in examples.texts or ())
        return torch.frombuffer(bytearray(raw or b" "), dtype=torch.uint8)[: len(raw)].view(-1, n).long()

    def module(self) -> nn.Module:
        """(B, letters) -> (B, width)."""
        width = self.options["width"]
        embed = nn.Sequential(nn.Embedding(256, 16), _Swap(), nn.Conv1d(16, width, 5), nn.ReLU())
        return nn.Sequential(embed, nn.AdaptiveMaxPool1d(1), nn.Flatten())


class _Swap(nn.Module):
    def forward(self, batch: Tensor) -> Tensor:
        return batch.transpose(1, 2)


ENCODERS[Letters.name] = Letters  # so that its models can be opened again


def main(documents: int = 1000, epochs: int = 6) -> None:
    """Train on some documents of the bundled sample, save the model, open it and label a document."""
    parts = samples.load("pypi_topics")
    train, test = (parts[name].take(range(min(documents, len(parts[name])))) for name in ("train", "test"))
    classifier = HiLAPClassifier(
        encoder="letters",
        encoder_options={"width": 32},
        supervised_epochs=epochs,
        reinforced_epochs=epochs,
        hidden=50,
        width=20,
    )
    classifier.fit(train)
    classifier.save(FOLDER)
    opened = hilap.load(FOLDER)
    print(f"example F1 on {len(test)} test documents: {opened.score(test):.3f}")  # noqa: T201
    print(opened.predict_labels(test.take([0]))[0])  # noqa: T201


if __name__ == "__main__":
    main()
