"""How metrics are called and shown: names for people, percent, Markdown and terminal tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

NAMES = {
    "micro_precision": "Micro-precision",
    "micro_recall": "Micro-recall",
    "micro_f1": "Micro-F1",
    "macro_precision": "Macro-precision",
    "macro_recall": "Macro-recall",
    "macro_f1": "Macro-F1",
    "example_precision": "Example-based precision",
    "example_recall": "Example-based recall",
    "example_f1": "Example-based F1 (EBF)",
    "subset_accuracy": "Exact sets",
    "hamming_loss": "Hamming loss",
    "hierarchical_precision": "hP",
    "hierarchical_recall": "hR",
    "hierarchical_f1": "hF",
    "hierarchical_example_precision": "hP by document",
    "hierarchical_example_recall": "hR by document",
    "hierarchical_example_f1": "hF by document",
    "lca_precision": "LCA-P",
    "lca_recall": "LCA-R",
    "lca_f1": "LCA-F",
    "consistent_micro_f1": "C-Micro-F1",
    "consistent_macro_f1": "C-Macro-F1",
    "inconsistent_share": "Inconsistent documents",
    "au_prc_pooled": "AU(PRC), pooled",
    "au_prc_macro": "AU(PRC), mean over labels",
    "au_prc_weighted": "AU(PRC), weighted by support",
    "r_precision": "R-precision",
    "calibration_error_pairs": "Calibration error, all pairs",
    "calibration_error_labels": "Calibration error, mean over labels",
    "calibration_error_predicted": "Calibration error, predicted labels",
    "brier_score": "Brier score",
}

COVERS = {
    "all": "all of them",
    "gold": "those with a gold document here",
    "both": "those with a gold document here and a training example",
}


def name_of(metric: str) -> str:
    """What a metric is called in a table.

    Examples
    --------
    >>> name_of("example_f1"), name_of("precision_at_3"), name_of("ndcg_at_5")
    ('Example-based F1 (EBF)', 'P@3', 'nDCG@5')
    """
    for prefix, short in (("precision_at_", "P@"), ("ndcg_at_", "nDCG@")):
        if metric.startswith(prefix):
            return short + metric.removeprefix(prefix)
    return NAMES[metric]


def as_percent(fraction: float, signed: bool = False) -> str:
    """A fraction in percent with two decimals; a dash where it is not defined.

    Examples
    --------
    >>> as_percent(0.4538), as_percent(float("nan")), as_percent(0.01, signed=True)
    ('45.38', '–', '+1.00')
    """
    if math.isnan(fraction):
        return "–"
    return f"{100 * fraction:+.2f}" if signed else f"{100 * fraction:.2f}"


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; the first column to the left, the others to the right."""
    marks = [":--", *("--:" for _ in headings[1:])]
    return "\n".join(f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in [headings, marks, *rows])


def rich_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    """The same for the terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # not markup: a name may hold brackets
    return table


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
