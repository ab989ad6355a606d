"""`hilap evaluate`: every metric of predictions against gold labels."""

from __future__ import annotations

import json as json_module
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilap.cli.options import JsonFlag, LabelSeparator, TaxonomyFormat
from hilap.cli.printing import console, print_json
from hilap.errors import CorpusError, SettingError

if TYPE_CHECKING:
    from hilap.taxonomy import Taxonomy


MOST_SCORE = 1e38  # scores are held in single precision


class Macro(str, Enum):
    """The labels that the macro mean covers."""

    gold = "gold"
    all = "all"
    both = "both"


def evaluate(
    predictions: Annotated[str, typer.Argument(help="Predicted labels: JSONL, CSV … with ids.", show_default=False)],
    gold: Annotated[str, typer.Argument(help="The corpus with the gold labels.", show_default=False)],
    taxonomy: Annotated[Path, typer.Option("--taxonomy", "-t", help="The taxonomy file.", show_default=False)],
    taxonomy_format: TaxonomyFormat = None,
    training: Annotated[
        str | None, typer.Option(help="The training corpus: for --macro both and for popularity.")
    ] = None,
    macro: Annotated[Macro, typer.Option(help="Labels in the macro mean: with gold documents, all, or with both.")] = (
        Macro.gold
    ),
    scores: Annotated[
        str | None, typer.Option(help='JSONL with {"id", "scores": {label: score}}: for ranking and calibration.')
    ] = None,
    against: Annotated[str | None, typer.Option(help="A second system's predictions, to compare with.")] = None,
    bootstrap: Annotated[int, typer.Option(min=0, help="Samples for confidence intervals.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Of intervals and tests.")] = 0,
    labels: Annotated[str, typer.Option(help="Column of the labels in all files.")] = "labels",
    id: Annotated[str, typer.Option(help="Column of the id in all files.")] = "id",
    label_separator: LabelSeparator = "|",
    close: Annotated[
        bool,
        typer.Option(help="Add missing ancestors to the predictions first, where they name only the deepest labels."),
    ] = False,
    per_label: Annotated[bool, typer.Option(help="Add a row for every label (JSON only).")] = False,
    markdown: Annotated[bool, typer.Option(help="Print Markdown.")] = False,
    json: JsonFlag = False,
) -> None:
    """Compare predicted with gold labels. Documents are matched by their ids."""
    from hilap.metrics import compare, report
    from hilap.taxonomy.readers import read

    if json and markdown:
        raise SettingError("--json and --markdown exclude each other; take one")
    if against is not None and (scores is not None or per_label):
        raise SettingError("--against compares sets of labels only; leave out --scores and --per-label")
    if per_label and not json:
        raise SettingError("--per-label is for --json; add that")
    tree = read(taxonomy, taxonomy_format)
    columns = {"id": id, "labels": labels, "text": None, "label_separator": label_separator}
    right_ids, right = _sets(gold, tree, columns)
    found = _aligned(predictions, right_ids, gold, tree, columns, close)
    seen = None if training is None else _counts(training, tree, columns)
    dense = None if scores is None else _scores(scores, right_ids, gold, tree, id)
    options: dict[str, Any] = {"training": seen, "macro": macro.value, "seed": seed}
    if against is None:
        result: Any = report(right, found, tree, scores=dense, bootstrap=bootstrap, **options)
    else:
        other = _aligned(against, right_ids, gold, tree, columns, close)
        names = (predictions, against)
        result = compare(right, found, other, tree, names=names, samples=bootstrap or 1000, **options)
    if close:
        result.notes.append("Before all that, missing ancestors were added to the predictions (--close).")
    if json:
        print_json(result.to_json(per_label=True) if per_label else result.to_json())
    elif markdown:
        typer.echo(result.to_markdown())
    else:
        console().print(result.table())


