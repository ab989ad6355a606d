"""`--import MODULE`: encoders of a user's own on the command line.

Only what the command line itself names is imported, never anything that a model names or brings.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Annotated, Any

import typer

from hilap.errors import HilapError, SettingError

Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        help="A module of your own, by name or as a .py file, that puts its encoder into hilap.encoders.ENCODERS.",
        show_default=False,
    ),
]


def with_imports(command: Callable[..., None]) -> Callable[..., None]:
    """The same command with the option `--import`: such modules are imported before it does anything."""

    @wraps(command)
    def run(*, import_: list[str] | None, **options: Any) -> None:
        for module in import_ or ():
            import_own(module)
        command(**options)

    # typer reads options off a function's signature and its annotations.
    plain = inspect.signature(command, eval_str=True)
    more = inspect.Parameter("import_", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Imports)
    run.__signature__ = plain.replace(parameters=[*plain.parameters.values(), more])  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, "import_": Imports}
    return run


def import_own(module: str) -> None:
    """Import a module by its name, installed or in the current folder, or a file that ends with .py."""
    try:
        if module.endswith(".py"):
            _import_file(Path(module))
        else:
            _find_in(Path.cwd())
            import_module(module)
    except HilapError:
        raise
    except Exception as fault:  # the user's own code
        missing = fault.name if isinstance(fault, ModuleNotFoundError) else None
        if missing and f"{module}.".startswith(f"{missing}."):
            raise SettingError(
                f"--import: there is no module {module!r}, neither installed nor in this folder; check the name, or "
                "give its file, such as code/own_encoder.py"
            ) from None
        reason = (str(fault).splitlines() or [""])[0]
        raise SettingError(
            f"--import: {module!r} cannot be imported ({type(fault).__name__}: {reason:.200})"
        ) from fault


def _import_file(path: Path) -> None:
    if not path.is_file():
        raise SettingError(f"--import: there is no file {str(path)!r}; check the path")
    _find_in(path.resolve().parent)
    name = path.stem if path.stem not in sys.modules else f"{path.stem} of --import"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SettingError(f"--import: {path} cannot be imported; give a Python file")
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)


def _find_in(folder: Path) -> None:
    """Let modules in a folder be found. Last: a file there must not take the place of a module that hilap needs."""
    if os.fspath(folder) not in sys.path:
        sys.path.append(os.fspath(folder))
