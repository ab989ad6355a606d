"""What may listen to training: a progress bar, a log of JSON lines, TensorBoard."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from hilap.errors import HilapError, need

SHOWN = ("example_f1", "micro_f1", "macro_f1")
WIDE = 120
"""From this many columns on, a progress bar has room for all scores."""


_MEMBER = re.compile(r" \d+/\d+")  # which of several flat models a phase is of


def shown(record: dict[str, Any]) -> str:
    """The scores of an epoch in a few words, in percent."""
    return " ".join(f"{name} {100 * record[name]:.2f}" for name in SHOWN if name in record)


def _short(number: float) -> str:
    """A loss of any size in at most nine characters."""
    if math.isnan(number):
        return "-"
    return f"{number:.4f}" if abs(number) < 100 else f"{number:.2e}"


class Callback:
    """Empty hooks; override what is of interest."""

    def on_resume(self, history: Sequence[dict[str, Any]]) -> None:
        """A run that was broken off goes on; this is what happened before."""

    def on_phase(self, name: str, epochs: int, documents: int, done: int) -> None:
        """A phase begins, or goes on after so many epochs."""

    def on_batch(self, documents: int, loss: float) -> None:
        """A batch was learned from."""

    def on_epoch(self, record: dict[str, Any]) -> None:
        """An epoch has ended and was judged; epoch 0 is the start of a phase whose start may be the best."""

    def on_end(self, history: Sequence[dict[str, Any]]) -> None:
        """Training has ended."""

    def close(self) -> None:
        """Training has ended or failed: let go of everything."""


class ProgressBar(Callback):
    """A bar for each phase: documents done, documents a second, time left, the loss and the latest scores.

    A line fits into 80 columns, with example F1 as the only score; a terminal of 120 columns shows all scores. The bar
    itself takes what the figures leave.

    Parameters
    ----------
    console
        A console of rich; default: standard error.
    """

    def __init__(self, console: Any = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.table import Column

        self._bars = Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(bar_width=None),
            TextColumn("epoch {task.fields[epoch]}/{task.fields[epochs]}"),
            TextColumn("{task.fields[speed]} docs/s"),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            TextColumn("loss {task.fields[loss]} {task.fields[scores]}"),
            console=console or Console(stderr=True),
            expand=True,
        )
        self._task: Any = None
        self._documents = 1
        self._bars.start()

    def on_phase(self, name: str, epochs: int, documents: int, done: int) -> None:
        """Start a bar."""
        self._finish()
        self._documents = documents
        total = epochs * documents
        self._task = self._bars.add_task(
            name,
            total=total,
            completed=done * documents,
            epoch=done,
            epochs=epochs,
            speed="-",
            loss="-",
            scores="",
        )

    def on_batch(self, documents: int, loss: float) -> None:
        """Move it on."""
        task = self._bars.tasks[self._task]
        speed = "-" if task.speed is None else f"{task.speed:,.0f}"
        self._bars.update(self._task, advance=documents, loss=_short(loss), speed=speed)

    def on_epoch(self, record: dict[str, Any]) -> None:
        """Show the scores."""
        done = record["epoch"]
        self._bars.update(self._task, completed=done * self._documents, epoch=done, scores=self._scores(record))

    def on_end(self, history: Sequence[dict[str, Any]]) -> None:
        """No time is left."""
        self._finish()

    def close(self) -> None:
        """Leave the bars as they are."""
        self._bars.stop()

    def _scores(self, record: dict[str, Any]) -> str:
        if self._bars.console.width >= WIDE or SHOWN[0] not in record:
            return shown(record)
        return f"F1 {100 * record[SHOWN[0]]:.2f}"

    def _finish(self) -> None:
        """A phase may end before its last epoch, where it gets no better: then nothing is left of it."""
        if self._task is not None:
            self._bars.update(self._task, total=self._bars.tasks[self._task].completed)


class EpochLines(Callback):
    """One line of text an epoch, for where no bar can move: logs and pipes.

    Parameters
    ----------
    write
        Called with each line; default: standard error.
    """

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        self._write = write or (lambda line: print(line, file=sys.stderr, flush=True))  # noqa: T201 - that is its job
        self._epochs = 0

    def on_phase(self, name: str, epochs: int, documents: int, done: int) -> None:
        """Note how many epochs there will be."""
        self._epochs = epochs

    def on_epoch(self, record: dict[str, Any]) -> None:
        """Write a line."""
        loss = f" loss {record['loss']:.4f}" if "loss" in record else ""
        self._write(f"{record['phase']} epoch {record['epoch']}/{self._epochs}{loss} {shown(record)}")


class JsonLog(Callback):
    """One line of JSON an epoch. A new run writes a new file; one that goes on first writes what happened before.

    Parameters
    ----------
    path
        The file. It is opened when there is something to write.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._out: IO[str] | None = None

    def on_resume(self, history: Sequence[dict[str, Any]]) -> None:
        """Write the former epochs: the old file may lack the last of them."""
        for record in history:
            self.on_epoch(record)

    def on_epoch(self, record: dict[str, Any]) -> None:
        """Write a line, at once."""
        try:
            if self._out is None:
                self._out = open(self._path, "w", encoding="utf-8")  # noqa: SIM115 - it is closed in `close`
            self._out.write(json.dumps(record) + "\n")
            self._out.flush()
        except OSError as fault:
            raise HilapError(f"{self._path}: the log cannot be written ({fault.strerror})") from None

    def close(self) -> None:
        """Close the file."""
        if self._out is not None:
            self._out.close()


class TensorBoard(Callback):
    """Scores and losses as TensorBoard shows them: one point an epoch in each curve, such as `reinforced/micro_f1`.

    Epochs are counted through all phases. As with `JsonLog`, a new run into the same folder takes the place of the old
    one, and a run that goes on first writes what happened before.

    Parameters
    ----------
    folder
        Where event files are written; `tensorboard --logdir FOLDER` shows them. It is made when there is something to
        write.
    """

    def __init__(self, folder: str | Path) -> None:
        need("tensorboard", "tensorboard")
        self._make: Any = need("torch.utils.tensorboard", "tensorboard").SummaryWriter
        self._folder = Path(folder)
        self._writer: Any = None
        self._epoch = 0
        if os.path.exists(folder) and not os.path.isdir(folder):
            raise HilapError(f"{folder}: this is a file; TensorBoard's figures need a folder, give the name of one")

    def on_resume(self, history: Sequence[dict[str, Any]]) -> None:
        """Write the former epochs: the run may have been killed before its figures were written."""
        for record in history:
            self.on_epoch(record)

    def on_epoch(self, record: dict[str, Any]) -> None:
        """Add a point to every curve, at once."""
        try:
            if self._writer is None:  # purging hides what earlier runs have written to this folder
                self._writer = self._make(str(self._folder), purge_step=0)
            self._epoch += 1
            for name, value in record.items():
                if isinstance(value, (int, float)) and name != "epoch":
                    self._writer.add_scalar(f"{_MEMBER.sub('', record['phase'])}/{name}", value, self._epoch)
            self._writer.flush()
        except OSError as fault:
            raise self._failed(fault) from None

    def close(self) -> None:
        """Write what is left."""
        try:
            if self._writer is not None:
                self._writer.close()
        except OSError as fault:  # of the thread that writes
            raise self._failed(fault) from None

    def _failed(self, fault: OSError) -> HilapError:
        return HilapError(f"{self._folder}: TensorBoard's figures cannot be written ({fault.strerror})")
