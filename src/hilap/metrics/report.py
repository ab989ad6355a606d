"""All metrics of one system on one test set, as figures, JSON, Markdown and a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hilap.errors import require
from hilap.metrics.calibration import are_probabilities, brier_score, calibration_error
from hilap.metrics.counts import Counts, document_counts, label_counts, pair, score_matrix, training_counts
from hilap.metrics.flat import (
    PRF,
    LabelScores,
    Macro,
    covered,
    example_from_counts,
    hamming_loss,
    macro_from_counts,
    micro_from_counts,
    prf_from_counts,
    subset_accuracy,
)
from hilap.metrics.groups import GroupScores, by_level, by_popularity
from hilap.metrics.hierarchical import (
    consistent_part,
    hierarchical,
    hierarchical_example,
    inconsistent_share,
)
from hilap.metrics.lca import lca_scores
from hilap.metrics.ranking import au_prc, ndcg_at, precision_at, r_precision
from hilap.metrics.significance import Interval
from hilap.metrics.significance import bootstrap as bootstrap_intervals
from hilap.metrics.words import COVERS, as_percent, markdown_table, name_of
from hilap.taxonomy.graph import Indicator, Taxonomy


@dataclass(frozen=True)
class Report:
    """What `report` found. Figures are fractions between 0 and 1; only tables and Markdown show percent."""

    documents: int
    scores: dict[str, float]
    levels: list[GroupScores]
    popularity: list[GroupScores]
    labels: tuple[str, ...] = field(repr=False)
    per_label: LabelScores = field(repr=False)
    macro: Macro = "gold"
    macro_labels: int = 0  # how many labels the macro mean covers
    intervals: dict[str, Interval] = field(default_factory=dict)
    confidence: float = 0.95
    notes: list[str] = field(default_factory=list)

    def to_json(self, *, per_label: bool = False) -> dict[str, Any]:
        """Plain JSON values; null where a score is not defined. The scores of every label only if asked for."""
        value: dict[str, Any] = {
            "documents": self.documents,
            "labels": len(self.labels),
            "macro": {"over": self.macro, "labels": self.macro_labels},
            "scores": {name: _number(score) for name, score in self.scores.items()},
            "levels": [_group(group) for group in self.levels],
            "popularity": [_group(group) for group in self.popularity],
            "notes": list(self.notes),
        }
        if self.intervals:
            value["confidence"] = self.confidence
            value["intervals"] = {name: [_number(v) for v in ends] for name, ends in self.intervals.items()}
        if per_label:
            value["per_label"] = self.label_records()
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Report:
        """The report that `to_json(per_label=True)` gave."""
        records = value["per_label"]
        counts = Counts(*(np.array([r[name] for r in records], dtype=np.int64) for name in _COUNTED))
        return cls(
            documents=value["documents"],
            scores={name: _back(score) for name, score in value["scores"].items()},
            levels=[_group_back(group) for group in value["levels"]],
            popularity=[_group_back(group) for group in value["popularity"]],
            labels=tuple(record["label"] for record in records),
            per_label=LabelScores(counts, *prf_from_counts(counts, empty=0.0)),
            macro=value["macro"]["over"],
            macro_labels=value["macro"]["labels"],
            intervals={name: Interval(*map(_back, ends)) for name, ends in value.get("intervals", {}).items()},
            confidence=value.get("confidence", 0.95),
            notes=list(value["notes"]),
        )

    def label_records(self) -> list[dict[str, Any]]:
        """One record for each label: support, predictions, right ones, precision, recall and F1."""
        mine = self.per_label
        columns = (mine.counts.gold, mine.counts.predicted, mine.counts.true_positives)
        scores = (mine.precision, mine.recall, mine.f1)
        names = ("label", "support", "predicted", "true_positives", "precision", "recall", "f1")
        rows = zip(self.labels, *(c.tolist() for c in (*columns, *scores)), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def to_markdown(self) -> str:
        """Tables in percent, with the conventions below."""
        parts = [markdown_table(self._headings(), self._score_rows())]
        for title, groups in self._groups():
            parts.append(markdown_table([title, *GROUP_HEADINGS], _group_rows(groups)))
        parts.append("\n".join(f"- {note}" for note in self.notes))
        return "\n\n".join(parts) + "\n"

    def table(self) -> Any:
        """The same for the terminal: a rich renderable."""
        from rich.console import Group
        from rich.text import Text

        from hilap.metrics.words import rich_table

        parts: list[Any] = [rich_table(self._headings(), self._score_rows())]
        parts += [rich_table([title, *GROUP_HEADINGS], _group_rows(groups)) for title, groups in self._groups()]
        return Group(*parts, *(Text(f"· {note}", style="dim") for note in self.notes))

    def _headings(self) -> list[str]:
        return ["Metric", "%"] + ([f"{self.confidence:.0%} interval"] if self.intervals else [])

    def _score_rows(self) -> list[list[str]]:
        rows = [[name_of(name), as_percent(score)] for name, score in self.scores.items()]
        if self.intervals:
            for row, name in zip(rows, self.scores, strict=True):
                ends = self.intervals.get(name)
                row.append(f"{as_percent(ends.low)} – {as_percent(ends.high)}" if ends else "")
        return rows

    def _groups(self) -> list[tuple[str, list[GroupScores]]]:
        return [("Level", self.levels), ("Popularity", self.popularity)]


_COUNTED = ("true_positives", "predicted", "support")
GROUP_HEADINGS = ["Labels", "Support", "Micro-F1", "Macro-F1"]


def report(
    gold: Any,
    predicted: Any,
    taxonomy: Taxonomy,
    *,
    scores: Any = None,
    training: Any = None,
    macro: Macro = "gold",
    k: Sequence[int] = (1, 3, 5),
    bootstrap: int = 0,
    confidence: float = 0.95,
    seed: int = 0,
    lca: bool = True,
    bins: int = 15,
) -> Report:
    """Every metric of predicted label sets against gold ones.

    Gold sets are closed upward first, because a gold label implies its ancestors. Predictions are judged as they are:
    where they lack ancestors, `inconsistent_share` says so.

    Parameters
    ----------
    gold, predicted
        (n, L) indicator matrices, sparse or dense, columns in the order of `taxonomy.labels`.
    taxonomy
        The labels and what stands above them.
    scores
        (n, L) scores of all labels, for ranking metrics; if they are probabilities, for calibration too.
    training
        Which labels have training examples: an (m, L) indicator (closed upward here) or (L,) counts. Needed for
        `macro="both"`; also orders labels by popularity.
    macro
        The labels of the macro mean: `"all"`, `"gold"` (with gold documents) or `"both"` (and training examples).
    k
        Where to cut for P@k and nDCG@k.
    bootstrap
        How many samples to draw for the intervals of Micro-, Macro- and example F1; 0 for no intervals.
    confidence, seed
        Of the intervals.
    lca
        Whether to compute the LCA scores, the slowest part.
    bins
        Of the calibration errors.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"A": [], "B": ["A"], "C": ["A"]})
    >>> found = report(taxonomy.encode([["B"]]), taxonomy.encode([["A", "C"]]), taxonomy)
    >>> found.scores["micro_f1"], found.scores["lca_f1"]
    (0.5, 0.5)
    """
    require(bootstrap >= 0, "bootstrap", "at least 0", bootstrap)
    given, found = pair(gold, predicted, taxonomy)
    right = taxonomy.close_matrix(given)
    examples = None if training is None else training_counts(training, len(taxonomy), taxonomy)
    per_label = LabelScores.of(right, found)
    cover = covered(macro, per_label.counts.gold, examples)
    values = _set_scores(right, found, taxonomy, cover, lca=lca)
    notes = _notes(given, right, found, macro, int(cover.sum()), popularity_by_training=examples is not None)
    if scores is not None:
        more, remarks = _ranked_scores(right, found, scores, k, bins)
        values |= more
        notes += remarks
    intervals: dict[str, Interval] = {}
    if bootstrap:
        intervals = bootstrap_intervals(
            right, found, samples=bootstrap, seed=seed, confidence=confidence, over=macro, training=examples
        )
        notes.append(f"Intervals: percentile bootstrap over documents, {bootstrap:,} samples, seed {seed}.")
    return Report(
        documents=right.shape[0],
        scores=values,
        levels=by_level(right, found, taxonomy, over=macro, training=examples),
        popularity=by_popularity(right, found, over=macro, training=examples),
        labels=taxonomy.labels,
        per_label=per_label,
        macro=macro,
        macro_labels=int(cover.sum()),
        intervals=intervals,
        confidence=confidence,
        notes=notes,
    )


def _set_scores(right: Indicator, found: Indicator, taxonomy: Taxonomy, cover: Any, *, lca: bool) -> dict[str, float]:
    counts = label_counts(right, found)
    values = (
        _named("micro", micro_from_counts(counts))
        | _named("macro", macro_from_counts(counts, cover))
        | _named("example", example_from_counts(document_counts(right, found)))
        | {"subset_accuracy": subset_accuracy(right, found), "hamming_loss": hamming_loss(right, found)}
        | _named("hierarchical", hierarchical(right, found, taxonomy))
        | _named("hierarchical_example", hierarchical_example(right, found, taxonomy))
    )
    if lca:
        values |= _named("lca", lca_scores(right, found, taxonomy))
    consistent = label_counts(right, consistent_part(found, taxonomy))
    values["consistent_micro_f1"] = micro_from_counts(consistent).f1
    values["consistent_macro_f1"] = macro_from_counts(consistent, cover).f1
    values["inconsistent_share"] = inconsistent_share(found, taxonomy)
    return values


def _ranked_scores(
    right: Indicator, found: Indicator, scores: Any, k: Sequence[int], bins: int
) -> tuple[dict[str, float], list[str]]:
    matrix = score_matrix(scores, right)
    areas = au_prc(right, matrix)
    values = {f"au_prc_{name}": area for name, area in areas._asdict().items()}
    values["r_precision"] = r_precision(right, matrix)
    values |= {f"precision_at_{cut}": v for cut, v in zip(k, precision_at(right, matrix, k), strict=True)}
    values |= {f"ndcg_at_{cut}": v for cut, v in zip(k, ndcg_at(right, matrix, k), strict=True)}
    if not are_probabilities(matrix):
        return values, ["The scores are no probabilities (not all between 0 and 1): no calibration error is given."]
    values["calibration_error_pairs"] = calibration_error(right, matrix, bins=bins)
    values["calibration_error_labels"] = calibration_error(right, matrix, over="labels", bins=bins)
    values["calibration_error_predicted"] = calibration_error(
        right, matrix, over="predicted", predicted=found, bins=bins
    )
    values["brier_score"] = brier_score(right, matrix)
    return values, [f"Calibration errors: {bins} bins of equal width."]


def _notes(
    given: Indicator, right: Indicator, found: Indicator, macro: Macro, n_covered: int, *, popularity_by_training: bool
) -> list[str]:
    """The conventions behind the figures, and what is unusual about the data."""
    documents = right.shape[0]
    closed = int((np.diff(given.indptr) != np.diff(right.indptr)).sum())
    unlabelled = int((np.diff(right.indptr) == 0).sum())
    unanswered = int((np.diff(found.indptr) == 0).sum())
    by = "training examples" if popularity_by_training else "gold documents"
    return [
        f"Documents: {documents:,}; {unlabelled:,} without gold labels, {unanswered:,} without predicted labels.",
        f"Gold sets are closed upward ({closed:,} were not before); predictions are judged as given; no root.",
        f"Macro means cover {n_covered:,} of {right.shape[1]:,} labels: {COVERS[macro]}.",
        "0/0 is 0 for a label and for the pool; a document without gold and without predicted labels scores 1.",
        f"P1, P2, P3: thirds of the covered labels, by falling number of {by}.",
    ]


def _named(prefix: str, scores: PRF) -> dict[str, float]:
    return {f"{prefix}_{name}": value for name, value in scores._asdict().items()}


def _group(group: GroupScores) -> dict[str, Any]:
    return {
        "name": group.name,
        "labels": group.labels,
        "support": group.support,
        "micro_f1": _number(group.micro_f1),
        "macro_f1": _number(group.macro_f1),
    }


def _group_rows(groups: list[GroupScores]) -> list[list[str]]:
    return [[g.name, f"{g.labels:,}", f"{g.support:,}", as_percent(g.micro_f1), as_percent(g.macro_f1)] for g in groups]


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else float(value)


def _back(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _group_back(group: Mapping[str, Any]) -> GroupScores:
    scores = (_back(group["micro_f1"]), _back(group["macro_f1"]))
    return GroupScores(group["name"], group["labels"], group["support"], *scores)
