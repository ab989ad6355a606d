"""The model card: what a model is, what it was trained on, how well it did, how it is opened. For people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hilap.metrics.report import Report
from hilap.metrics.words import markdown_table
from hilap.taxonomy import Taxonomy
from hilap.taxonomy.statistics import statistics


def card(
    title: str,
    taxonomy: Taxonomy,
    *,
    documents: int,
    settings: Mapping[str, Any],
    history: list[dict[str, Any]],
    validation: Report,
    explain: str | None = None,
    refitted: bool = False,
) -> str:
    """The model card as Markdown.

    Parameters
    ----------
    title
        What the model is.
    taxonomy
        The labels it places documents at.
    documents
        How many it was trained on.
    settings
        What it was trained with, by name.
    history
        One record an epoch.
    validation
        How well it does on the validation documents.
    explain
        What `hilap explain` is given after the folder; None leaves that command out, where it has nothing to show.
    refitted
        Whether it was trained anew on the validation documents too, after they had judged it.
    """
    figures = statistics(taxonomy)
    facts = [
        ["Training documents", f"{documents:,}"],
        ["Validation documents", f"{validation.documents:,}"],
        ["Labels", f"{figures.labels:,} ({figures.kind}, {figures.levels} levels, {figures.leaves:,} leaves)"],
        ["Taxonomy fingerprint", figures.fingerprint],
        *([phase["name"], _phase(phase)] for phase in phases(history)),
    ]
    rows = [[name, str(value)] for name, value in settings.items()]
    anew = " The model was then trained anew on them too; these are the scores of the one before." if refitted else ""
    commands = [
        "hilap predict FOLDER INPUT --out FILE",
        *([] if explain is None else [f"hilap explain FOLDER {explain}"]),
        "hilap inspect FOLDER",
    ]
    return (
        "\n\n".join(
            [
                f"# {title}",
                "Puts documents at the right places of a taxonomy. Written by `hilap`; nothing in this folder is "
                "executed when it is opened.",
                '```python\nimport hilap\n\nmodel = hilap.load("this folder")\nmodel.predict_labels(documents)\n```',
                f"On the command line: {', '.join(f'`{command}`' for command in commands)}.",
                "## Training\n\n" + markdown_table(["", ""], facts),
                "## Scores on the validation documents\n\nThey chose the epoch and, if tuned, the threshold or the "
                f"stop bias: on new documents expect somewhat less.{anew}\n\n" + validation.to_markdown().strip(),
                "## Settings\n\n" + markdown_table(["Setting", "Value"], rows),
            ]
        )
        + "\n"
    )


def phases(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What happened in each phase of training: epochs, the one kept, its score (None: not judged), seconds.

    Where the loss chose the epoch, the score is the loss with a minus before it: the highest is the best.

    Examples
    --------
    >>> phases([{"phase": "flat", "epoch": 1, "select": 0.2, "seconds": 2.0}])
    [{'name': 'flat', 'epochs': 1, 'best_epoch': 1, 'best_score': 0.2, 'seconds': 2.0}]
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for record in history:
        found.setdefault(record["phase"], []).append(record)
    summaries = []
    for name, records in found.items():
        judged = [record for record in records if "select" in record]
        best = max(judged, key=lambda record: record["select"]) if judged else records[-1]  # as the trainer does
        summaries.append(
            {
                "name": name,
                "epochs": max(record["epoch"] for record in records),
                "best_epoch": best["epoch"],
                "best_score": best.get("select"),
                "seconds": sum(record.get("seconds", 0.0) for record in records),
            }
        )
    return summaries


def score_words(score: float, unit: str = "") -> str:
    """The score of an epoch in words: a share as percent, a loss as it is. Only a loss is below 0.

    Examples
    --------
    >>> score_words(0.3441), score_words(0.3441, " %"), score_words(-0.3441)
    ('34.41', '34.41 %', 'validation loss 0.344')
    """
    return f"validation loss {-score:.3g}" if score < 0 else f"{100 * score:.2f}{unit}"


def _phase(phase: Mapping[str, Any]) -> str:
    score = phase["best_score"]
    kept = "the last was kept" if score is None else f"the best was {phase['best_epoch']} with {score_words(score)}"
    return f"{phase['epochs']} epochs in {phase['seconds']:.0f} seconds; {kept}"


__all__ = ["card", "phases", "score_words"]
