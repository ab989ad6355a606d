"""`hilap corpus`: check, count, split and prepare documents."""

from __future__ import annotations

import shutil
import tempfile
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilap.cli.options import (
    BadLines,
    BadLinesPolicy,
    CorpusFile,
    FeatureColumns,
    FormatOption,
    GroupColumn,
    IdColumn,
    JsonFlag,
    LabelsColumn,
    LabelSeparator,
    PathSeparator,
    ReadOptions,
    TaxonomyFormat,
    TaxonomyOption,
    TextColumn,
    Unknown,
    UnknownPolicy,
    open_corpus,
    parse_pairs,
)
from hilap.cli.printing import console, print_json, print_rows
from hilap.errors import HilapError, SettingError

if TYPE_CHECKING:
    from hilap.corpus import Corpus, ReadReport

app = typer.Typer(help="Check, count, split and prepare documents.", no_args_is_help=True)


class By(str, Enum):
    """How documents are dealt out to the parts of a split."""

    random = "random"
    group = "group"
    stratified = "stratified"


@app.command()
def check(
    file: CorpusFile,
    taxonomy: TaxonomyOption = None,
    taxonomy_format: TaxonomyFormat = None,
    format: FormatOption = None,
    text: TextColumn = "text",
    labels: LabelsColumn = "labels",
    id: IdColumn = "id",
    features: FeatureColumns = None,
    group: GroupColumn = None,
    label_separator: LabelSeparator = "|",
    path_separator: PathSeparator = None,
    unknown: UnknownPolicy = Unknown.error,
    bad_lines: BadLinesPolicy = BadLines.error,
    json: JsonFlag = False,
) -> None:
    """Read every document once and say what is wrong. Exit code 2 at the first error, unless told to go on."""
    corpus = open_corpus(
        file,
        taxonomy,
        taxonomy_format,
        format=format,
        text=text,
        labels=labels,
        id=id,
        features=features,
        group=group,
        label_separator=label_separator,
        path_separator=path_separator,
        unknown=unknown,
        bad_lines=bad_lines,
    )
    for _ in corpus.batches():
        pass
    if json:
        print_json({"file": file, **corpus.report.to_json()})
    else:
        print_rows(file, _report_rows(corpus.report))


def _report_rows(report: ReadReport) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = [
        ("documents", report.documents),
        ("without labels", report.without_labels),
        ("repeated ids", report.duplicate_ids),
        ("skipped lines", report.skipped),
        *(("", f"{line.where}: {line.reason}") for line in report.skipped_lines),
        ("dropped labels", sum(report.dropped_labels.values())),
    ]
    return rows + [("", f"{label} ({count:,})") for label, count in list(report.dropped_labels.items())[:10]]


@app.command()
def stats(
    file: CorpusFile,
    taxonomy: TaxonomyOption = None,
    taxonomy_format: TaxonomyFormat = None,
    format: FormatOption = None,
    text: TextColumn = "text",
    labels: LabelsColumn = "labels",
    id: IdColumn = "id",
    features: FeatureColumns = None,
    label_separator: LabelSeparator = "|",
    path_separator: PathSeparator = None,
    unknown: UnknownPolicy = Unknown.error,
    bad_lines: BadLinesPolicy = BadLines.error,
    json: JsonFlag = False,
) -> None:
    """Count documents and labels, as in the paper's Table 1."""
    from hilap.corpus.statistics import statistics

    corpus = open_corpus(
        file,
        taxonomy,
        taxonomy_format,
        format=format,
        text=text,
        labels=labels,
        id=id,
        features=features,
        group=None,
        label_separator=label_separator,
        path_separator=path_separator,
        unknown=unknown,
        bad_lines=bad_lines,
    )
    figures = statistics(corpus)
    if json:
        print_json({"file": file, **figures.to_json(), "skipped": corpus.report.skipped})
    else:
        print_rows(
            file, [*figures.rows(), *([("skipped lines", corpus.report.skipped)] if corpus.report.skipped else [])]
        )


