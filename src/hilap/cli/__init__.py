"""The command line: `hilap`. One file per verb; nothing heavy is imported before a command runs."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TextIO

import typer

from hilap.cli.corpus import app as corpus
from hilap.cli.evaluate import evaluate
from hilap.cli.explain import explain
from hilap.cli.importing import with_imports
from hilap.cli.inspect import inspect
from hilap.cli.predict import predict
from hilap.cli.taxonomy import app as taxonomy
from hilap.cli.train import train
from hilap.errors import HilapError
from hilap.version import __version__

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="hilap",
    help="Put documents at the right places of a taxonomy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(taxonomy, name="taxonomy")
app.add_typer(corpus, name="corpus")
app.command("train")(with_imports(train))
app.command("predict")(with_imports(predict))
app.command("explain")(with_imports(explain))
app.command("inspect")(with_imports(inspect))
app.command("evaluate")(evaluate)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"hilap {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    pass


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """One sentence, without the place in our source that a programmer would want."""
    typer.echo(f"warning: {message}", err=True)


def main() -> None:
    """Run the command line. Bad input is one sentence on standard error and exit code 2."""
    warnings.showwarning = _show_warning
    try:
        app()
    except HilapError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(EXIT_BAD_INPUT)
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:  # `hilap … | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
