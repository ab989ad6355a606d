"""Which words spoke for a label: leave each word out, and see how much less the classifier is for it (occlusion).

That works with every encoder of texts. How much a classifier is for a label is a logit in each case, since a
probability stands still where the classifier is sure, and then no word would seem to matter:

- `flat`: the label's own flat logit. Flat models decide by it, residual policies by it and little else.
- `action`: the log-odds of the action that placed the label, against stop and the open labels that are never placed.
  The walk is not taken anew, but looked at from the same place. Labels that it places later are no opponents: else a
  word that speaks for one of them would seem to speak against this one.
- `probability`: the log-odds of the label's probability, for every other classifier. A policy's own probabilities are
  sums over the best sets of labels, and a label that is in all of them is as sure as can be, with a word or without.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from unicodedata import category, normalize

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hilap.corpus import Examples
from hilap.decoding.constraints import allow_of
from hilap.decoding.scoring import log_probs
from hilap.encoders import tokens
from hilap.errors import SettingError, require
from hilap.policy import Policy

By = Literal["action", "flat", "probability"]
Evidence = Callable[[Sequence[str]], NDArray[np.float64]]
"""Texts -> (n, K) how much the classifier is for each of K labels."""

_SMALLEST = 1e-6  # a probability nearer to 0 or 1 counts as this
_LETTERS = 8_000_000  # of all variants of a text that are looked at together
_TOGETHER = 256  # variants


@dataclass(frozen=True, slots=True)
class WordScore:
    """A word, and how much less the classifier is for a label without it; below 0 it spoke against the label."""

    word: str
    score: float

    def to_json(self) -> dict[str, Any]:
        """`{"word", "score"}`, with six significant digits."""
        return {"word": self.word, "score": float(f"{self.score:.6g}")}


def words(
    classifier: Any,
    text: str,
    *,
    features: Any = None,
    by: By | None = None,
    top: int | None = None,
    most: int = 200,
) -> dict[str, tuple[WordScore, ...]]:
    """The words that spoke for each predicted label of a text, the strongest first.

    A word is left out wherever it stands in the text. In a text of more than `most` different words, neighbouring
    words are first left out in groups, and then one by one in the groups that matter most to some label; only these
    words are given. So twice `most` variants of the text are looked at, and once `most` more each time that even one
    group has more than `most` words.

    Parameters
    ----------
    classifier
        A trained classifier whose encoder reads texts.
    text
        The document.
    features
        (F,) its features, where the classifier reads them too.
    by
        What a word adds to: the label's own `flat` logit, the log-odds of the `action` that placed it, or of its
        `probability`; the module says more. Default: `flat` for flat models and residual policies, `action` for
        other policies that walk, `probability` for all other classifiers.
    top
        How many words a label gets; None for all that were tried.
    most
        How many words are left out one by one, at least 2.

    Examples
    --------
    >>> from hilap import HiLAPClassifier
    >>> from hilap.taxonomy import Taxonomy
    >>> taxonomy = Taxonomy.of({"Food": [], "Law": []})
    >>> texts, labels = ["craft beer", "high court"] * 20, [["Food"], ["Law"]] * 20
    >>> classifier = HiLAPClassifier(taxonomy, variant="flat", flat_epochs=30, learning_rate=0.01)
    >>> found = words(classifier.fit(texts, labels), "A pint of craft beer!", top=2)
    >>> {label: sorted(scored.word for scored in scores) for label, scores in found.items()}
    {'Food': ['beer', 'craft']}
    """
    require(isinstance(text, str), "text", "one text", text)
    require(top is None or (type(top) is int and top >= 1), "top", "a whole number, at least 1, or None", top)
    require(type(most) is int and most >= 2, "most", "a whole number, at least 2", most)
    given = _Given(classifier, features)
    labels: list[int] = np.flatnonzero(classifier.predict(given.examples([text])).toarray()[0]).tolist()
    if not labels:
        return {}
    variants = _Variants(text)
    evidence = _evidence(given, text, labels, by)
    tried, scores = _scores(variants, evidence, most)
    found: dict[str, tuple[WordScore, ...]] = {}
    for column, label in enumerate(labels):
        order = np.argsort(-scores[:, column], kind="stable")[:top]
        found[classifier.taxonomy_.labels[label]] = tuple(
            WordScore(variants.shown[tried[i]], float(scores[i, column])) for i in order
        )
    return found


# -- the words of a text ----------------------------------------------------------------------------------------------


class _Variants:
    """A text without some of its words."""

    def __init__(self, text: str) -> None:
        segments = _segments(text)
        self.shown: list[str] = []  # each different word as it first stands in the text
        numbers: dict[str, int] = {}
        which = []
        for segment in segments:
            word = _bare(segment)
            key = normalize("NFC", word.casefold())  # as the tokeniser sees it: accents in one piece with their letter
            if word and key not in numbers:
                numbers[key] = len(numbers)
                self.shown.append(word)
            which.append(numbers[key] if word else -1)  # signs alone are never left out
        self._start = text[: len(text) - sum(map(len, segments))]
        self._segments = np.array(segments, dtype=object)
        self._which = np.array(which, dtype=np.int64)
        self.letters = max(len(text), 1)

    def __len__(self) -> int:
        return len(self.shown)

    def without(self, group: NDArray[np.int64]) -> str:
        """The text with all places of these words left out."""
        return self._start + "".join(self._segments[~np.isin(self._which, group)])


def _segments(text: str) -> list[str]:
    """The words of a text, each with the signs around it and the blanks behind it.

    Letters of scripts without blanks, each with the marks on it, are words of their own, as they are to the tokeniser.
    """
    further = sorted(letter for letter in set(text) if not letter.isascii())
    alone = "".join(letter for letter in further if len(tokens.words(letter * 2)) == 2)
    if not alone:
        return re.findall(r"\S+\s*", text)
    marks = "".join(letter for letter in further if _is_mark(letter))
    letter = f"[{re.escape(alone)}][{re.escape(marks)}]*" if marks else f"[{re.escape(alone)}]"
    return re.findall(rf"(?:{letter}|[^\s{re.escape(alone)}]+)\s*", text)


def _bare(segment: str) -> str:
    """A word without the signs around it, but with the marks on its last letter, such as the vowel signs of Hindi."""
    first, last = 0, len(segment)
    while first < last and not segment[first].isalnum():
        first += 1
    while last > first and not segment[last - 1].isalnum():
        last -= 1
    while first < last < len(segment) and _is_mark(segment[last]):
        last += 1
    return segment[first:last]


def _is_mark(letter: str) -> bool:
    return category(letter)[0] == "M"


def _scores(variants: _Variants, evidence: Evidence, most: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(n,) the words that were left out one by one, and (n, K) what each label loses without it."""
    chosen = np.arange(len(variants))
    while len(chosen) > most:
        groups = np.array_split(chosen, most)
        loss = np.abs(_lost(variants, groups, evidence)).max(1)
        kept: list[NDArray[np.int64]] = []
        for k in np.argsort(-loss, kind="stable"):
            if sum(map(len, kept)) + len(groups[k]) > most and kept:
                break
            kept.append(groups[k])
        chosen = np.sort(np.concatenate(kept))
    return chosen, _lost(variants, [chosen[i : i + 1] for i in range(len(chosen))], evidence)


