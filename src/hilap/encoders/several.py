"""Several encoders at once, their vectors side by side: text and feature columns, or two views of one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from hilap.corpus.examples import Examples
from hilap.encoders.base import Encoder, Json, Prepared, Rows, checked_options
from hilap.errors import ModelError, require

if TYPE_CHECKING:
    from typing_extensions import Self

MOST_PARTS = 20


@dataclass(frozen=True)
class SeveralBatch:
    """The same documents as each part takes them."""

    parts: tuple[Any, ...]

    def to(self, device: torch.device | str) -> SeveralBatch:
        """The same batch on another device."""
        return SeveralBatch(tuple(part.to(device) for part in self.parts))


class SeveralRows:
    """A block of documents, prepared by each part."""

    def __init__(self, parts: Sequence[Prepared]) -> None:
        self.parts = tuple(parts)

    def __len__(self) -> int:
        return len(self.parts[0])

    def batch(self, rows: Rows) -> SeveralBatch:
        """These documents, for each part."""
        return SeveralBatch(tuple(part.batch(rows) for part in self.parts))


class Several(Encoder):
    """Encoders side by side; each takes what it needs of a document, its text or its features.

    Parameters
    ----------
    parts
        Encoders: by name, by name and options as `{"encoder": "tfidf", "options": {"hidden": [300]}}`, or made already.

    Examples
    --------
    >>> import numpy as np
    >>> from hilap.taxonomy import Taxonomy
    >>> rows = np.array([[1.0, 2.0], [3.0, 5.0]], dtype=np.float32)
    >>> texts = ["craft beer", "craft rum"]
    >>> examples = Examples.of(Taxonomy.of({"A": []}), [["A"], []], texts=texts, features=rows)
    >>> encoder = Several(["tfidf", {"encoder": "mlp", "options": {"hidden": 7}}])
    >>> encoder.fit(examples, generator=torch.Generator().manual_seed(0)).dim
    507
    >>> encoder.reads
    ('texts', 'features')
    """

    name = "several"

    def __init__(self, parts: Sequence[str | Mapping[str, Any] | Encoder] = ("tfidf", "mlp")) -> None:
        super().__init__()
        good = isinstance(parts, Sequence) and not isinstance(parts, str) and 1 <= len(parts) <= MOST_PARTS
        require(good, "parts", f"a list of encoders, at least 1 and at most {MOST_PARTS}", parts)
        self.parts = nn.ModuleList([_made(part) for part in parts])

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        """The parts."""
        return tuple(self.parts)  # type: ignore[arg-type]

    @property
    def reads(self) -> tuple[str, ...]:
        """All that the parts read."""
        wanted = {kind for part in self.encoders for kind in part.reads}
        return tuple(kind for kind in ("texts", "features") if kind in wanted)

    def fit(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Fit each part."""
        for part in self.encoders:
            part.fit(examples, generator=generator)
        return self._joined()

    def sibling(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Another member, of siblings."""
        other = type(self)([part.sibling(examples, generator=generator) for part in self.encoders])
        return other._joined()

    def prepare(self, examples: Examples) -> SeveralRows:
        """The documents, prepared by each part."""
        self.check_fitted()
        return SeveralRows([part.prepare(examples) for part in self.encoders])

    def forward(self, batch: SeveralBatch) -> Tensor:
        """(B, dim) the parts' vectors side by side."""
        self.check_fitted()
        return torch.cat([part(mine) for part, mine in zip(self.parts, batch.parts, strict=True)], dim=1)

    def rates(self) -> dict[str, float]:
        """Those of the parts."""
        return {
            f"parts.{k}.{start}": share for k, part in enumerate(self.encoders) for start, share in part.rates().items()
        }

    def settings(self) -> dict[str, Json]:
        """The constructor's arguments as plain values."""
        return {"parts": [{"encoder": part.name, "options": part.settings()} for part in self.encoders]}

    def learned(self) -> dict[str, Json]:
        """What each part has learned, and the number of features where one reads them."""
        self.check_fitted()
        parts: list[Json] = [part.learned() for part in self.encoders]
        widths = [part["features"] for part in parts if isinstance(part, dict) and "features" in part]
        return {"parts": parts, **({"features": widths[0]} if widths else {})}

    @classmethod
    def restore(cls, settings: Mapping[str, Json], learned: Mapping[str, Json]) -> Self:
        """An encoder of the same shape, ready for `load_state_dict`."""
        from hilap.encoders import restore

        wanted, known = checked_options(cls, settings).get("parts"), learned.get("parts")
        if not isinstance(wanted, list) or not isinstance(known, list) or not 1 <= len(wanted) == len(known):
            raise ModelError("a several encoder has settings of 'parts' and has learned as many, but the model has not")
        if any(not isinstance(part, dict) or {*part} != {"encoder", "options"} for part in wanted):
            raise ModelError("a part of a several encoder has 'encoder' and 'options', but in the model one has not")
        if any(part["encoder"] == cls.name for part in wanted):
            raise ModelError("a part of a several encoder is one itself; put their parts into one list")
        restored = [restore(p["encoder"], p["options"], k) for p, k in zip(wanted, known, strict=True)]
        return cls(restored)._joined()

    def _joined(self) -> Self:
        self.dim = sum(part.dim for part in self.encoders)
        return self


def _made(part: Any) -> Encoder:
    from hilap.encoders import make

    if isinstance(part, Mapping):
        good = (
            set(part) <= {"encoder", "options"} and "encoder" in part and isinstance(part.get("options", {}), Mapping)
        )
        require(good, "a part", 'such as {"encoder": "tfidf", "options": {"hidden": [300]}}', part)
        made = make(part["encoder"], **part.get("options", {}))
    else:
        made = make(part)
    require(not isinstance(made, Several), "a part", "one encoder; put the parts of both into one list", part)
    return made
