"""Predictions: the labels of one document with their probabilities, and the walk that led there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hilap.errors import CorpusError

ROOT = "root"
STOP = "stop"
_DIGITS = 6  # significant ones, in files: the others of a 32-bit number mean nothing


@dataclass(frozen=True, slots=True)
class ScoredLabel:
    """A label with its display name and its probability."""

    label: str
    name: str
    probability: float

    def to_json(self) -> dict[str, Any]:
        """`{"label", "probability"}`, with the name where it differs from the label's id."""
        named = {} if self.name == self.label else {"name": self.name}
        return {"label": self.label, **named, "probability": rounded(self.probability)}

    @classmethod
    def from_json(cls, value: Any) -> ScoredLabel:
        """The label that `to_json` wrote."""
        record = _object(value, "a predicted label")
        label = _text(record, "label", "a predicted label")
        name = _text(record, "name", "a predicted label") if "name" in record else label
        return cls(label, name, _probability(record, f"label {label!r}"))

    def __str__(self) -> str:
        return f"{self.name}  {self.probability:.2f}"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a walk: where the document stood, what it could do, and what it did."""

    at: str  # the label it stood at, or `root`
    action: str  # the label it was placed at, or `stop`
    probability: float  # of that action
    options: tuple[tuple[str, float], ...] = ()  # all open actions, labels or `stop`, with their probabilities

    def to_json(self) -> dict[str, Any]:
        """`{"at", "action", "probability", "options": [{"action", "probability"}, ...]}`."""
        options = [{"action": action, "probability": rounded(chance)} for action, chance in self.options]
        return {"at": self.at, "action": self.action, "probability": rounded(self.probability), "options": options}

    @classmethod
    def from_json(cls, value: Any) -> Step:
        """The step that `to_json` wrote."""
        record = _object(value, "a step of a walk")
        at, action = _text(record, "at", "a step of a walk"), _text(record, "action", "a step of a walk")
        options = []
        for item in _items(record, "options", "a step of a walk"):
            option = _object(item, "an option of a step")
            name = _text(option, "action", "an option of a step")
            options.append((name, _probability(option, f"option {name!r}")))
        return cls(at, action, _probability(record, f"action {action!r}"), tuple(options))

    def describe(self, names: Mapping[str, str] | None = None, *, most: int = 5) -> str:
        """The step in one line: the action taken, and the best of the others that were open.

        Parameters
        ----------
        names
            Display names of labels, where they are to be shown instead of the ids.
        most
            How many of the other actions are shown.
        """
        named = names or {}
        others = sorted((o for o in self.options if o[0] != self.action), key=lambda option: -option[1])
        shown = ", ".join(f"{named.get(action, action)} {chance:.2f}" for action, chance in others[:most])
        more = f", {len(others) - most} more" if len(others) > most else ""
        rest = f"  (open: {shown}{more})" if others else ""
        at, action = named.get(self.at, self.at), named.get(self.action, self.action)
        return f"{at} -> {action}  {self.probability:.2f}{rest}"

    def __str__(self) -> str:
        return self.describe()


@dataclass(frozen=True, slots=True)
class Prediction:
    """The labels of one document, nearest to the root first and then by probability, and the walk if it was asked for.

    Examples
    --------
    >>> labels = [ScoredLabel("Beer Bars", "Beer Bars", 0.91), ScoredLabel("Bars", "Bars", 0.97)]
    >>> prediction = Prediction.of("42", labels, levels={"Bars": 1, "Beer Bars": 2})
    >>> print(prediction)
    42: Bars 0.97, Beer Bars 0.91
    >>> prediction.to_json()["labels"]
    [{'label': 'Bars', 'probability': 0.97}, {'label': 'Beer Bars', 'probability': 0.91}]
    """

    id: str
    labels: tuple[ScoredLabel, ...]
    walk: tuple[Step, ...] | None = None

    @classmethod
    def of(
        cls,
        id: str,
        labels: Iterable[ScoredLabel],
        levels: Mapping[str, int],
        walk: Iterable[Step] | None = None,
    ) -> Prediction:
        """A prediction with its labels put in order.

        Parameters
        ----------
        id
            The document's id.
        labels
            The predicted labels, in any order.
        levels
            How far each of them is from the root.
        walk
            The steps that led there.
        """
        ordered = sorted(labels, key=lambda scored: (levels[scored.label], -scored.probability, scored.label))
        return cls(id, tuple(ordered), None if walk is None else tuple(walk))

    def to_json(self) -> dict[str, Any]:
        """The prediction as plain JSON values: `{"id": ..., "labels": [{"label": ..., "probability": ...}, ...]}`.

        Probabilities are rounded to six significant digits. There is a `walk` where there was one.
        """
        value: dict[str, Any] = {"id": self.id, "labels": [scored.to_json() for scored in self.labels]}
        if self.walk is not None:
            value["walk"] = [step.to_json() for step in self.walk]
        return value

    @classmethod
    def from_json(cls, value: Any) -> Prediction:
        """The prediction that `to_json` wrote."""
        record = _object(value, "a prediction")
        id_ = _text(record, "id", "a prediction")
        labels = tuple(ScoredLabel.from_json(item) for item in _items(record, "labels", f"prediction {id_!r}"))
        walk = None
        if record.get("walk") is not None:
            walk = tuple(Step.from_json(item) for item in _items(record, "walk", f"prediction {id_!r}"))
        return cls(id_, labels, walk)

    def __str__(self) -> str:
        labels = ", ".join(f"{scored.name} {scored.probability:.2f}" for scored in self.labels) or "no label"
        names = {scored.label: scored.name for scored in self.labels}
        steps = "".join(f"\n  {number}. {step.describe(names)}" for number, step in enumerate(self.walk or (), 1))
        return f"{self.id}: {labels}{steps}"


def rounded(probability: float) -> float:
    """A probability as files have it: six significant digits."""
    return float(f"{probability:.{_DIGITS}g}")


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise CorpusError(f"{what} must be a JSON object, got {_shown(value)}")
    return value


def _text(record: Mapping[str, Any], key: str, what: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        raise CorpusError(f"{what} must have {key!r}, a text, got {_shown(value)}")
    return value


def _items(record: Mapping[str, Any], key: str, what: str) -> list[Any]:
    value = record.get(key)
    if not isinstance(value, list):
        raise CorpusError(f"{what} must have {key!r}, a list, got {_shown(value)}")
    return value


def _probability(record: Mapping[str, Any], what: str) -> float:
    value = record.get("probability")
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:  # NaN is not between
        raise CorpusError(f"{what} must have 'probability', a number from 0 to 1, got {_shown(value)}")
    return float(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
