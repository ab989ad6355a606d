"""TF-IDF: bags of words (and, if wanted, pairs of neighbouring words), through the same layers as feature rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from hilap.corpus.examples import Examples
from hilap.encoders.base import Encoder, Json, check_share, check_truth, check_whole, checked_options, texts_of
from hilap.encoders.layers import MOST_FEATURES, FeedForward, checked_hidden
from hilap.encoders.rows import SparseBatch, SparseRows
from hilap.encoders.terms import Terms
from hilap.errors import CorpusError, ModelError

if TYPE_CHECKING:
    from typing_extensions import Self

_FIRST_BOUND = 1 / 3  # rows have the length 1; on our sample from 1/10 to 1 made little difference


class TfIdf(Encoder):
    """Texts as TF-IDF rows of unit length, through feed-forward layers.

    The weight of a term in a document is (1 + ln tf) (1 + ln((1 + n) / (1 + df))), with tf its count there, df the
    number of training documents that have it, and n the number of training documents.

    Parameters
    ----------
    max_words
        How many words of a document are read (paper: 256); None for all.
    max_features
        How many terms are kept: the most frequent, those of equal count in the order of the alphabet.
    min_df
        In how many training documents a term must occur.
    bigrams
        Whether pairs of neighbouring words are terms too.
    sublinear
        Whether tf counts by its logarithm, as above; else as it is.
    hidden, dropout, input_dropout
        The layers, as for `MLP`; `input_dropout` drops terms.

    Examples
    --------
    >>> from hilap.taxonomy import Taxonomy
    >>> texts = ["craft beer", "craft beer and rum", "a lawyer"]
    >>> examples = Examples.of(Taxonomy.of({"Bars": []}), [["Bars"], ["Bars"], []], texts=texts)
    >>> encoder = TfIdf(min_df=2, hidden=(8,)).fit(examples, generator=torch.Generator().manual_seed(0))
    >>> encoder.terms
    ('beer', 'craft')
    >>> encoder.tfidf_matrix(examples).toarray().round(2)
    array([[0.71, 0.71],
           [0.71, 0.71],
           [0.  , 0.  ]], dtype=float32)
    """

    name = "tfidf"
    idf: Tensor  # (F,)

    def __init__(
        self,
        *,
        max_words: int | None = 256,
        max_features: int = 30_000,
        min_df: int = 2,
        bigrams: bool = False,
        sublinear: bool = True,
        hidden: int | Iterable[int] = (500,),
        dropout: float = 0.0,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if max_words is not None:
            check_whole("max_words", max_words)
        check_whole("max_features", max_features)
        check_whole("min_df", min_df)
        check_share("dropout", dropout)
        check_share("input_dropout", input_dropout)
        check_truth("bigrams", bigrams)
        check_truth("sublinear", sublinear)
        self.max_words = max_words
        self.max_features = max_features
        self.min_df = min_df
        self.bigrams = bigrams
        self.sublinear = sublinear
        self.hidden = checked_hidden(hidden)
        self.dropout = float(dropout)
        self.input_dropout = float(input_dropout)

    def fit(self, examples: Examples, *, generator: torch.Generator) -> Self:
        """Count the terms of the training texts, keep the most frequent, and draw the weights."""
        texts = texts_of(examples, self.name)
        vocabulary, frequency = Terms.most_frequent(
            texts,
            max_words=self.max_words,
            bigrams=self.bigrams,
            max_features=self.max_features,
            min_df=self.min_df,
        )
        if not vocabulary.terms:
            raise CorpusError(
                f"no word occurs in at least {self.min_df} of the {len(texts):,} texts; "
                "give more texts, or the tfidf encoder a smaller min_df"
            )
        self._build(vocabulary)
        self.idf.copy_(torch.from_numpy(np.log((1 + len(texts)) / (1 + frequency)) + 1))
        self.layers.draw(generator, first_bound=_FIRST_BOUND)
        return self

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms in the order of the columns; the words of a pair are parted by a blank."""
        self.check_fitted()
        return self._vocabulary.terms

    def prepare(self, examples: Examples) -> SparseRows:
        """The TF-IDF rows of the texts."""
        return SparseRows(self.tfidf_matrix(examples))

    def tfidf_matrix(self, examples: Examples) -> sparse.csr_array:
        """(n, F) float32, rows of unit length (or empty), columns in the order of `terms`."""
        self.check_fitted()
        texts = texts_of(examples, self.name)
        idf = self.idf.cpu().numpy().astype(np.float64)
        return _weighted(self._vocabulary.counts(texts), idf, self.sublinear)

    def forward(self, batch: SparseBatch) -> Tensor:
        """(B, dim) the last layer."""
        self.check_fitted()
        vectors: Tensor = self.layers(batch)
        return vectors

    def settings(self) -> dict[str, Json]:
        """The constructor's arguments as plain values."""
        return {
            "max_words": self.max_words,
            "max_features": self.max_features,
            "min_df": self.min_df,
            "bigrams": self.bigrams,
            "sublinear": self.sublinear,
            "hidden": [*self.hidden],
            "dropout": self.dropout,
            "input_dropout": self.input_dropout,
        }

    def learned(self) -> dict[str, Json]:
        """The terms."""
        return {"terms": [*self.terms]}

    @classmethod
    def restore(cls, settings: Mapping[str, Json], learned: Mapping[str, Json]) -> Self:
        """An encoder of the same shape, ready for `load_state_dict`."""
        encoder = cls(**checked_options(cls, settings))
        terms = learned.get("terms")
        words = [term for term in terms if isinstance(term, str)] if isinstance(terms, list) else []
        if not 1 <= len(words) <= MOST_FEATURES or words != terms or len({*words}) < len(words):
            raise ModelError("a tfidf encoder has learned 'terms', a list of different words, but the model has not")
        encoder._build(Terms(words, encoder.max_words))
        return encoder

    # -- inside -----------------------------------------------------------------------------------------------------

    def _build(self, vocabulary: Terms) -> None:
        self._vocabulary = vocabulary
        self.register_buffer("idf", torch.ones(len(vocabulary.terms)))
        self.layers = FeedForward(
            len(vocabulary.terms), self.hidden, dropout=self.dropout, input_dropout=self.input_dropout
        )
        self.dim = self.hidden[-1]


def _weighted(counts: sparse.csr_array, idf: NDArray[np.float64], sublinear: bool) -> sparse.csr_array:
    """TF-IDF from counts, every row of unit length unless it is empty."""
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    values = (1 + np.log(counts.data) if sublinear else counts.data) * idf[counts.indices]
    # Added up one after the other, so that a text's row does not depend on the texts around it to the last bit.
    norm = np.sqrt(np.bincount(row, values**2, minlength=counts.shape[0]))
    data = (values / norm[row]).astype(np.float32)
    return sparse.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)
