"""The main job on the bundled sample: look at it, train on it, compare, show one walk, save the model."""

from __future__ import annotations

import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from hilap import HiLAPClassifier, samples
from hilap.card import phases
from hilap.corpus.examples import Examples
from hilap.corpus.statistics import combine, statistics
from hilap.metrics.report import Report, report
from hilap.taxonomy import draw
from hilap.taxonomy.lint import lint
from hilap.taxonomy.readers import read_draft

FOLDER = Path("demo-model")
COLUMNS = {"Micro-F1": "micro_f1", "Macro-F1": "macro_f1", "EBF": "example_f1", "inconsistent": "inconsistent_share"}


def main() -> None:
    """Run the demonstration."""
    torch.set_num_threads(1)  # so small a model is slower on two, the more so on a busy machine
    console = Console()
    parts = samples.load("pypi_topics")
    show_data(console, parts)
    hilap, rows, seconds = train(console, parts)
    show_scores(console, rows, seconds)
    show_walk(console, hilap, parts["test"])
    hilap.save(FOLDER)
    console.print(f"\nThe model is in {FOLDER}/. Try: hilap explain {FOLDER} 'a fast web framework'", markup=False)


def show_data(console: Console, parts: dict[str, Examples]) -> None:
    """Check the taxonomy, print the corpus' figures, draw the top of the taxonomy."""
    taxonomy = parts["train"].taxonomy
    console.rule("The bundled sample: Python packages and their topics")
    findings = lint(read_draft(samples.path("pypi_topics") / "taxonomy.jsonl"))
    errors = sum(finding.severity == "error" for finding in findings)
    console.print(f"taxonomy: {taxonomy!r}, {errors} errors, {len(findings) - errors} warnings and notes", markup=False)
    figures = {name: statistics(part) for name, part in parts.items()}
    figures["all"] = combine(figures.values())
    table = Table("", *figures, title="as in the paper's Table 1", title_justify="left")
    for rows in zip(*(figure.rows() for figure in figures.values()), strict=True):
        table.add_row(rows[0][0], *(value for _, value in rows))
    console.print(table)
    counts = dict(zip(taxonomy.labels, parts["train"].labels.sum(axis=0).tolist(), strict=True))
    console.print(draw.tree(taxonomy, counts=counts, max_depth=1))


def train(console: Console, parts: dict[str, Examples]) -> tuple[HiLAPClassifier, dict[str, Report], float]:
    """HiLAP and the flat classifier, judged on the test documents."""
    console.rule("Training")
    began = time.perf_counter()
    flat = HiLAPClassifier(preset="recommended", variant="flat", seed=0)  # the same flat models, without a policy
    flat.fit(parts["train"], valid=parts["valid"])
    hilap = HiLAPClassifier(preset="recommended", seed=0, progress=True)
    hilap.fit(parts["train"], valid=parts["valid"])
    seconds = time.perf_counter() - began
    last = phases(hilap.history_)[-1]  # epoch 0 is the start: the flat models made consistent, before any reinforcement
    console.print(
        f"HiLAP keeps epoch {last['best_epoch']} of {last['epochs']} of its {last['name']} phase", markup=False
    )
    tuned = f"flat, tuned threshold {flat.decode_.threshold:.2f}"
    systems = {"flat, threshold 0.5": flat.with_decoding(threshold=0.5), tuned: flat, "HiLAP": hilap}
    test = parts["test"]
    rows = {
        name: report(test.labels, system.predict(test), test.taxonomy, lca=False) for name, system in systems.items()
    }
    return hilap, rows, seconds


def show_scores(console: Console, rows: dict[str, Report], seconds: float) -> None:
    """One row for each system."""
    table = Table("test documents, %", *COLUMNS, title=f"trained in {seconds:.0f} seconds", title_justify="left")
    for name, found in rows.items():
        table.add_row(name, *(f"{100 * found.scores[metric]:.2f}" for metric in COLUMNS.values()))
    console.print(table)


def show_walk(console: Console, hilap: HiLAPClassifier, test: Examples) -> None:
    """One document, and how it is placed step by step."""
    longest = max(range(50), key=lambda i: len(test[i].labels))
    document = test.take([longest])
    console.rule("One walk")
    console.print(f"{document.ids[0]}: {(document[0].text or '')[:200]}…", markup=False)
    console.print(f"gold: {', '.join(document[0].labels)}", markup=False)
    names = dict(zip(hilap.taxonomy_.labels, hilap.taxonomy_.names, strict=True))
    for number, step in enumerate(hilap.explain(document)[0], start=1):
        console.print(f"  {number}. {step.describe(names, most=3)}", markup=False, highlight=False)
    console.print(str(hilap.predict_labels(document)[0]), markup=False, highlight=False)


if __name__ == "__main__":
    main()
