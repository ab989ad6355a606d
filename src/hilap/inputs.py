"""What `fit` and `predict` take, as examples: texts, feature matrices, frames, examples or a corpus."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hilap.corpus import Corpus, Examples
from hilap.corpus.splits import split_rows
from hilap.corpus.stored import StoredExamples
from hilap.errors import SettingError
from hilap.settings import PolicySettings, TrainSettings
from hilap.taxonomy import Taxonomy


def examples_of(X: Any, y: Any, taxonomy: Taxonomy | None) -> Examples:  # noqa: N803 - scikit-learn's name
    """Documents and their labels as examples.

    Parameters
    ----------
    X
        Texts, an (n, F) matrix of features (dense with NaN where a value is missing, sparse, or a frame), `Examples` or
        a `Corpus`.
    y
        A collection of labels for each document, or an (n, L) indicator matrix; closed upward here. None where X
        brings its labels, or where there are none.
    taxonomy
        The labels; None takes those that X brings.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"Food": [], "Bars": ["Food"]})
    >>> examples_of(["craft beer", "a lawyer"], [["Bars"], []], taxonomy).label_sets
    [('Food', 'Bars'), ()]
    """
    if isinstance(X, (Corpus, Examples)):
        if y is not None:
            raise SettingError("y must be None where the documents bring their labels")
        return X.load() if isinstance(X, Corpus) else X
    if not isinstance(taxonomy, Taxonomy):
        raise SettingError(f"taxonomy must be a hilap.Taxonomy, got {taxonomy!r}; read one with hilap.read_taxonomy")
    texts, features = _documents(X)
    n = len(texts) if texts is not None else features.shape[0]
    labels = taxonomy.encode([[]] * n) if y is None else _indicator(taxonomy, y)
    if labels.shape[0] != n:
        raise SettingError(f"X has {n} documents, but y has {labels.shape[0]}; give labels for each document")
    return Examples(taxonomy, [str(i) for i in range(n)], labels, texts=texts, features=features)


def check_taxonomy(examples: Examples, taxonomy: Taxonomy | None) -> None:
    """Require that labels of examples mean what they mean in the taxonomy."""
    if taxonomy is not None and examples.taxonomy is not taxonomy and examples.taxonomy != taxonomy:
        raise SettingError(
            f"the documents have labels of {examples.taxonomy!r}, but the classifier's are of {taxonomy!r}; "
            "read the documents with the classifier's taxonomy"
        )


def check_streamed(examples: Examples, policy: PolicySettings, settings: TrainSettings) -> None:
    """Require of documents that lie on disk that nothing will be made of all of them at once in memory."""
    if not isinstance(examples, StoredExamples):
        return
    scores = "it takes scores of all documents and labels in memory"
    for name, value, needed, why in (
        ("wide", settings.wide, False, scores),
        ("folds", settings.folds, 1, scores),
        ("sees", policy.sees, "document", scores),
        ("refit", settings.refit, False, "training and validation documents are joined in memory"),
    ):
        if value != needed:
            raise SettingError(
                f"{name} must be {needed!r} for documents that are over the memory limit, got {value!r}: {why}; "
                "change it, or give more memory"
            )


def with_validation(train: Examples, valid: Any, *, share: float, seed: int) -> tuple[Examples, Examples]:
    """The training and the validation documents.

    Parameters
    ----------
    train
        All documents with labels.
    valid
        Validation documents, as `(X, y)` or as `Examples`; None holds a share of the training documents out.
    share, seed
        How many are held out, and which.
    """
    if valid is None:
        rows = split_rows(train.labels, {"train": 1 - share, "valid": share}, seed=seed)
        train, held_out = train.take(rows["train"]), train.take(rows["valid"])
    else:
        documents, labels = valid if isinstance(valid, tuple) else (valid, None)
        held_out = examples_of(documents, labels, train.taxonomy)
        check_taxonomy(held_out, train.taxonomy)
    for what, examples in (("training", train), ("validation", held_out)):
        if not len(examples):
            raise SettingError(f"there are no {what} documents; give more documents, or valid=...")
    return train, held_out


def pooled(train: Examples, held_out: Examples) -> Examples:
    """Training and validation documents together, with the columns that both have: more than these nothing has read."""
    both = [train, held_out]
    lacking = [name for name in ("texts", "features", "groups") if any(getattr(one, name) is None for one in both)]
    without: dict[str, Any] = dict.fromkeys(lacking)
    return Examples.join([replace(one, **without) for one in both])


def _documents(X: Any) -> tuple[list[str] | None, Any]:  # noqa: N803
    """Texts, or an (n, F) matrix of features."""
    if isinstance(X, (str, bytes)):
        raise SettingError("a list of documents is needed, got one text; write [text]")
    if sparse.issparse(X):
        return None, sparse.csr_array(X, dtype=np.float32)
    if hasattr(X, "to_numpy"):  # a frame or a series of pandas or polars
        X = X.to_numpy()  # noqa: N806
    rows = X if isinstance(X, np.ndarray) else _listed(X)
    if rows.ndim == 1 if isinstance(rows, np.ndarray) else not rows or isinstance(rows[0], str):
        return _texts(rows), None
    return None, _matrix(rows)


def _listed(X: Any) -> list[Any]:  # noqa: N803
    if not isinstance(X, Iterable):
        raise SettingError(f"X must be texts, a feature matrix, Examples or a Corpus, got {type(X).__name__}")
    return list(X)


def _texts(rows: Any) -> list[str]:
    for number, text in enumerate(rows):
        if not isinstance(text, str):
            raise SettingError(
                f"document {number} is no text, got {type(text).__name__}; give texts, or rows of features"
            )
    return [str(text) for text in rows]


def _matrix(rows: Any) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # what is infinite then is named by the encoder
            matrix = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError):
        raise SettingError("features must be numbers, NaN where one is missing, in rows of one length") from None
    if matrix.ndim != 2:
        raise SettingError(f"features must be a matrix of (documents, features), got shape {matrix.shape}")
    return matrix


def _indicator(taxonomy: Taxonomy, y: Any) -> sparse.csr_array:
    if hasattr(y, "to_numpy"):
        y = _in_order(taxonomy, y.to_numpy(), [str(column) for column in getattr(y, "columns", ())])
    if sparse.issparse(y) or (isinstance(y, np.ndarray) and y.ndim == 2 and y.dtype.kind in "biuf"):
        return taxonomy.close_matrix(y)
    if isinstance(y, Iterable) and not isinstance(y, (str, bytes)):
        return taxonomy.encode(y, close=True)
    raise SettingError(f"y must be label sets or an indicator matrix, got {type(y).__name__}")


def _in_order(taxonomy: Taxonomy, y: Any, columns: list[str]) -> Any:
    """The matrix of a frame whose columns are called as labels, with the taxonomy's columns; any other as it is."""
    known = [column for column in columns if column in taxonomy]
    if not known or y.dtype.kind not in "biuf":
        return y
    if len(known) < len(columns):
        strangers = [column for column in columns if column not in taxonomy]
        raise SettingError(f"y has columns that are no labels, {strangers[0]!r} first; leave them out")
    matrix = np.zeros((len(y), len(taxonomy)), dtype=y.dtype)
    matrix[:, [taxonomy.index(column) for column in columns]] = y
    return matrix


__all__ = ["check_streamed", "check_taxonomy", "examples_of", "pooled", "with_validation"]
