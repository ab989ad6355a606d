"""`hilap explain`: the walk of one document, step by step, and the words that spoke for its labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilap.cli.options import FeatureColumns, FormatOption, IdColumn, JsonFlag, TextColumn, widened
from hilap.cli.predict import DecodeSet, ModelFolder, open_documents, open_model
from hilap.cli.printing import console, print_json
from hilap.errors import CorpusError, SettingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from hilap.attribution import WordScore
    from hilap.corpus import Corpus, Examples

_BAR = 20
_WORD_BAR = 10
_ONE = "one document is needed: TEXT, or --values, or --from FILE --document ID"


def explain(
    model: ModelFolder,
    document_text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The document.", show_default=False)
    ] = None,
    numbers: Annotated[
        str | None, typer.Option("--values", help='The features of the document, "1,2.5,?"; `?` where one is missing.')
    ] = None,
    source: Annotated[str | None, typer.Option("--from", help="Take the document from this corpus.")] = None,
    document: Annotated[str | None, typer.Option("--document", help="The document's id there.")] = None,
    top: Annotated[
        int, typer.Option(min=1, help="Show so many of the open actions, and of the words for and against a label.")
    ] = 5,
    words: Annotated[
        bool, typer.Option(help="Say which words spoke for each label: what its logit loses without them.")
    ] = True,
    set_: DecodeSet = None,
    format: FormatOption = None,
    text: TextColumn = "text",
    id: IdColumn = "id",
    features: FeatureColumns = None,
    json: JsonFlag = False,
) -> None:
    """Show how a document is placed: where it stands at every step, what it could do, and which words spoke for it."""
    direct = document_text is not None or numbers is not None
    if direct == (source is not None):
        raise SettingError(_ONE)
    if (document is None) != (source is None):
        raise SettingError("--from and --document go together: which document of which corpus")
    if features is not None and source is None:
        raise SettingError("--features names columns of a corpus, so it needs --from; numbers go to --values")
    classifier = open_model(model, set_)
    if source is not None:
        corpus = open_documents(source, classifier, format=format, text=text, id=id, features=features)
        example: Any = _found(corpus, str(document), classifier)
    else:
        example = _given(classifier, document_text, numbers)
    _report(classifier, example, top=top, words=words, json=json)


def _report(classifier: Any, example: Examples, *, top: int, words: bool, json: bool) -> None:
    prediction = classifier.predict_labels(example)[0]
    spoken = _words(classifier, example, top) if words else None
    walk = classifier.explain(example)[0] if _walks(classifier) or spoken is None else ()
    if json:
        value = {**prediction.to_json(), "walk": [step.to_json() for step in walk]}
        if spoken is not None:
            value["words"] = {label: [scored.to_json() for scored in scores] for label, scores in spoken.items()}
        print_json(value)
        return
    _print_walk(walk, classifier.taxonomy_, top)
    labels = ", ".join(f"{scored.name} {scored.probability:.2f}" for scored in prediction.labels) or "no label"
    console().print(f"labels: {labels}", markup=False)
    if spoken:
        _print_words(prediction, spoken)


def _walks(classifier: Any) -> bool:
    settings = getattr(classifier, "train_settings_", None)
    return settings is not None and settings.variant == "hilap"


def _reads(classifier: Any) -> tuple[str, ...]:
    network = getattr(classifier, "network_", None)
    reads: tuple[str, ...] = ("texts",) if network is None else network.encoder.reads
    return reads


def _words(classifier: Any, example: Examples, top: int) -> Any:
    """The words that count most for and against each label; None where the classifier or the document has no text."""
    if example.texts is None or "texts" not in _reads(classifier):
        return None
    from hilap.attribution import words

    row = example[0].features if "features" in _reads(classifier) else None
    found = words(classifier, example.texts[0], features=row)
    return {label: _telling(scores, top) for label, scores in found.items()}


def _telling(scores: Sequence[WordScore], top: int) -> list[WordScore]:
    """The words for a label and then those against it, the strongest first; what rounds to 0.00 says nothing."""
    speak = [scored for scored in scores if round(scored.score, 2) > 0]
    contradict = [scored for scored in reversed(scores) if round(scored.score, 2) < 0]
    return speak[:top] + contradict[:top]


def _given(classifier: Any, text: str | None, numbers: str | None) -> Examples:
    """The document of the command line; both kinds only for a classifier that reads both."""
    import numpy as np

    from hilap.corpus import Examples

    if text is not None and numbers is not None and len(_reads(classifier)) < 2:
        raise SettingError(f"{_ONE}; this model reads {_reads(classifier)[0]} only")
    row = None if numbers is None else np.array([_parsed(numbers)], dtype=np.float32)
    return Examples.of(classifier.taxonomy_, [[]], texts=None if text is None else [text], features=row)


def _parsed(numbers: str) -> list[float]:
    from hilap.corpus.values import BadLineError, cell_numbers

    cells = [cell.strip() for cell in numbers.split(",")]
    try:
        values = cell_numbers(cells, [str(k + 1) for k in range(len(cells))])
    except BadLineError as fault:
        raise SettingError(f"--values: {str(fault).replace('column', 'feature')}") from None
    return [float("nan") if value is None else value for value in values]


def _found(corpus: Corpus, document: str, classifier: Any) -> Examples:
    for block in corpus.batches():
        if document in block.ids:
            return widened(block.take([list(block.ids).index(document)]), getattr(classifier, "n_features_in_", 0))
    raise CorpusError(f"{corpus.name}: there is no document {document!r}; look at its ids")


def _print_walk(walk: Any, taxonomy: Any, top: int) -> None:
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


def _print_words(prediction: Any, spoken: Any) -> None:
    """A line and a bar for each word of each label: what its logit would lose, or gain, without it."""
    from rich.text import Text

    out = console()
    largest = max((abs(scored.score) for scores in spoken.values() for scored in scores), default=0.0) or 1.0
    for placed in prediction.labels:
        speak = [scored for scored in spoken[placed.label] if scored.score > 0]
        contradict = [scored for scored in spoken[placed.label] if scored.score < 0]
        out.print(Text(f"words for {placed.name}", style="bold"))
        out.print(_bars(speak, largest, "green") if speak else "    no word")
        if contradict:
            out.print(Text(f"words against {placed.name}", style="bold"))
            out.print(_bars(contradict, largest, "red"))


def _bars(scores: Sequence[WordScore], largest: float, style: str) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    for scored in scores:
        bar = "█" * round(_WORD_BAR * abs(scored.score) / largest)
        table.add_row(Text(f"    {scored.score:+.2f}"), Text(bar.ljust(_WORD_BAR), style), Text(scored.word))
    return table
