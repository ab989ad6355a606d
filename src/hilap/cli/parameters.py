"""Settings of a classifier from the command line: a TOML file, options, and `--set KEY=VALUE`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from hilap.cli.options import parse_pairs
from hilap.errors import SettingError, did_you_mean

Config = Annotated[
    Path | None, typer.Option("--config", help="A TOML file with settings; the options here win over it.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting, e.g. gamma=1.0 or encoder_options.hidden=[500]; the value may be JSON. Wins over all others.",
    ),
]
NESTED = ("encoder_options", "row_options", "wide_options", "wide_vector_options", "reward")  # settings that are tables
_ELSEWHERE = {"taxonomy": "--taxonomy", "progress": "--progress"}


def gather(
    classifier: type, config: Path | None, options: Mapping[str, Any], pairs: Sequence[str] | None
) -> dict[str, Any]:
    """The constructor's parameters, from the weakest to the strongest source.

    Parameters
    ----------
    classifier
        Whose parameters.
    config
        A TOML file.
    options
        Settings that have options of their own; None where one was not given.
    pairs
        `KEY=VALUE`, where a key may be `encoder_options.hidden`.
    """
    known = [name for name in inspect.signature(classifier).parameters if name not in _ELSEWHERE]
    found = {} if config is None else _read(config)
    check_names(found, known, str(config))
    for name in NESTED:
        if name != "reward" and not isinstance(found.get(name, {}), Mapping):
            raise SettingError(f"{config}: {name} must be a table, got {found[name]!r}")
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in known:
            raise SettingError(f"--{name}: this method has no such setting; leave it out")
    found |= given
    for key, value in parse_pairs(pairs, "--set").items():
        name, dot, inner = key.partition(".")
        check_names([name], known, "--set")
        if not dot:
            found[name] = value
        elif name not in NESTED or not inner:
            tables = f"{', '.join(NESTED[:-1])} and {NESTED[-1]}"
            raise SettingError(f"--set {key}: only {tables} hold settings of their own")
        else:
            before = found.get(name)
            found[name] = {**(before if isinstance(before, Mapping) else {}), inner: value}
    return found


def check_names(names: Iterable[str], known: Sequence[str], where: str) -> None:
    """Require that settings are known."""
    for name in names:
        if name in _ELSEWHERE:
            raise SettingError(f"{where}: {name} is given with {_ELSEWHERE[name]}")
        if name not in known:
            near = did_you_mean(name, known)
            hint = f"did you mean {near!r}?" if near else f"there are: {', '.join(known)}"
            raise SettingError(f"{where}: there is no setting {name!r}; {hint}")


def _read(path: Path) -> dict[str, Any]:
    from hilap.files import read_text

    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib  # type: ignore[import-not-found,no-redef]
    try:
        return tomllib.loads(read_text(path, SettingError))
    except (tomllib.TOMLDecodeError, RecursionError) as fault:
        raise SettingError(f"{path}: this is no valid TOML ({fault}); write lines such as gamma = 1.0") from None


__all__ = ["Config", "Set", "check_names", "gather"]
