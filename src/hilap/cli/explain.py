"""`hilap explain`: the walk of one document, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilap.cli.options import FormatOption, JsonFlag, TextColumn, widened
from hilap.cli.predict import DecodeSet, ModelFolder, open_documents, open_model
from hilap.cli.printing import console, print_json
from hilap.errors import CorpusError, SettingError

if TYPE_CHECKING:
    from hilap.corpus import Corpus, Examples

_BAR = 20


def explain(
    model: ModelFolder,
    words: Annotated[str | None, typer.Argument(metavar="TEXT", help="The document.", show_default=False)] = None,
    numbers: Annotated[
        str | None, typer.Option("--features", help='The document as features, "1,2.5,?"; `?` where one is missing.')
    ] = None,
    source: Annotated[str | None, typer.Option("--from", help="Take the document from this corpus.")] = None,
    document: Annotated[str | None, typer.Option("--id", help="The document's id there.")] = None,
    top: Annotated[int, typer.Option(min=1, help="Show so many of the actions that were open.")] = 5,
    set_: DecodeSet = None,
    format: FormatOption = None,
    text: TextColumn = "text",
    id_column: Annotated[str, typer.Option(help="Column of the id in that corpus.")] = "id",
    feature_columns: Annotated[str | None, typer.Option(help="Columns of features there, as a,b or f*.")] = None,
    json: JsonFlag = False,
) -> None:
    """Show how a document is placed: at every step, where it stands and what it could do."""
    if sum(given is not None for given in (words, numbers, source)) != 1:
        raise SettingError("one document is needed: TEXT, or --features, or --from FILE --id ID")
    if (document is None) != (source is None):
        raise SettingError("--from and --id go together: which document of which corpus")
    classifier = open_model(model, set_)
    if source is not None:
        corpus = open_documents(source, classifier, format=format, text=text, id=id_column, features=feature_columns)
        example: Any = _found(corpus, str(document), classifier)
    else:
        example = [words] if words is not None else [_parsed(numbers or "")]
    walk = classifier.explain(example)[0]
    prediction = classifier.predict_labels(example)[0]
    if json:
        print_json({**prediction.to_json(), "walk": [step.to_json() for step in walk]})
    else:
        _print_walk(walk, prediction, classifier.taxonomy_, top)


def _parsed(numbers: str) -> list[float]:
    from hilap.corpus.values import BadLineError, cell_numbers

    cells = [cell.strip() for cell in numbers.split(",")]
    try:
        values = cell_numbers(cells, [str(k + 1) for k in range(len(cells))])
    except BadLineError as fault:
        raise SettingError(f"--features: {str(fault).replace('column', 'feature')}") from None
    return [float("nan") if value is None else value for value in values]


def _found(corpus: Corpus, document: str, classifier: Any) -> Examples:
    for block in corpus.batches():
        if document in block.ids:
            return widened(block.take([list(block.ids).index(document)]), getattr(classifier, "n_features_in_", 0))
    raise CorpusError(f"{corpus.name}: there is no document {document!r}; look at its ids")


def _print_walk(walk: Any, prediction: Any, taxonomy: Any, top: int) -> None:
    from rich.markup import escape
    from rich.table import Table

    names = dict(zip(taxonomy.labels, taxonomy.names, strict=True))
    out = console()
    for number, step in enumerate(walk, start=1):
        out.print(f"[bold]{number}. at {escape(names.get(step.at, step.at))}[/bold]")
        table = Table(box=None, show_header=False, pad_edge=False)
        options = sorted(step.options, key=lambda option: -option[1])
        for action, chance in options[:top]:
            taken = action == step.action
            bar = "█" * round(_BAR * chance)
            style = "green" if taken else "dim"
            mark = "→" if taken else " "
            table.add_row(
                f"   {mark}", f"{chance:.3f}", bar.ljust(_BAR), escape(names.get(action, action)), style=style
            )
        out.print(table)
        if len(options) > top:
            out.print(f"     {len(options) - top:,} more were open", style="dim")
    labels = ", ".join(f"{scored.name} {scored.probability:.2f}" for scored in prediction.labels) or "no label"
    out.print(f"labels: {labels}", markup=False)
