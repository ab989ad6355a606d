"""The whole bench, in order, on several processes: `python benchmarks/suite.py [--only funcat] [--jobs 2] [--test]`.

`suite.toml` says what to run: each (set, method, seed) is one process of `run.py` with one thread. What has a result is
skipped, so the suite can be ended at any moment (Ctrl-C ends its processes too) and begun again. One that fails does
not stop the others: it is told at the end, with the last lines it wrote, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

from hilap.errors import HilapError, SettingError, require  # noqa: E402
from hilap.files import read_text  # noqa: E402

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RUNNER, QUEUE, SETTINGS, RESULTS = HERE / "run.py", HERE / "suite.toml", HERE / "settings", HERE / "results"
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
LAST_BYTES = 4_000
PATIENCE = 5.0  # seconds between asking a process to end and ending it


@dataclass(frozen=True)
class Job:
    """One run of `run.py`."""

    set: str
    method: str
    seed: int

    def __str__(self) -> str:
        return f"{self.set}/{self.method}/{self.seed}"

    def result(self, folder: Path, *, test: bool) -> Path:
        """Where `run.py` writes it."""
        return folder / self.set / self.method / f"{self.seed}{'' if test else '.valid'}.json"


@dataclass(eq=False)
class Running:
    """A job and its process."""

    job: Job
    process: subprocess.Popen[bytes]
    output: IO[bytes]

    def last_lines(self, most: int = 6) -> list[str]:
        """The end of what it wrote."""
        self.output.seek(0, os.SEEK_END)
        self.output.seek(max(0, self.output.tell() - LAST_BYTES))
        return self.output.read().decode("utf-8", "replace").strip().splitlines()[-most:]


@dataclass
class Outcome:
    """What became of the queue."""

    done: list[Job] = field(default_factory=list)
    failed: dict[Job, list[str]] = field(default_factory=dict)


def read_queue(path: Path, settings: Path = SETTINGS) -> list[Job]:
    """The jobs of a queue file in its order, each once."""
    try:
        tables = tomllib.loads(read_text(path, SettingError))
    except tomllib.TOMLDecodeError as fault:
        raise SettingError(f"{path}: not valid TOML ({fault}); correct it") from None
    entries = tables.get("entries")
    if not isinstance(entries, list) or not entries:
        raise SettingError(f"{path}: there is nothing to run; write tables [[entries]] with set, methods and seeds")
    jobs = [job for number, entry in enumerate(entries, 1) for job in _jobs(entry, f"{path}: entry {number}", settings)]
    return list(dict.fromkeys(jobs))


def _jobs(entry: Any, where: str, settings: Path) -> Iterator[Job]:
    if not isinstance(entry, dict) or set(entry) != {"set", "methods", "seeds"}:
        raise SettingError(f"{where}: needs exactly set, methods and seeds, got {entry!r}")
    name, methods, seeds = entry["set"], entry["methods"], entry["seeds"]
    require(isinstance(name, str) and bool(name), f"{where}: set", "the name of a data set", name)
    require(isinstance(methods, list) and bool(methods), f"{where}: methods", "a list of names", methods)
    require(type(seeds) is int and seeds >= 1, f"{where}: seeds", "a number of at least 1", seeds)
    known = sorted(file.stem for file in settings.glob("*.toml"))
    for method in methods:
        require(method in known, f"{where}: methods", f"among {', '.join(known)} (the files of settings/)", method)
        yield from (Job(name, method, seed) for seed in range(seeds))


def chosen_jobs(jobs: Sequence[Job], only: Sequence[str]) -> list[Job]:
    """The jobs of the given sets, methods or set/method pairs; all of them where nothing is given."""
    names = [{job.set, job.method, f"{job.set}/{job.method}", str(job)} for job in jobs]
    known = set().union(*names)
    for word in only:
        allowed = f"a set or method of the queue ({', '.join(sorted({job.set for job in jobs}))}, …)"
        require(word in known, "--only", allowed, word)
    return [job for job, mine in zip(jobs, names, strict=True) if not only or mine & set(only)]


def minutes_of(job: Job, together: Container[Job], kept: Path = RESULTS) -> float | None:
    """The processor minutes of its training, as a committed result has them; None where there is none.

    What another job of the queue trains for it, and `--models` lends, is left out.
    """
    paths = [job.result(kept, test=True), *sorted((kept / job.set / job.method).glob("[0-9].json"))]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return None
    record = json.loads(read_text(path, HilapError))
    settings, training = record["settings"], record["training"]

    def lent(word: str) -> bool:
        return word in settings and replace(job, method=settings[word]) in together

    if lent("of"):
        return 0.0
    shared = training.get("members", {}).get("cpu_seconds", 0.0) if lent("members_of") else 0.0
    return float(training["cpu_seconds"] - shared) / 60


def hours_words(jobs: Sequence[Job], count: int, kept: Path = RESULTS) -> str:
    """About how long they take, so many at a time, by the times of the committed results."""
    known = [minutes for job in jobs if (minutes := minutes_of(job, {*jobs}, kept)) is not None]
    unknown = f"; of {len(jobs) - len(known)} no time is known" if len(known) < len(jobs) else ""
    return f"training takes about {sum(known) / 60 / count:.1f} hours, {count} at a time{unknown}"


@contextmanager
def bars(total: int, console: Console) -> Iterator[Progress]:
    """One bar for the queue, and a line for each running job."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        progress.add_task("suite", total=total)
        yield progress


