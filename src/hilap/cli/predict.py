"""`hilap predict`: the labels of every document of a file, in its order."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilap.cli.options import (
    BadLines,
    BadLinesPolicy,
    FeatureColumns,
    FormatOption,
    IdColumn,
    JsonFlag,
    TextColumn,
    parse_pairs,
    widened,
)
from hilap.cli.printing import print_json
from hilap.errors import SettingError
from hilap.files import STDIN, writing

if TYPE_CHECKING:
    from hilap.corpus import Corpus

BLOCK = 1024  # documents read, predicted and written at a time
ENDINGS = (".jsonl", ".ndjson", ".parquet")

ModelFolder = Annotated[Path, typer.Argument(help="A folder that `hilap train` wrote.", show_default=False)]
DecodeSet = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change how labels are read off, e.g. stop_bias=1, max_labels=3, single_path=true.",
    ),
]


def predict(
    model: ModelFolder,
    input: Annotated[str, typer.Argument(help="Documents: a file, a pattern, or `-`.", show_default=False)],
    out: Annotated[
        str,
        typer.Option("--out", help="JSONL (.gz, .zst) or Parquet by its ending; `-` for standard output."),
    ] = STDIN,
    labels_only: Annotated[bool, typer.Option("--labels-only", help="Labels without probabilities: faster.")] = False,
    walks: Annotated[bool, typer.Option("--walks", help="Add the walk that led there.")] = False,
    scores: Annotated[
        bool, typer.Option("--scores", help="Add the probabilities of all labels, for `hilap evaluate --scores`.")
    ] = False,
    set_: DecodeSet = None,
    format: FormatOption = None,
    text: TextColumn = "text",
    id: IdColumn = "id",
    features: FeatureColumns = None,
    bad_lines: BadLinesPolicy = BadLines.error,
    json: JsonFlag = False,
) -> None:
    """Predict the labels of documents. One line for each, in the order of the input; memory does not grow with it."""
    if labels_only and (walks or scores):
        raise SettingError("--labels-only gives labels and nothing else; leave out --walks and --scores")
    if json and out == STDIN:
        raise SettingError("--json and the predictions would both go to standard output; give --out FILE")
    kind = _kind(out)
    classifier = open_model(model, set_)
    corpus = open_documents(input, classifier, format=format, text=text, id=id, features=features, bad_lines=bad_lines)
    width = getattr(classifier, "n_features_in_", 0)
    blocks = (
        _records(classifier, widened(block, width), labels_only=labels_only, walks=walks, scores=scores)
        for block in corpus.batches(BLOCK)
    )
    if kind == "parquet":
        _write_parquet(out, blocks, labels_only=labels_only, walks=walks, scores=scores)
    else:
        _write_lines(out, blocks)
    report = corpus.report
    if report.skipped:
        typer.echo(f"{corpus.name}: {report.skipped:,} bad lines were skipped", err=True)
    if json:
        print_json({"file": out, "documents": report.documents, "skipped": report.skipped})
    elif out != STDIN:
        typer.echo(f"{out}: {report.documents:,} documents written", err=True)


def open_model(folder: Path, pairs: list[str] | None) -> Any:
    """A saved classifier that gives indicator matrices, with some of its decoding changed."""
    from hilap.models import load

    classifier = load(folder)
    classifier.set_params(output="indicator")
    changes = parse_pairs(pairs, "--set")
    return classifier.with_decoding(**changes) if changes else classifier


def open_documents(
    source: str,
    classifier: Any,
    *,
    format: str | None,
    text: str,
    id: str,
    features: str | None,
    bad_lines: BadLines = BadLines.error,
) -> Corpus:
    """Documents to be labelled: labels that they have are not looked at."""
    from hilap.corpus import read

    return read(
        source,
        classifier.taxonomy_,
        format=format,
        text=[column for column in text.split(",") if column] or None,
        labels=None,
        labelled=False,
        id=id,
        features=features.split(",") if features else None,
        bad_lines=bad_lines.value,
    )


def _kind(out: str) -> str:
    if out == STDIN:
        return "jsonl"
    name = out.removesuffix(".gz").removesuffix(".zst")
    if not name.endswith(ENDINGS):
        raise SettingError(f"{out}: predictions are written as .jsonl (also .gz, .zst) or .parquet; end the name so")
    if name.endswith(".parquet") and name != out:
        raise SettingError(f"{out}: Parquet is compressed inside; end the name with .parquet")
    return "parquet" if name.endswith(".parquet") else "jsonl"


def _records(classifier: Any, block: Any, *, labels_only: bool, walks: bool, scores: bool) -> list[dict[str, Any]]:
    """One JSON value for each document of a block."""
    from hilap.outputs import predictions, records

    taxonomy = classifier.taxonomy_
    if labels_only:
        sets = taxonomy.decode(classifier.predict(block))
        return [{"id": id_, "labels": list(labels)} for id_, labels in zip(block.ids, sets, strict=True)]
    found, chances = classifier.predict_both(block)
    if walks:
        steps = classifier.explain(block)
        made = [one.to_json() for one in predictions(taxonomy, block.ids, found, chances, steps)]
    else:
        made = records(taxonomy, block.ids, found, chances)
    if scores:
        for record, row in zip(made, chances, strict=True):
            record["scores"] = {taxonomy.labels[k]: float(f"{row[k]:.6g}") for k in row.nonzero()[0].tolist()}
    return made


def _write_lines(out: str, blocks: Any) -> None:
    import json

    def put(stream: Any) -> None:
        for block in blocks:
            stream.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in block)

    if out == STDIN:
        put(sys.stdout)
        sys.stdout.flush()
    else:
        with writing(out) as stream:
            put(stream)


def _write_parquet(out: str, blocks: Any, *, labels_only: bool, walks: bool, scores: bool) -> None:
    from hilap.errors import need

    arrow, parquet = need("pyarrow", "formats"), need("pyarrow.parquet", "formats")
    string, number = arrow.string(), arrow.float64()
    label = arrow.struct([("label", string), ("name", string), ("probability", number)])
    columns = [("id", string), ("labels", arrow.list_(string if labels_only else label))]
    if walks:
        option = arrow.struct([("action", string), ("probability", number)])
        step = [("at", string), ("action", string), ("probability", number), ("options", arrow.list_(option))]
        columns.append(("walk", arrow.list_(arrow.struct(step))))
    if scores:
        columns.append(("scores", arrow.map_(string, number)))
    schema = arrow.schema(columns)
    with writing(out, "wb") as stream, parquet.ParquetWriter(stream, schema) as writer:
        for block in blocks:
            for record in block:
                if scores:
                    record["scores"] = list(record["scores"].items())
            writer.write_table(arrow.Table.from_pylist(block, schema))
