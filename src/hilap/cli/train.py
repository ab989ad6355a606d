"""`hilap train`: learn from a corpus, with a checkpoint after every epoch."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilap.baselines import METHODS
from hilap.cli.options import (
    BadLines,
    BadLinesPolicy,
    CorpusFile,
    FeatureColumns,
    FormatOption,
    IdColumn,
    JsonFlag,
    LabelsColumn,
    LabelSeparator,
    PathSeparator,
    TaxonomyFormat,
    TaxonomyOption,
    TextColumn,
    Unknown,
    UnknownPolicy,
    open_taxonomy,
    widened,
)
from hilap.cli.parameters import Config, Set, gather
from hilap.cli.printing import print_json, print_rows
from hilap.errors import ModelError, SettingError

if TYPE_CHECKING:
    from hilap.training.callbacks import Callback

INTERRUPTED = 130
HILAP = "hilap"
PRESETS = {
    HILAP: ("paper", "original", "residual", "recommended"),
    "flat": ("default", "paper", "deep"),
    "hmcn": ("default", "hilap"),
    "c-hmcnn": ("default", "paper-funcat", "paper-go"),
}
"""Method -> its presets, the first where none is asked for. Written down: asking the classes for help imports torch."""
_METHODS_HELP = f"{HILAP}, or a system to compare with: {', '.join(METHODS)}."
_PRESETS_HELP = "; ".join(f"{method}: {', '.join(names)}" for method, names in PRESETS.items())


def train(
    corpus: CorpusFile,
    out: Annotated[Path, typer.Option("--out", help="The folder for the model.", show_default=False)],
    taxonomy: TaxonomyOption = None,
    taxonomy_format: TaxonomyFormat = None,
    valid: Annotated[
        str | None,
        typer.Option(help="The validation documents; without them a share of the corpus is held out."),
    ] = None,
    method: Annotated[str, typer.Option("--method", help=_METHODS_HELP)] = HILAP,
    encoder: Annotated[
        str | None,
        typer.Option(help="mlp, tfidf, textcnn, …: see docs/encoders.md; default: what the documents have."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help=f"Settings that go together; without it, the first. {_PRESETS_HELP}."),
    ] = None,
    config: Config = None,
    set_: Set = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same model; 0 if none is given.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a run into this folder was broken off.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a model or a broken run in this folder.")] = False,
    progress: Annotated[bool, typer.Option(help="Show on standard error how far training is.")] = True,
    tensorboard: Annotated[
        Path | None,
        typer.Option(help="A folder for losses and scores as TensorBoard shows them.", show_default=False),
    ] = None,
    format: FormatOption = None,
    text: TextColumn = "text",
    labels: LabelsColumn = "labels",
    id: IdColumn = "id",
    features: FeatureColumns = None,
    label_separator: LabelSeparator = "|",
    path_separator: PathSeparator = None,
    unknown: UnknownPolicy = Unknown.error,
    bad_lines: BadLinesPolicy = BadLines.error,
    memory: Annotated[
        str | None,
        typer.Option(help="What the documents may take in memory, such as 500MB; what is more is used from disk."),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            help="With --memory: a folder to keep documents in from run to run; "
            "default: one beside the model, removed when that is written.",
            show_default=False,
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Learn from a corpus and write a model. Ctrl-C is safe: --resume goes on after the last finished epoch."""
    from hilap.corpus import read
    from hilap.corpus.stored import clear
    from hilap.saving import BROKEN, CHECKPOINT

    if resume and force:
        raise SettingError("--resume goes on and --force starts anew; take one")
    kind = _kind(method, resume=resume)
    options = {"encoder": encoder, "preset": preset, "seed": seed}
    classifier = kind(**gather(kind, config, options, set_)).check()
    room = _working_folder(out, memory, work, method)
    board = _board(out, tensorboard, method)
    _make_room(out, resume=resume, force=force)
    columns: dict[str, Any] = {
        "format": format,
        "text": [column for column in text.split(",") if column] or None,
        "labels": labels,
        "id": id,
        "features": features.split(",") if features else None,
        "label_separator": label_separator,
        "path_separator": path_separator,
        "bad_lines": bad_lines.value,
    }
    training = read(corpus, open_taxonomy(taxonomy, taxonomy_format), unknown=unknown.value, **columns)
    documents = training.load(memory, room)
    _note_skipped(training)
    held_out = None
    if valid is not None:  # what training has not seen cannot be learned: such labels are dropped, not added
        columns["unknown"] = "error" if unknown is Unknown.error else "drop"
        validation = read(valid, documents.taxonomy, **columns)
        held_out = widened(validation.load(memory, room), _width(documents))
        _note_skipped(validation)
    _make_folder(out)
    try:
        if method == HILAP:
            listeners = [*_listeners(out, progress), *board]
            classifier.fit(documents, valid=held_out, checkpoint=out / CHECKPOINT, resume=resume, callbacks=listeners)
        else:
            classifier.set_params(progress=progress and sys.stderr.isatty())
            parts = {"checkpoint": out / CHECKPOINT, "resume": resume} if kind.resumable else {}
            classifier.fit(documents, valid=held_out, **parts)
            classifier.set_params(progress=False)
        classifier.save(out)
    except KeyboardInterrupt:
        _say_how_to_resume(out)
        raise typer.Exit(INTERRUPTED) from None
    for name in BROKEN:
        (out / name).unlink(missing_ok=True)
    if room is not None and work is None:
        clear(room)
    _print_result(out, classifier, json)


