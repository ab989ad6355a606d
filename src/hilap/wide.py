"""The wide part: a linear model on TF-IDF rows, whose logits are added to those of the neural flat heads.

With few documents a linear model on words is the strong one; a neural encoder beside it then learns what is left.
Vectors that were learned elsewhere, of a static or a frozen transformer encoder, may stand beside the words: one SVM
then weighs both, which on our texts did better than any network that learned by steps what words had left over. It is
solved, not trained by steps: one linear SVM for each label (`hilap.descent`), or with the *structured* loss one for all
(`hilap.consistent.structured`), whose margins, summed over a consistent set, are highest for a document's own set. Its
margins become logits by one slope and one intercept for all labels (Platt), fitted on documents that it has not seen.

An SVM separates its own training documents nearly perfectly, so everything that learns on top of it must see margins by
SVMs that have not seen the document: there is one SVM for each fold (`cross_fit`). New documents get the mean of all,
which is one linear model again.

Labels have words too: with `label_text` the likeness of a document to a label's name, definition and path (their TF-IDF
rows multiplied) is a second voice beside the margin, with a slope of its own. It is linear in the document's row as
well, so it costs nothing later, and it speaks for labels that no training document has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from hilap.corpus import Examples
from hilap.decoding import Condensing
from hilap.encoders import Encoder, Prepared, TfIdf, evaluating, make
from hilap.encoders.rows import DenseRows, SparseBatch, SparseRows
from hilap.errors import SettingError, warn_unsolved
from hilap.taxonomy import Taxonomy

MOST_WEIGHTS = 500_000_000  # 2 GB
_BLOCK = 4_096  # documents whose vectors are made together
TOLERANCE, PASSES = 1e-3, 1_000  # of the SVMs: how far from the optimum, and how many passes over documents at most
SET_TOLERANCE, SET_PASSES = 1e-2, 50  # the same with the structured loss


class Wide(nn.Module):
    """Logits of all labels as a linear function of a text's TF-IDF row, and of its vector if there is one.

    Parameters
    ----------
    terms
        A fitted TF-IDF encoder; only its rows are used, not its layers.
    n_labels
        How many labels there are.
    vectors
        A fitted encoder that stays as it is; its vectors, made as long as TF-IDF rows are, stand beside these.
    """

    weight: Tensor  # (F, L), so that a sparse row is a weighted sum of some of its rows
    bias: Tensor  # (L,)

    def __init__(self, terms: TfIdf, n_labels: int, vectors: Encoder | None = None) -> None:
        super().__init__()
        width = columns(terms, vectors)
        if width * n_labels > MOST_WEIGHTS:
            raise SettingError(
                f"the wide part would have {width:,} terms x {n_labels:,} labels; "
                "give wide_options a smaller max_features, or set wide to false"
            )
        self.terms = terms.requires_grad_(False)
        self.vectors = None if vectors is None else vectors.requires_grad_(False)
        self.register_buffer("weight", torch.zeros(width, n_labels))
        self.register_buffer("bias", torch.zeros(n_labels))

    def prepare(self, examples: Examples) -> SparseRows:
        """The rows of a block of texts."""
        return SparseRows(self.rows(examples))

    def rows(self, examples: Examples) -> sparse.csr_array:
        """(n, F) TF-IDF rows of texts, with their vectors in further columns; each of the two has length 1, or 0."""
        words = self.terms.tfidf_matrix(examples)
        if self.vectors is None:
            return words
        return _beside(words, _unit(_vectors(self.vectors, examples)))

    def described(self) -> dict[str, Any]:
        """The settings that its rows come from."""
        beside = {} if self.vectors is None else {"vectors": {"name": self.vectors.name, **self.vectors.settings()}}
        return self.terms.settings() | beside

    def forward(self, batch: SparseBatch) -> Tensor:
        """(B, L) logits."""
        summed = F.embedding_bag(
            batch.columns,
            self.weight,
            batch.starts,
            mode="sum",
            per_sample_weights=batch.values,
            include_last_offset=True,
        )
        return summed + self.bias


@dataclass(frozen=True)
class Both:
    """A batch for the encoder and the same documents for the wide part, or for the kernel part."""

    deep: Any
    wide: Any


@dataclass(frozen=True)
class BothRows:
    """A block of documents, ready for both."""

    deep: Prepared
    wide: SparseRows | DenseRows

    def __len__(self) -> int:
        return len(self.deep)

    def batch(self, rows: Any) -> Both:
        """These documents, in this order."""
        return Both(self.deep.batch(rows), self.wide.batch(rows))


@dataclass(frozen=True)
class Margins:
    """What cross-fitting found: a linear model for all labels, and honest logits of the documents it learned from."""

    weight: NDArray[np.floating[Any]]  # (F, L)
    bias: NDArray[np.floating[Any]]  # (L,)
    honest: NDArray[np.float32]  # (repeats, n, L) by the SVMs of the fold that the document is in


def pretrained(name: str, options: Mapping[str, Any] | None) -> Encoder:
    """An encoder without layers that stays as it is, for vectors beside the words.

    Parameters
    ----------
    name
        `static` or `transformer`.
    options
        Its settings; those that let it learn are refused.
    """
    for option in ("hidden", "dropout", "tune", "frozen", "rate"):
        if options and option in options:
            raise SettingError(
                f"wide_vector_options: {option} is for vectors that go through layers or learn, but in the wide part "
                "they stay as they are; leave it out, or give the encoder to encoder"
            )
    return make(name, **{**(options or {}), "hidden": None})


def columns(terms: TfIdf, vectors: Encoder | None) -> int:
    """F: how many terms and values of a vector there are."""
    return len(terms.terms) + (0 if vectors is None else vectors.dim)


def _vectors(encoder: Encoder, examples: Examples) -> NDArray[np.float32]:
    """(n, D) what an encoder makes of texts."""
    prepared = encoder.prepare(examples)
    found = np.empty((len(prepared), encoder.dim), dtype=np.float32)
    with evaluating(encoder):
        for start in range(0, len(found), _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, len(found)))
            found[rows] = encoder(prepared.batch(rows)).numpy()
    return found


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Vectors of length 1, but for those of length 0."""
    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    unit: NDArray[np.float32] = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    return unit


