"""What labels are called, for neural encoders: labels' weights that start at, or are tied to, their encoded texts.

A label's text is its name, its definition if it has one, and the names on the way to it. The encoder of documents
encodes it, so that a label that few or no training documents have is still near those with a similar text::

    v_l = encoder(text of l)      u_l = (v_l - mean) / size      what labels have in common says nothing about any
    flat head     w_l = free_l + gain * u_l                      documents and labels are of one width: a gain is enough
    policy        l_l = free_l + M u_l                           M maps from the width of documents to that of labels

The free parts start at zero. `start` adds the two up before training, and the sums learn freely; `tied` keeps the
sums: free parts, gain, M and, through v_l, the encoder learn. After training the sums are taken once and for all
(`Tie.fold`), so a trained network has no label texts, and neither predicting nor opening it costs anything more.

With more than `FRESH` labels, each update encodes so many of them, drawn anew, and remembers the others as they were
encoded last; the gradients of those that are drawn stand for all, so that in the mean they are those of all labels.
Whatever is judged, kept or predicted takes the exact vectors of all labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from scipy import sparse
from torch import Tensor, nn

from hilap.corpus import Examples
from hilap.encoders import Encoder, Prepared
from hilap.errors import SettingError
from hilap.products import linear
from hilap.taxonomy import Taxonomy

if TYPE_CHECKING:
    from typing_extensions import Self

Way = Literal["start", "tied"]

FRESH = 256  # labels that are encoded with gradients in one update
BLOCK = 256  # labels that are encoded at a time without gradients
DEFINITION_WORDS = 30  # about a sentence: the first says what a label is, those behind it are notes and exceptions


def label_texts(taxonomy: Taxonomy) -> list[str]:
    """What each label is called and means: its name, its definition if it has one, and the names on the way to it.

    What says most comes first, as encoders may cut a text. Of a definition only the first `DEFINITION_WORDS` words are
    taken: where an encoder averages over words, the few of a name would count for next to nothing in a page of them.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Beer": ["Food"]}, definitions={"Beer": "A drink of malt and hops."})
    >>> label_texts(taxonomy)
    ['Food', 'Beer A drink of malt and hops. Food']
    """
    names = dict(zip(taxonomy.labels, taxonomy.names, strict=True))
    meant = dict(zip(taxonomy.labels, taxonomy.definitions, strict=True))
    texts: list[str] = []
    for label in taxonomy.labels:
        path = [names[above] for above in taxonomy.ancestors(label)]
        texts.append(" ".join([names[label], *meant[label].split()[:DEFINITION_WORDS], *path]))
    return texts


def check_encoder(encoder: Encoder, way: Way) -> None:
    """Require an encoder that can encode what labels are called.

    Examples
    --------
    >>> from hilap.encoders import make
    >>> check_encoder(make("textcnn"), "tied")
    >>> check_encoder(make("mlp"), "tied")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    hilap.errors.SettingError: label_text='tied' needs an encoder that reads texts, ... 'mlp' reads feature rows; ...
    """
    if "texts" in encoder.reads and encoder.name != "none":
        return
    reads = "reads nothing" if encoder.name == "none" else "reads feature rows"
    other = "label_text=True, which the wide part can use" if encoder.name == "none" else "label_text to false"
    raise SettingError(
        f"label_text={way!r} needs an encoder that reads texts, as it encodes what labels are called with it, but "
        f"{encoder.name!r} {reads}; choose another such as 'static' or 'textcnn', or set {other}"
    )


def label_rows(taxonomy: Taxonomy, encoder: Encoder, features: Any = None) -> Prepared:
    """The texts of all labels, prepared as documents are.

    Parameters
    ----------
    taxonomy
        The labels.
    encoder
        A fitted one.
    features
        (n, F) those of training documents, where the encoder reads features beside texts. A label has none: they are
        missing, so the encoder takes them as their mean (sparse ones as zero).
    """
    missing = None
    if "features" in encoder.reads and features is not None:
        shape = (len(taxonomy), features.shape[1])
        is_sparse = sparse.issparse(features)
        missing = sparse.csr_array(shape, dtype=np.float32) if is_sparse else np.full(shape, np.nan, np.float32)
    # A label's own name comes once more, and first: it says more than the names above it, and is never cut off.
    texts = [f"{name}. {text}" for name, text in zip(taxonomy.names, label_texts(taxonomy), strict=True)]
    return encoder.prepare(Examples.of(taxonomy, [[]] * len(taxonomy), texts=texts, features=missing))


class _Keeping(nn.Module):
    """Keeps what it computed from weights that do not change, until they may have changed."""

    _kept: Any = None

    def forget(self) -> None:
        """The weights have changed, or may have."""
        self._kept = None

    def train(self, mode: bool = True) -> Self:
        """Set the mode, as in torch; what is kept is forgotten."""
        self.forget()
        return super().train(mode)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self.forget()
        super()._load_from_state_dict(*args, **kwargs)


class Called(_Keeping):
    """Label texts as vectors of one encoder, which is given to every call and belongs to someone else.

    Parameters
    ----------
    rows
        What `label_rows` gave.
    encoder
        Gives the mean of all vectors and their size (the root of their mean squared distance to it), which are kept.
    """

    mean: Tensor  # (D,)
    size: Tensor  # ()
    vectors: Tensor  # (L, D) as encoded last, where not all labels are encoded in every update; else nothing

    def __init__(self, rows: Prepared, encoder: Encoder) -> None:
        super().__init__()
        self.rows = rows
        self.latest: Tensor | None = None  # what `forward` gave last: other weights may be tied to the same vectors
        vectors = self._encode_all(encoder)
        mean = vectors.mean(0)
        size = (vectors - mean).square().sum(1).mean().sqrt()
        self.register_buffer("mean", mean)
        self.register_buffer("size", size if size > 0 else torch.ones(()))
        self.register_buffer("vectors", vectors if len(rows) > FRESH else vectors[:0])

    def forward(self, encoder: Encoder) -> Tensor:
        """(L, D) u: with gradients and dropout in training, else the exact ones."""
        learns = self.training and any(weight.requires_grad for weight in encoder.parameters())
        self.latest = self._scaled(self._learning(encoder)) if learns else self.still(encoder)
        return self.latest

    def still(self, encoder: Encoder) -> Tensor:
        """(L, D) u of all labels without gradients or dropout; encoded once as long as the encoder does not learn."""
        if self._kept is None:
            self._kept = self._scaled(self._encode_all(encoder))
        kept: Tensor = self._kept
        return kept

    def _learning(self, encoder: Encoder) -> Tensor:
        """(L, D) v with gradients of some labels at least."""
        self.forget()  # an update comes
        n = len(self.rows)
        if n <= FRESH:
            every: Tensor = encoder(self.rows.batch(np.arange(n)))
            return every
        some = torch.randperm(n)[:FRESH].sort().values  # from the generator that the trainer seeds for dropout
        fresh: Tensor = encoder(self.rows.batch(some.numpy()))
        values = fresh.detach()
        standing_for_all = values + (fresh - values) * (n / FRESH)
        result = self.vectors.index_copy(0, some, standing_for_all)
        self.vectors.index_copy_(0, some, values)
        return result

    @torch.no_grad()
    def _encode_all(self, encoder: Encoder) -> Tensor:
        was_training = encoder.training
        encoder.eval()
        try:
            blocks = np.array_split(np.arange(len(self.rows)), -(-len(self.rows) // BLOCK) or 1)
            return torch.cat([encoder(self.rows.batch(rows)) for rows in blocks])
        finally:
            encoder.train(was_training)

    def _scaled(self, vectors: Tensor) -> Tensor:
        return (vectors - self.mean) / self.size


class Tie(_Keeping):
    """A weight of another module, a row for each label, as a free part and a part that its text gives.

    It takes the weight's place: the other module has a plain tensor there, put in by `renew`, until `fold` gives it a
    weight of its own again. Rows behind the labels', such as the root's, have no text and are free.

    Parameters
    ----------
    owner, name
        Whose weight it is, and its name there.
    map
        How a label's vector (D,) becomes its part of the row: a (C, D) matrix, or (D,) gains where both are as wide.
    n_labels
        How many of the rows are labels'.
    """

    def __init__(self, owner: nn.Module, name: str, map: Tensor, n_labels: int) -> None:
        super().__init__()
        weight: Tensor = getattr(owner, name).detach()
        free = weight.clone()
        free[:n_labels] = 0
        self.name = name
        self.free = nn.Parameter(free)
        self.map = nn.Parameter(map)
        delattr(owner, name)  # a parameter cannot be replaced by a tensor in its place
        setattr(owner, name, weight)

    def forward(self, vectors: Tensor) -> Tensor:
        """(N, C) the weight, from (L, D) vectors."""
        given = vectors * self.map if self.map.ndim == 1 else linear(vectors, self.map, None)
        return self.free + F.pad(given, (0, 0, 0, len(self.free) - len(given)))

    def renew(self, owner: nn.Module, vectors: Tensor) -> None:
        """Put the weight that follows from these vectors into its place."""
        if self.training:
            setattr(owner, self.name, self(vectors))
            return
        if self._kept is None or self._kept[0] is not vectors:  # the same tensor again, or walkers would be made anew
            self._kept = (vectors, self(vectors).detach())
        setattr(owner, self.name, self._kept[1])

    @torch.no_grad()
    def fold(self, owner: nn.Module, vectors: Tensor) -> None:
        """Give the owner a weight of its own again, with this value."""
        weight = self(vectors)
        delattr(owner, self.name)
        owner.register_parameter(self.name, nn.Parameter(weight))


def gains(dim: int, *, zero: bool = False) -> Tensor:
    """(D,) gains for a flat head: rows as long as those of a head that is drawn, or zero."""
    return torch.full((dim,), 0.0 if zero else 3**-0.5)


def drawn_map(dim: int, width: int, *, scale: float, generator: torch.Generator) -> Tensor:
    """(C, D) a map for a policy: rows are about as long as those that are drawn, times the scale."""
    drawn = torch.empty(width, dim)
    return nn.init.normal_(drawn, std=scale * width**-0.5, generator=generator) if scale else drawn.zero_()


__all__ = ["FRESH", "Called", "Tie", "Way", "check_encoder", "drawn_map", "gains", "label_rows", "label_texts"]
