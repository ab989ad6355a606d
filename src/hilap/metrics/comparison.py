"""Two systems on the same documents: how far apart they are, and whether that could be chance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from hilap.errors import SettingError
from hilap.metrics.counts import document_counts, label_counts, pair, training_counts
from hilap.metrics.flat import Macro, covered, example_from_counts, macro_from_counts, micro_from_counts
from hilap.metrics.significance import METRICS, Interval, bootstrap_difference, permutation_test
from hilap.metrics.words import COVERS, as_percent, markdown_table, name_of, rich_table
from hilap.taxonomy.graph import Indicator, Taxonomy


@dataclass(frozen=True)
class Difference:
    """One metric of both systems. `difference` is second minus first."""

    metric: str
    first: float
    second: float
    interval: Interval  # of the difference, by the paired bootstrap
    p_value: float  # two-sided, by the paired permutation test

    @property
    def difference(self) -> float:
        """Second minus first."""
        return self.second - self.first


@dataclass(frozen=True)
class Comparison:
    """What `compare` found. Figures are fractions; tables and Markdown show percent."""

    names: tuple[str, str]
    documents: int
    differences: list[Difference]
    confidence: float = 0.95
    notes: list[str] = field(default_factory=list)

    def __getitem__(self, metric: str) -> Difference:
        for row in self.differences:
            if row.metric == metric:
                return row
        raise SettingError(f"{metric!r} was not compared; there are: {', '.join(r.metric for r in self.differences)}")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; null where a score is not defined."""
        return {
            "systems": list(self.names),
            "documents": self.documents,
            "confidence": self.confidence,
            "differences": {
                row.metric: {
                    "first": _number(row.first),
                    "second": _number(row.second),
                    "difference": _number(row.difference),
                    "interval": [_number(end) for end in row.interval],
                    "p_value": _number(row.p_value),
                }
                for row in self.differences
            },
            "notes": list(self.notes),
        }

    def to_markdown(self) -> str:
        """A table in percent, with the conventions below."""
        notes = "\n".join(f"- {note}" for note in self.notes)
        return f"{markdown_table(self._headings(), self._rows())}\n\n{notes}\n"

    def table(self) -> Any:
        """The same for the terminal: a rich renderable."""
        from rich.console import Group
        from rich.text import Text

        return Group(
            rich_table(self._headings(), self._rows()), *(Text(f"· {note}", style="dim") for note in self.notes)
        )

    def _headings(self) -> list[str]:
        return ["Metric", *self.names, "difference", f"{self.confidence:.0%} interval", "p"]

    def _rows(self) -> list[list[str]]:
        return [
            [
                name_of(row.metric),
                as_percent(row.first),
                as_percent(row.second),
                as_percent(row.difference, signed=True),
                " – ".join(as_percent(end, signed=True) for end in row.interval),
                "–" if math.isnan(row.p_value) else f"{row.p_value:.4f}",
            ]
            for row in self.differences
        ]


def compare(
    gold: Any,
    first: Any,
    second: Any,
    taxonomy: Taxonomy,
    *,
    names: tuple[str, str] = ("first", "second"),
    macro: Macro = "gold",
    training: Any = None,
    samples: int = 1000,
    permutations: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compare two systems on the same documents: Micro-, Macro- and example F1.

    Parameters
    ----------
    gold, first, second
        (n, L) indicator matrices; gold is closed upward first.
    taxonomy
        The labels and what stands above them.
    names
        What to call the systems.
    macro, training
        The labels of the macro mean, as in `report`.
    samples, permutations
        Of the paired bootstrap (interval of the difference) and of the paired permutation test (p-value).
    confidence, seed
        Of both.

    Examples
    --------
    >>> taxonomy = Taxonomy.of({"A": [], "B": []})
    >>> gold = [[1, 0], [0, 1]] * 10
    >>> found = compare(gold, [[1, 1]] * 20, gold, taxonomy, seed=7)
    >>> round(found["micro_f1"].difference, 3), found["micro_f1"].p_value < 0.01
    (0.333, True)
    """
    given, one = pair(gold, first, taxonomy, name=names[0])
    two = pair(gold, second, taxonomy, name=names[1])[1]
    right = taxonomy.close_matrix(given)
    examples = None if training is None else training_counts(training, len(taxonomy), taxonomy)
    scores = [_scores(right, found, macro, examples) for found in (one, two)]
    intervals = bootstrap_difference(
        right, one, two, samples=samples, seed=seed, confidence=confidence, over=macro, training=examples
    )
    p_values = permutation_test(right, one, two, permutations=permutations, seed=seed, over=macro, training=examples)
    differences = [Difference(m, scores[0][m], scores[1][m], intervals[m], p_values[m]) for m in METRICS]
    notes = [
        f"Macro-F1 is over labels: {COVERS[macro]}.",
        f"Intervals: paired bootstrap over {right.shape[0]:,} documents, {samples:,} samples; p: two-sided paired "
        f"permutation test, {permutations:,} permutations; seed {seed}.",
    ]
    return Comparison(names, right.shape[0], differences, confidence, notes)


def _scores(right: Indicator, found: Indicator, macro: Macro, training: Any) -> dict[str, float]:
    counts = label_counts(right, found)
    return {
        "micro_f1": micro_from_counts(counts).f1,
        "macro_f1": macro_from_counts(counts, covered(macro, counts.gold, training)).f1,
        "example_f1": example_from_counts(document_counts(right, found)).f1,
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
