"""The main job on the bundled sample: read it, check its taxonomy, print its statistics, draw it."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from hilap import samples
from hilap.corpus.statistics import combine, statistics
from hilap.taxonomy import draw
from hilap.taxonomy.lint import lint
from hilap.taxonomy.readers import read_draft


def main() -> None:
    """Run the demonstration."""
    console = Console()
    parts = samples.load("pypi_topics")
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
    console.print(draw.tree(taxonomy, counts=counts))
    first = parts["train"][0]
    console.print(f"\na document: {first.id}: {(first.text or '')[:100]}…", markup=False)
    console.print(f"its labels: {', '.join(first.labels)}", markup=False)


if __name__ == "__main__":
    main()
