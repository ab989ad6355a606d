"""`hilap evaluate`: every metric of predictions against gold labels."""

from __future__ import annotations

import json as json_module
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilap.cli.options import JsonFlag, TaxonomyFormat
from hilap.cli.printing import console, print_json
from hilap.errors import CorpusError, SettingError

if TYPE_CHECKING:
    from hilap.taxonomy import Taxonomy


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
    tree = read(taxonomy, taxonomy_format)
    right_ids, right = _sets(gold, tree, labels, id)
    found = _aligned(predictions, right_ids, gold, tree, labels, id, close)
    seen = None if training is None else _counts(training, tree, labels, id)
    dense = None if scores is None else _scores(scores, right_ids, tree, id)
    options: dict[str, Any] = {"training": seen, "macro": macro.value, "seed": seed}
    if against is None:
        result: Any = report(right, found, tree, scores=dense, bootstrap=bootstrap, **options)
        value = result.to_json(per_label=per_label) if json else None
    else:
        other = _aligned(against, right_ids, gold, tree, labels, id, close)
        names = (predictions, against)
        result = compare(right, found, other, tree, names=names, samples=bootstrap or 1000, **options)
        value = result.to_json() if json else None
    if json:
        print_json(value)
    elif markdown:
        typer.echo(result.to_markdown())
    else:
        console().print(result.table())


def _sets(source: str, taxonomy: Taxonomy, labels: str, id: str, close: bool = False) -> tuple[list[str], Any]:
    """Ids and label sets of a file; if not asked, not closed upward, so that inconsistent predictions show."""
    from scipy import sparse

    from hilap.corpus import read

    ids: list[str] = []
    matrices = []
    for block in read(source, taxonomy, labels=labels, id=id, text=None, close=close).batches():
        ids.extend(block.ids)
        matrices.append(block.labels)
    if len(set(ids)) != len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise CorpusError(f"{source}: id {twice!r} stands there more than once; ids must be unique to be matched")
    return ids, sparse.vstack(matrices, format="csr")


def _aligned(
    source: str, right_ids: list[str], gold: str, taxonomy: Taxonomy, labels: str, id: str, close: bool
) -> Any:
    """The label sets of a file of predictions, in the order of the gold file."""
    ids, found = _sets(source, taxonomy, labels, id, close)
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


def _counts(source: str, taxonomy: Taxonomy, labels: str, id: str) -> Any:
    """How many training documents each label has, ancestors included."""
    import numpy as np

    from hilap.corpus import read

    counts = np.zeros(len(taxonomy), dtype=np.int64)
    for block in read(source, taxonomy, labels=labels, id=id, text=None).batches():
        counts += np.bincount(block.labels.indices, minlength=len(taxonomy))
    return counts


def _scores(source: str, right_ids: list[str], taxonomy: Taxonomy, id: str) -> Any:
    """(n, L) scores from lines with an id and a score for each label; labels that are not named have 0."""
    import numpy as np

    from hilap.files import read_lines

    row = {name: i for i, name in enumerate(right_ids)}
    dense = np.zeros((len(right_ids), len(taxonomy)), dtype=np.float32)
    filled: set[int] = set()
    for number, line in read_lines(source, CorpusError):
        if not line.strip():
            continue
        try:
            record = json_module.loads(line)
            at = row.get(str(record[id]))
            pairs = [(taxonomy.index(label), float(score)) for label, score in record["scores"].items()]
        except CorpusError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CorpusError(
                f'{source}:{number}: a line must be {{"{id}": …, "scores": {{label: number, …}}}}; {error}'
            ) from None
        if at is None:
            continue
        filled.add(at)
        for label, score in pairs:
            dense[at, label] = score
    if not np.isfinite(dense).all():
        raise CorpusError(f"{source}: scores must be finite numbers")
    if len(filled) < len(right_ids):
        first = next(name for name in right_ids if row[name] not in filled)
        raise CorpusError(
            f"{source}: there are no scores for {len(right_ids) - len(filled):,} documents, first {first!r}"
        )
    return dense