def _lost(variants: _Variants, groups: Sequence[NDArray[np.int64]], evidence: Evidence) -> NDArray[np.float64]:
    """(n, K) how much less the classifier is for each label without each group."""
    whole = evidence([variants.without(np.zeros(0, dtype=np.int64))])
    size = max(1, min(_TOGETHER, _LETTERS // variants.letters))
    parts = [
        evidence([variants.without(group) for group in groups[start : start + size]])
        for start in range(0, len(groups), size)
    ]
    return whole - np.concatenate(parts) if parts else np.zeros((0, whole.shape[1]))


# -- how much a classifier is for a label -----------------------------------------------------------------------------


class _Given:
    """A classifier, and the features that go with every variant of the text."""

    def __init__(self, classifier: Any, features: Any) -> None:
        network = getattr(classifier, "network_", None)
        reads = ("texts",) if network is None else network.encoder.reads
        if "texts" not in reads:
            raise SettingError("only a classifier whose encoder reads texts can say which words spoke for a label")
        if ("features" in reads) != (features is not None):
            needs = "needs the document's features too" if "features" in reads else "reads no features"
            raise SettingError(f"this classifier {needs}; say so with features=")
        self.classifier = classifier
        self._row = None if features is None else np.asarray(features, dtype=np.float32).reshape(1, -1)

    @property
    def variant(self) -> str | None:
        settings = getattr(self.classifier, "train_settings_", None)
        return None if settings is None else str(settings.variant)

    @property
    def usual(self) -> By:
        """What decides about a label, and does not stand still where the classifier is sure."""
        if self.variant == "hilap":
            return "flat" if self.classifier.network_.policy.residual else "action"
        return "flat" if self.variant == "flat" else "probability"

    def examples(self, texts: Sequence[str]) -> Examples:
        taxonomy = self.classifier.taxonomy_
        rows = None if self._row is None else np.repeat(self._row, len(texts), axis=0)
        return Examples.of(taxonomy, [[]] * len(texts), texts=list(texts), features=rows)

    def blocks(self, texts: Sequence[str]) -> Iterator[tuple[Any, Any, int]]:
        found: Iterator[tuple[Any, Any, int]] = self.classifier.documents(self.examples(texts))
        return found


def _evidence(given: _Given, text: str, labels: Sequence[int], by: By | None) -> Evidence:
    kind = given.usual if by is None else by
    require(kind in ("action", "flat", "probability"), "by", "'action', 'flat' or 'probability'", by)
    if kind == "action" and given.variant != "hilap":
        raise SettingError("by='action' needs a policy that walks; take by='probability'")
    if kind == "flat" and given.variant is None:
        raise SettingError("by='flat' needs a network with a flat head; take by='probability'")
    if kind == "action":
        return _by_action(given, text, labels)
    return _by_flat(given, labels) if kind == "flat" else _by_probability(given, labels)


def _by_flat(given: _Given, labels: Sequence[int]) -> Evidence:
    def evidence(texts: Sequence[str]) -> NDArray[np.float64]:
        found = [seen.flat[:n, labels] for seen, _, n in given.blocks(texts)]
        return torch.cat(found).double().numpy()

    return evidence


def _by_probability(given: _Given, labels: Sequence[int]) -> Evidence:
    def evidence(texts: Sequence[str]) -> NDArray[np.float64]:
        chances = given.classifier.predict_proba(given.examples(texts))[:, labels].astype(np.float64)
        inside = np.clip(chances, _SMALLEST, 1 - _SMALLEST)
        return np.asarray(np.log(inside) - np.log1p(-inside))

    return evidence


@dataclass(frozen=True)
class _Placing:
    """One step of the walk: from where, among which open actions, which was taken, and the labels it placed."""

    at: Tensor  # (1,)
    open: Tensor  # (1, A)
    action: int
    labels: list[int]


def _by_action(given: _Given, text: str, labels: Sequence[int]) -> Evidence:
    policy = given.classifier.network_.policy
    steps = [step for step in _walked(given, text, policy) if step.labels]
    step_of = {label: number for number, step in enumerate(steps) for label in step.labels}
    columns = [step_of[label] for label in labels]
    never = torch.ones(policy.stop + 1, dtype=torch.bool)
    never[list(step_of)] = False

    def evidence(texts: Sequence[str]) -> NDArray[np.float64]:
        found = []
        for _, documents, n in given.blocks(texts):
            docs = torch.arange(n)
            odds = [
                _log_odds(
                    log_probs(policy, documents, docs, step.at.expand(n), step.open.expand(n, -1)),
                    step.action,
                    step.open[0] & never,
                )
                for step in steps
            ]
            found.append(torch.stack(odds, dim=1)[:, columns])
        return torch.cat(found).double().numpy()

    return evidence


def _log_odds(chances: Tensor, action: int, others: Tensor) -> Tensor:
    """(n,) how much rather an action than any of `others` (A,), from (n, A) log-probabilities."""
    if not bool(others.any()):
        return chances.new_zeros(len(chances))  # there was no choice, so no word made it
    return chances[:, action] - chances[:, others].logsumexp(1)


def _walked(given: _Given, text: str, policy: Policy) -> list[_Placing]:
    """The walk of the whole text, step by step."""
    classifier = given.classifier
    allow = allow_of(policy, classifier.constraints(classifier.decode_))
    _, documents, _ = next(given.blocks([text]))
    walk, steps = policy.start(1), []
    for _ in range(classifier.max_steps_):
        open_ = allow(walk)
        if not bool(open_[0, : policy.stop].any()):
            break
        action = log_probs(policy, documents, torch.tensor([0]), walk.at, open_).argmax(1)
        after = policy.step(walk, action)
        placed = (after.placed & ~walk.placed)[0].nonzero().squeeze(1).tolist()
        steps.append(_Placing(walk.at, open_, int(action), placed))
        walk = after
    return steps


__all__ = ["By", "WordScore", "words"]
