"""`hilap taxonomy`: check, show, convert and count the labels of a file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from hilap.cli.options import FormatOption, JsonFlag, ReadOptions, TaxonomyFile, parse_pairs
from hilap.cli.printing import console, print_json, print_rows
from hilap.errors import SettingError

app = typer.Typer(help="Check, show, convert and count a taxonomy.", no_args_is_help=True)

_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}
_SHOWN = 50  # findings of one kind that are printed; all of them are in the JSON


@app.command()
def check(
    file: TaxonomyFile,
    format: FormatOption = None,
    option: ReadOptions = None,
    strict: Annotated[bool, typer.Option(help="Let warnings fail the check too.")] = False,
    json: JsonFlag = False,
) -> None:
    """Look for cycles, unknown parents, repeated ids, orphans and more. Exit code 2 if there are errors."""
    from hilap.taxonomy.lint import lint
    from hilap.taxonomy.readers import read_draft

    draft = read_draft(file, format, **parse_pairs(option))
    findings = lint(draft)
    counts = Counter(finding.severity for finding in findings)
    if json:
        print_json(
            {
                "file": str(file),
                "format": draft.format,
                "labels": len(draft),
                "errors": counts["error"],
                "warnings": counts["warning"],
                "notes": counts["note"],
                "findings": [finding.to_json() for finding in findings],
            }
        )
    else:
        _print_findings(findings)
        console().print(
            f"{file}: {len(draft):,} labels ({draft.format}), "
            f"{counts['error']:,} errors, {counts['warning']:,} warnings, {counts['note']:,} notes",
            markup=False,
        )
    if counts["error"] or (strict and counts["warning"]):
        raise typer.Exit(2)


def _print_findings(findings: list[Any]) -> None:
    from rich.text import Text

    printed: Counter[str] = Counter()
    for finding in findings:
        printed[finding.code] += 1
        if printed[finding.code] <= _SHOWN:
            line = Text(f"{finding.where}: ")
            line.append(f"{finding.severity} ({finding.code})", style=_STYLES[finding.severity])
            console().print(line.append(f" {finding.message}"))
    for code, count in printed.items():
        if count > _SHOWN:
            console().print(f"… {count - _SHOWN:,} more of {code}; --json lists them all", style="dim")


@app.command()
def show(
    file: TaxonomyFile,
    format: FormatOption = None,
    option: ReadOptions = None,
    label: Annotated[str | None, typer.Option(help="Start at this label.")] = None,
    depth: Annotated[int | None, typer.Option(min=1, help="Draw so many levels.")] = None,
    children: Annotated[int | None, typer.Option(min=1, help="Draw at most so many children of a label.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write a picture to this SVG file instead.")] = None,
    json: JsonFlag = False,
) -> None:
    """Draw the taxonomy as a tree in the terminal, or as an SVG."""
    from hilap.files import writing
    from hilap.taxonomy import draw
    from hilap.taxonomy.readers import read

    if json and svg is None and (depth is not None or children is not None):
        raise SettingError("--json lists every label; --depth and --children cut only drawings: leave them out")
    taxonomy = read(file, format, **parse_pairs(option))
    if label is not None:
        taxonomy.index(label)
    if svg is not None:
        picture = draw.svg(taxonomy, label=label, max_depth=depth, max_children=children, title=file.name)
        with writing(svg) as out:
            out.write(picture)
    if json:
        start = set(taxonomy.labels if label is None else [label, *taxonomy.descendants(label)])
        print_json([record for record in taxonomy.records() if record["label"] in start])
    elif svg is None:
        console().print(draw.tree(taxonomy, label=label, max_depth=depth, max_children=children))


@app.command()
def convert(
    file: TaxonomyFile,
    target: Annotated[Path, typer.Argument(help="The file to write; `.gz` and `.zst` are compressed.")],
    format: FormatOption = None,
    to: Annotated[str | None, typer.Option(help="The target's format, if its ending does not tell.")] = None,
    option: ReadOptions = None,
    write_option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the target's format.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Write the taxonomy in another format. Nothing is written if the target cannot hold all of it."""
    from hilap.taxonomy.readers import read, write

    taxonomy = read(file, format, **parse_pairs(option))
    write(taxonomy, target, to, **parse_pairs(write_option))
    if json:
        print_json({"target": str(target), "labels": len(taxonomy), "fingerprint": taxonomy.fingerprint})
    else:
        console().print(f"{target}: {len(taxonomy):,} labels written", markup=False)


@app.command()
def stats(file: TaxonomyFile, format: FormatOption = None, option: ReadOptions = None, json: JsonFlag = False) -> None:
    """Count labels, levels, leaves, edges and children."""
    from hilap.taxonomy.readers import read
    from hilap.taxonomy.statistics import statistics

    figures = statistics(read(file, format, **parse_pairs(option))).to_json()
    if json:
        print_json(figures)
    else:
        print_rows(str(file), [(name.replace("_", " "), value) for name, value in figures.items()])


@app.command()
def formats(json: JsonFlag = False) -> None:
    """List the formats that can be read and written."""
    from hilap.taxonomy.readers import FORMATS

    if json:
        print_json(
            {
                name: {
                    "description": form.description,
                    "written": form.writer is not None,
                    "read_options": list(form.read_options),
                    "write_options": list(form.write_options),
                }
                for name, form in FORMATS.items()
            }
        )
    else:
        print_rows("formats", [(name, form.description) for name, form in FORMATS.items()])