def _sets(source: str, taxonomy: Taxonomy, columns: dict[str, Any], close: bool = False) -> tuple[list[str], Any]:
    """Ids and label sets of a file; if not asked, not closed upward, so that inconsistent predictions show."""
    from scipy import sparse

    from hilap.corpus import read

    ids: list[str] = []
    matrices = []
    for block in read(source, taxonomy, close=close, **columns).batches():
        ids.extend(block.ids)
        matrices.append(block.labels)
    if len(set(ids)) != len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise CorpusError(f"{source}: id {twice!r} stands there more than once; ids must be unique to be matched")
    return ids, sparse.vstack(matrices, format="csr")


def _aligned(
    source: str, right_ids: list[str], gold: str, taxonomy: Taxonomy, columns: dict[str, Any], close: bool
) -> Any:
    """The label sets of a file of predictions, in the order of the gold file."""
    ids, found = _sets(source, taxonomy, columns, close)
    row = {name: i for i, name in enumerate(ids)}
    missing = [name for name in right_ids if name not in row]
    if missing:
        raise CorpusError(
            f"{source}: there is no prediction for {len(missing):,} of {len(right_ids):,} documents of {gold}, "
            f"the first is {missing[0]!r}; predict them too (an empty list of labels is fine)"
        )
    extra = len(ids) - len(right_ids)
    if extra:
        known = set(right_ids)
        strange = next(name for name in ids if name not in known)
        raise CorpusError(f"{source}: {extra:,} documents are not in {gold}, the first is {strange!r}; leave them out")
    return found[[row[name] for name in right_ids]]


def _counts(source: str, taxonomy: Taxonomy, columns: dict[str, Any]) -> Any:
    """How many training documents each label has, ancestors included."""
    import numpy as np

    from hilap.corpus import read

    counts = np.zeros(len(taxonomy), dtype=np.int64)
    for block in read(source, taxonomy, **columns).batches():
        counts += np.bincount(block.labels.indices, minlength=len(taxonomy))
    return counts


def _scores(source: str, right_ids: list[str], gold: str, taxonomy: Taxonomy, id: str) -> Any:
    """(n, L) scores from lines with an id and a score for each label; labels that are not named have 0."""
    import numpy as np

    from hilap.corpus.labels import Resolver, UnresolvedError
    from hilap.files import display, read_lines

    resolver = Resolver(taxonomy)
    row = {name: i for i, name in enumerate(right_ids)}
    dense = np.zeros((len(right_ids), len(taxonomy)), dtype=np.float32)
    filled: set[str] = set()
    for number, line in read_lines(source, CorpusError):
        if not line.strip():
            continue
        where = f"{display(source)}:{number}"
        name, scores = _scored(line, where, id)
        if name not in row:
            raise CorpusError(f"{where}: document {name!r} is not in {gold}; leave it out")
        if name in filled:
            raise CorpusError(f"{where}: document {name!r} has scores already; ids must be unique to be matched")
        filled.add(name)
        try:
            dense[row[name], resolver.indices(list(scores))] = list(scores.values())
        except UnresolvedError as fault:
            raise CorpusError(f"{where}: {fault}") from None
    missing = [name for name in right_ids if name not in filled]
    if missing:
        raise CorpusError(
            f"{display(source)}: there are no scores for {len(missing):,} documents, first {missing[0]!r}"
        )
    return dense


def _scored(line: str, where: str, id: str) -> tuple[str, dict[str, float]]:
    """The id of a document and the score of each label on one line."""
    try:
        record = json_module.loads(line)
        name, scores = str(record[id]), record["scores"]
    except (ValueError, TypeError, KeyError, RecursionError):
        name, scores = "", None
    if not isinstance(scores, dict):
        shown = repr(line if len(line) <= 80 else line[:77] + "...")
        raise CorpusError(f'{where}: a line must be {{"{id}": …, "scores": {{label: number, …}}}}, got {shown}')
    for label, score in scores.items():
        numeric = isinstance(score, (int, float)) and not isinstance(score, bool)
        if not numeric or not abs(score) < MOST_SCORE:
            raise CorpusError(f"{where}: the score of {label!r} must be a finite number, got {str(score)[:80]}")
    return name, scores