def _beside(words: sparse.csr_array, vectors: NDArray[np.float32]) -> sparse.csr_array:
    """(n, F + D) sparse rows, each with the values of a vector behind its own."""
    (n, width), more = words.shape, vectors.shape[1]
    own = np.diff(words.indptr)
    indptr = np.concatenate([[0], np.cumsum(own + more)])
    behind = (indptr[1:] - more)[:, None] + np.arange(more)
    mine = np.ones(indptr[-1], dtype=bool)
    mine[behind.ravel()] = False
    indices = np.empty(len(mine), dtype=np.int64)
    data = np.empty(len(mine), dtype=np.float32)
    indices[mine], data[mine] = words.indices, words.data
    indices[behind], data[behind] = width + np.arange(more), vectors
    return sparse.csr_array((data, indices, indptr), shape=(n, width + more))


def cross_fit(
    rows: sparse.csr_array,
    labels: sparse.csr_array,
    folds: Sequence[NDArray[np.int64]],
    *,
    repeats: int,
    strength: float,
    loss: str = "squared_hinge",
    taxonomy: Taxonomy,
    condense: bool = False,
    label_rows: sparse.csr_array | None = None,
) -> Margins:
    """Fit SVMs for each fold without its documents; score those, and average all models.

    Parameters
    ----------
    rows
        (n, F) TF-IDF rows.
    labels
        (n, L) gold sets.
    folds
        The documents of each fold, one repeat after the other.
    repeats
        How often the documents are parted.
    strength
        What an error costs against large weights (liblinear's C).
    loss
        `hinge` or `squared_hinge` of each label, or `structured`: the hinge of consistent sets.
    taxonomy
        The labels.
    condense
        Whether logits will be condensed: then slope and intercept are those that fit the condensed ones.
    label_rows
        (L, F) TF-IDF rows of what labels are called, if that is to count.
    """
    raw = solved(rows, labels, folds, repeats=repeats, strength=strength, loss=loss, taxonomy=taxonomy)
    alike = None if label_rows is None else (rows @ label_rows.T).toarray().astype(np.float32)
    return scaled(raw, labels, taxonomy=taxonomy, condense=condense, alike=alike, label_rows=label_rows, last=True)


def solved(
    rows: sparse.csr_array,
    labels: sparse.csr_array,
    folds: Sequence[NDArray[np.int64]],
    *,
    repeats: int,
    strength: float,
    loss: str,
    taxonomy: Taxonomy,
) -> Margins:
    """The SVMs of `cross_fit`, before their margins are made logits."""
    if loss == "structured":
        return _solve_together(rows, labels, folds, repeats, strength, taxonomy)
    return _solve(rows, labels, folds, repeats, (strength, loss == "squared_hinge", TOLERANCE, PASSES))


def scaled(
    raw: Margins,
    labels: sparse.csr_array,
    *,
    taxonomy: Taxonomy,
    condense: bool,
    alike: NDArray[np.float32] | None = None,
    label_rows: sparse.csr_array | None = None,
    last: bool = False,
) -> Margins:
    """With margins made logits; `alike` are (n, L) likenesses of documents to what labels are called.

    With `last` nobody needs the margins any more, and no second copy of the weights is made.
    """
    honest = raw.honest
    voices = honest.mean(0) if not condense or alike is not None else _read(honest, taxonomy)
    slope, named, intercept = _platt(voices, alike, labels)
    if condense and alike is not None:  # two voices are condensed as one: so how loud they are together comes last
        together = honest * np.float32(slope) + np.float32(named) * alike
        louder, _, intercept = _platt(_read(together, taxonomy), None, labels)
        slope, named = slope * louder, named * louder
    honest = honest * np.float32(slope) + np.float32(intercept)
    weight = np.multiply(raw.weight, slope, out=raw.weight if last else None)
    if alike is not None and label_rows is not None:
        honest += np.float32(named) * alike
        weight += named * label_rows.T.toarray()
    return Margins(weight.astype(np.float32), (raw.bias * slope + intercept).astype(np.float32), honest)