@app.command()
def split(
    file: CorpusFile,
    out: Annotated[Path, typer.Option("--out", help="The folder for the parts.", show_default=False)],
    taxonomy: TaxonomyOption = None,
    taxonomy_format: TaxonomyFormat = None,
    shares: Annotated[str, typer.Option(help="The parts and their shares.")] = "train=0.8,valid=0.1,test=0.1",
    by: Annotated[
        By | None, typer.Option(help="How documents are dealt out: by group if --group is given, else at random.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same parts.")] = 0,
    suffix: Annotated[
        str, typer.Option(help="The kind of file to write: .jsonl, .jsonl.gz, .csv, .parquet …")
    ] = ".jsonl",
    format: FormatOption = None,
    text: TextColumn = "text",
    labels: LabelsColumn = "labels",
    id: IdColumn = "id",
    features: FeatureColumns = None,
    group: GroupColumn = None,
    label_separator: LabelSeparator = "|",
    path_separator: PathSeparator = None,
    unknown: UnknownPolicy = Unknown.error,
    bad_lines: BadLinesPolicy = BadLines.error,
    json: JsonFlag = False,
) -> None:
    """Divide a corpus into parts: at random, by group, or so that every label is spread evenly (stratified).

    The file is read once for its labels and once for each part, and never held in memory as a whole.
    """
    from hilap.corpus.splits import split_rows

    if by is By.random and group is not None:
        raise SettingError("--by random does not keep groups together; leave out --group, or --by")
    way = by or (By.random if group is None else By.group)
    corpus = open_corpus(
        file,
        taxonomy,
        taxonomy_format,
        format=format,
        text=text,
        labels=labels,
        id=id,
        features=features,
        group=group,
        label_separator=label_separator,
        path_separator=path_separator,
        unknown=unknown,
        bad_lines=bad_lines,
    )
    if corpus.once:
        raise SettingError("standard input can be read only once, but a split reads twice; save it to a file first")
    indicator, groups = _labels_and_groups(corpus)
    parts = split_rows(indicator, _parse_shares(shares), seed=seed, by=way.value, groups=groups)
    targets = _write_parts(corpus, parts, out, suffix)
    counts = {name: len(rows) for name, rows in parts.items()}
    if json:
        print_json(
            {"file": file, "parts": {name: {"documents": counts[name], "file": targets[name]} for name in parts}}
        )
    else:
        print_rows(file, [(name, f"{counts[name]:,} documents in {targets[name]}") for name in parts])


def _parse_shares(text: str) -> dict[str, float]:
    shares: dict[str, float] = {}
    for pair in text.split(","):
        name, equals, value = (part.strip() for part in pair.partition("="))
        try:
            shares[name] = float(value)
        except ValueError:
            equals = ""
        if not name or not equals or not name.replace("-", "").replace("_", "").isalnum():
            raise SettingError(f"--shares must look like train=0.8,test=0.2, got {text!r}")
    return shares


def _labels_and_groups(corpus: Corpus) -> tuple[Any, list[str] | None]:
    """First pass: the label matrix and the groups, without texts."""
    from scipy import sparse

    matrices: list[Any] = []
    groups: list[str] = []
    for block in corpus.batches():
        matrices.append(block.labels)
        groups.extend(block.groups or ())
    return sparse.vstack(matrices, format="csr"), groups or None


def _write_parts(corpus: Corpus, parts: dict[str, Any], out: Path, suffix: str) -> dict[str, str]:
    """Further passes, one a part: the documents of its rows, in order."""
    from hilap.corpus import write

    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise SettingError(f"{out}: cannot be made a folder ({fault.strerror}); choose another --out") from None
    draft = Path(tempfile.mkdtemp(prefix=".split.", dir=out))
    targets = {name: out / f"{name}{suffix}" for name in parts}
    try:  # all parts or none: half a split looks like a whole one, and older parts stay until the new ones are written
        for name, rows in parts.items():
            write(corpus.rows(rows), draft / targets[name].name)
        for target in targets.values():
            (draft / target.name).replace(target)
    except HilapError as fault:
        raise type(fault)(str(fault).replace(str(draft), str(out))) from None
    finally:
        shutil.rmtree(draft)
        for folder in made:  # from the inside out; one that holds parts stays
            if not any(folder.iterdir()):
                folder.rmdir()
    return {name: str(target) for name, target in targets.items()}


@app.command()
def prepare(
    name: Annotated[str, typer.Argument(help="rcv1, nyt or yelp.", show_default=False)],
    source: Annotated[Path, typer.Option("--from", help="The folder with the official files.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="The folder to write: new or empty, with the folders above it made if need be.",
            show_default="NAME, in this folder",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of sampling and splitting.")] = 0,
    option: ReadOptions = None,
    json: JsonFlag = False,
) -> None:
    """Turn a corpus of the paper, as its owner distributes it, into our format with the paper's preprocessing."""
    from hilap.corpus.datasets import prepare as prepare_dataset

    target = Path(name) if out is None else out
    about = prepare_dataset(name, source, target, seed=seed, **parse_pairs(option))
    if json:
        print_json(about)
    else:
        print_rows(str(target), about.items())
        files = f"{target}/train.jsonl.gz --valid {target}/valid.jsonl.gz --taxonomy {target}/taxonomy.jsonl"
        console().print(f"train with: hilap train {files} --out MODEL", markup=False)