@contextmanager
def listening() -> Iterator[list[int]]:
    """Signals to stop are noted, not raised: so none can fall between starting a process and knowing of it."""
    heard: list[int] = []
    before = {
        number: signal.signal(number, lambda got, _: heard.append(got)) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_queue(
    jobs: Sequence[Job], options: Sequence[str], *, count: int, test: bool, out: Path, heard: Sequence[int] = ()
) -> Outcome:
    """Run the jobs in order, `count` at a time, until a signal is heard; no process is left behind."""
    waiting, running, outcome = deque(jobs), dict[Running, TaskID](), Outcome()
    with bars(len(jobs), Console(stderr=True)) as progress:
        whole = progress.task_ids[0]
        try:
            while (waiting or running) and not heard:
                while waiting and len(running) < count:
                    job = waiting.popleft()
                    running[start(job, options)] = progress.add_task(f"  {escape(str(job))}", total=None)
                time.sleep(0.1)
                for one in [one for one in running if one.process.poll() is not None]:
                    progress.remove_task(running.pop(one))
                    progress.advance(whole)
                    progress.console.print(escape(settle(one, outcome, one.job.result(out, test=test))))
        finally:
            end(list(running))
    return outcome


def start(job: Job, options: Sequence[str]) -> Running:
    """The process of a job, with one thread, in a group of its own so that all it starts can be ended."""
    words = ["--set", job.set, "--method", job.method, "--seed", str(job.seed), *options]
    output = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the process runs)
    process = subprocess.Popen(
        [sys.executable, str(RUNNER), *words],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env={**os.environ, **ONE_THREAD},
        start_new_session=True,
    )
    return Running(job, process, output)


def settle(one: Running, outcome: Outcome, result: Path) -> str:
    """Note how a job ended, and say it in a line."""
    lines, code = one.last_lines(), one.process.returncode
    one.output.close()
    if code == 0 and result.is_file():
        outcome.done.append(one.job)
        return lines[-1] if lines else str(one.job)
    reason = f"exit code {code}" if code else f"it ended well but {result} is not there"
    outcome.failed[one.job] = [reason, *lines]
    return f"{one.job} failed ({reason})"


def end(running: Sequence[Running]) -> None:
    """Ask the processes to end, and end those that do not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for one in running:
            if one.process.poll() is None:
                os.killpg(one.process.pid, number)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and any(one.process.poll() is None for one in running):
            time.sleep(0.05)
    for one in running:
        one.output.close()


def arguments_of(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a set, a method, or set/method")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time, each with one thread")
    parser.add_argument("--test", action="store_true", help="look at the test split: once, at the end")
    parser.add_argument("--queue", type=Path, default=QUEUE)
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of results")
    parser.add_argument("--data", type=Path, help="the folder with the data sets, for run.py")
    parser.add_argument("--models", type=Path, help="where run.py keeps trained models, and takes them from")
    parser.add_argument("--list", action="store_true", help="say what would run, and run nothing")
    return parser.parse_args(given)


def options_of(chosen: argparse.Namespace) -> list[str]:
    """What every run is told."""
    options = ["--out", str(chosen.out)] + (["--test"] if chosen.test else [])
    for name in ("data", "models"):
        if getattr(chosen, name) is not None:
            options += [f"--{name}", str(getattr(chosen, name))]
    return options


def tell(outcome: Outcome, left: int) -> None:
    for job, lines in outcome.failed.items():
        print(f"{job} failed:", *(f"    {line}" for line in lines), sep="\n", file=sys.stderr)
    ending = f", {left} left; the same command goes on" if left else ""
    print(f"{len(outcome.done)} done, {len(outcome.failed)} failed{ending}", file=sys.stderr)


def main(given: Sequence[str] | None = None) -> int:
    chosen = arguments_of(given)
    try:
        require(chosen.jobs >= 1, "--jobs", "at least 1", chosen.jobs)
        jobs = chosen_jobs(read_queue(chosen.queue), chosen.only)
    except HilapError as fault:
        print(fault, file=sys.stderr)
        return 2
    due = [job for job in jobs if not job.result(chosen.out, test=chosen.test).exists()]
    print(f"{len(due)} to run, {len(jobs) - len(due)} skipped: they have results", file=sys.stderr)
    if chosen.list:
        print(*due, sep="\n")
        print(hours_words(due, chosen.jobs), file=sys.stderr)
        return 0
    with listening() as heard:
        outcome = run_queue(due, options_of(chosen), count=chosen.jobs, test=chosen.test, out=chosen.out, heard=heard)
    tell(outcome, len(due) - len(outcome.done) - len(outcome.failed))
    return 128 + heard[0] if heard else int(bool(outcome.failed))


if __name__ == "__main__":
    raise SystemExit(main())