def _solve(
    rows: sparse.csr_array,
    labels: sparse.csr_array,
    folds: Sequence[NDArray[np.int64]],
    repeats: int,
    goal: tuple[float, bool, float, int],
) -> Margins:
    """Weights and offsets, the mean over all SVMs, and margins by SVMs of other folds."""
    from hilap.descent import cross_hinge, lengths

    (n, n_labels), width = labels.shape, rows.shape[1]
    part = np.empty((repeats, n), dtype=np.int64)
    per_repeat = len(folds) // repeats
    for number, fold in enumerate(folds):
        part[number // per_repeat, fold] = number % per_repeat
    data, indices, starts = rows.data.astype(np.float64), rows.indices.astype(np.int32), rows.indptr.astype(np.int64)
    norms = lengths(data, starts)
    weight = np.empty((width, n_labels))
    bias = np.empty(n_labels)
    honest = np.empty((repeats, n, n_labels), dtype=np.float32)
    gold = labels.tocsc()

    def solve(label: int) -> None:
        target = np.zeros(n, dtype=bool)
        target[gold.indices[gold.indptr[label] : gold.indptr[label + 1]]] = True
        margins, w = np.empty((repeats, n)), np.zeros(width + 1)
        cross_hinge(data, indices, starts, norms, part, per_repeat, target, *goal, margins, w)
        weight[:, label], bias[label], honest[:, :, label] = w[:-1], w[-1], margins

    # Labels know nothing of each other, so the result is the same with any number of threads.
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(solve, range(n_labels)))
    return Margins(weight, bias, honest)


def _solve_together(
    rows: sparse.csr_array,
    labels: sparse.csr_array,
    folds: Sequence[NDArray[np.int64]],
    repeats: int,
    strength: float,
    taxonomy: Taxonomy,
) -> Margins:
    """The same as `_solve`, by one structured SVM for each fold."""
    from hilap.consistent.structured import solve

    given = sparse.csr_array(rows, dtype=np.float64)
    honest = np.empty((repeats, *labels.shape), dtype=np.float32)
    per_repeat = len(folds) // repeats

    def learn(number: int) -> tuple[NDArray[np.float64], float]:
        fold = folds[number]
        rest = np.setdiff1d(np.arange(labels.shape[0]), fold)
        weight, known = solve(
            given[rest],
            labels[rest],
            taxonomy,
            cost=strength,
            tolerance=SET_TOLERANCE,
            passes=SET_PASSES,
            seed=number,
        )
        honest[number // per_repeat, fold] = given[fold] @ weight[:-1] + weight[-1]
        return weight, known.gap

    total, worst = np.zeros((rows.shape[1] + 1, labels.shape[1])), 0.0
    # Each has all its weights at hand: no more at once than fit, and none is kept once it is counted in.
    at_once = max(1, min(torch.get_num_threads(), MOST_WEIGHTS // max(1, total.size)))
    with ThreadPoolExecutor(at_once) as pool:
        for start in range(0, len(folds), at_once):  # added up in order: the same with any number of threads
            for weight, gap in pool.map(learn, range(start, min(start + at_once, len(folds)))):
                total += weight
                worst = max(worst, gap)
                del weight
    total /= len(folds)
    if worst > SET_TOLERANCE:
        warn_unsolved(
            f"the wide part's structured loss may be {worst:.1%} above its optimum after {SET_PASSES} passes over the "
            f"documents; give a smaller wide_strength (now {strength:g})"
        )
    return Margins(total[:-1], total[-1], honest)


def _read(logits: NDArray[np.float32], taxonomy: Taxonomy) -> NDArray[np.float32]:
    """(n, L) the mean over repeats of condensed logits."""
    condense = Condensing(taxonomy)
    found = np.zeros(logits.shape[1:], dtype=np.float32)
    for each in logits:
        found += condense(torch.from_numpy(each)).numpy()
    return found / np.float32(len(logits))


def _platt(
    margins: NDArray[np.float32], alike: NDArray[np.float32] | None, labels: sparse.csr_array
) -> tuple[float, float, float]:
    """Slopes of margins and likenesses, and an intercept, that make logits; over all documents and labels together."""
    from sklearn.linear_model import LogisticRegression

    gold = labels.toarray().astype(bool).ravel()
    if gold.all() or not gold.any():
        return 1.0, 0.0, 0.0
    voices = np.stack([voice.ravel() for voice in (margins, alike) if voice is not None], axis=1)
    fitted = LogisticRegression(C=1e6).fit(voices, gold)
    slopes = [*fitted.coef_[0].tolist(), 0.0]
    return slopes[0], slopes[1], float(fitted.intercept_[0])


__all__ = ["Both", "BothRows", "Margins", "Wide", "columns", "cross_fit", "pretrained", "scaled", "solved"]