def _kind(method: str, *, resume: bool) -> Any:
    """The class behind a method's name."""
    if method == HILAP:
        from hilap.classifier import HiLAPClassifier

        return HiLAPClassifier
    from hilap.baselines import method as named

    kind = named(method)
    if resume and not kind.resumable:
        raise SettingError(f"--resume: {method} is solved in one go, there is nothing to resume; leave it out")
    return kind


def _working_folder(out: Path, memory: str | None, work: Path | None, method: str) -> Path | None:
    """Where documents that are over the memory limit are kept; None where there is no limit."""
    from hilap.corpus.stored import bytes_of, clear

    if memory is None:
        if work is not None:
            raise SettingError("--work is where documents over a memory limit are kept; give --memory too")
        return None
    if method != HILAP:
        raise SettingError(f"--memory: {method} learns from documents in memory; leave it out")
    bytes_of(memory, "--memory")
    if work is not None:
        return work
    folder = out.absolute().parent / f".{out.name}.work"
    clear(folder, drafts=True)
    return folder


def _board(out: Path, folder: Path | None, method: str) -> list[Callback]:
    """What writes for TensorBoard, if it is asked for; made early, so that a missing package is said at once."""
    if folder is None:
        return []
    if method != HILAP:
        raise SettingError(f"--tensorboard: {method} reports nothing while it learns; leave it out")
    place = Path(os.path.realpath(folder))
    if Path(os.path.realpath(out)) in (place, *place.parents):
        raise SettingError(f"--tensorboard: {folder} is in the model's folder, which holds nothing else; give another")
    from hilap.training.callbacks import TensorBoard

    return [TensorBoard(folder)]


def _make_room(out: Path, *, resume: bool, force: bool) -> None:
    """See that the model can be written there when it is trained, and clear away what a killed run has left."""
    from hilap.saving import BROKEN, CHECKPOINT, LOG
    from hilap.storage import put_back
    from hilap.storage.folder import SETTINGS

    if out.exists() and not out.is_dir():
        raise ModelError(f"{out}: this is a file; give the name of a folder with --out")
    if out.absolute().parent.is_dir():
        put_back(out.absolute())
        for draft in out.absolute().parent.glob(f".{out.name}.*.part"):
            shutil.rmtree(draft, ignore_errors=True)
    if not out.exists():
        return
    for name in (*BROKEN, LOG):
        for draft in out.glob(f".{name}.*.part"):
            draft.unlink()
    present = {path.name for path in out.iterdir()}
    is_model, broken = SETTINGS in present, CHECKPOINT in present
    strangers = present - {*BROKEN, LOG}
    if not is_model and strangers:
        stranger = sorted(strangers)[0]
        raise ModelError(f"{out}: this folder is no hilap model (it holds {stranger!r}); give a new folder with --out")
    if broken and not resume and not force:
        raise ModelError(
            f"{out}: a run into this folder was broken off; go on with --resume, or start anew with --force"
        )
    if is_model and not broken and not force:
        raise ModelError(f"{out}: there is a trained model already; replace it with --force, or give another --out")
    if force or not broken:  # a second checkpoint without the first is of a run that has ended, or was removed
        for name in BROKEN:
            (out / name).unlink(missing_ok=True)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise ModelError(f"{out}: cannot be made a folder ({fault.strerror}); choose another --out") from None


def _listeners(out: Path, progress: bool) -> list[Callback]:
    from hilap.saving import LOG
    from hilap.training.callbacks import EpochLines, JsonLog, ProgressBar

    log: list[Callback] = [JsonLog(out / LOG)]
    if not progress:
        return log
    return [*log, ProgressBar() if sys.stderr.isatty() else EpochLines()]


def _width(documents: Any) -> int:
    return 0 if documents.features is None else int(documents.features.shape[1])


def _note_skipped(corpus: Any) -> None:
    report = corpus.report
    if report.skipped:
        typer.echo(f"{corpus.name}: {report.skipped:,} bad lines were skipped", err=True)
    if report.dropped_labels:
        typer.echo(f"{corpus.name}: {sum(report.dropped_labels.values()):,} unknown labels were dropped", err=True)


def _say_how_to_resume(out: Path) -> None:
    from hilap.saving import CHECKPOINT

    if (out / CHECKPOINT).exists():
        words = [word for word in sys.argv[1:] if word not in ("--force", "--resume")]
        typer.echo(f"\ninterrupted; go on with: {shlex.join(['hilap', *words, '--resume'])}", err=True)
    else:
        typer.echo("\ninterrupted before the first epoch ended; nothing is kept", err=True)


def _print_result(out: Path, classifier: Any, json: bool) -> None:
    from hilap.card import phases
    from hilap.metrics.words import name_of

    found = phases(classifier.history_)
    if json:
        print_json(
            {
                "model": str(out),
                "documents": classifier.n_documents_,
                "phases": found,
                "validation": classifier.validation_.to_json(),
            }
        )
        return
    scores = classifier.validation_.scores
    rows: list[tuple[str, Any]] = [("training documents", classifier.n_documents_)]
    rows += [(phase["name"], f"{phase['epochs']} epochs, best {phase['best_epoch']}") for phase in found]
    shown = ("micro_f1", "macro_f1", "example_f1", "inconsistent_share")
    rows += [(f"{name_of(name)}, validation", f"{100 * scores[name]:.2f} %") for name in shown]
    print_rows(str(out), rows)
