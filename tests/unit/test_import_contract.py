"""The import contract names every module, and baselines keep it: what they may use is a list, all else is forbidden.

`lint-imports` checks the same, but only where the extra `dev` is installed; this runs with the other tests.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

import hilap

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "hilap"
MAY_USE = {  # docs/decisions/0006-baselines.md says why, of those that the issue does not name
    "taxonomy", "corpus", "encoders", "metrics", "storage",
    "adam", "card", "compiling", "consistent", "descent", "errors", "files", "inputs", "levels", "moments", "outputs",
    "prediction", "products", "version",
}  # fmt: skip


def contract(kind: str = "forbidden") -> dict[str, list[str]]:
    """The contract of the baselines, or of the layers, as `pyproject.toml` has it."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (found,) = (one for one in contracts["contracts"] if one["type"] == kind)
    return found


@cache
def modules() -> dict[str, Path]:
    """Every module of hilap by its dotted name; a package by the name of its folder."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = ("hilap", *path.relative_to(SOURCE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(source: str, package: str) -> set[str]:
    """The modules of hilap that a source names anywhere, in functions too: by `import`, or as a text with their name.

    Texts count because `import_module` takes them. A name that is no module is asked of hilap's front door (`from hilap
    import HiLAPClassifier`), else it is something in the module that it is taken from. With a module come the packages
    that it lies in, which Python runs first; all but `hilap` itself, which imports nothing by itself.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            home = ".".join([*above, *filter(None, [node.module])])
            names |= {home} | {f"{home}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
    doors = {f"hilap.{name}": home for name, (home, _) in hilap._HOMES.items()}
    named = {doors.get(name, name) for name in names} & {*modules()}
    return {".".join(name.split(".")[:n]) for name in named for n in range(2, name.count(".") + 2)}


@cache
def imports_of(module: str) -> frozenset[str]:
    path = modules()[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return frozenset(imported(path.read_text(encoding="utf-8"), package))


def way_to_forbidden(starts: dict[str, set[str]]) -> list[str] | None:
    """The shortest chain of imports that ends at a module that is forbidden to baselines; None if there is none.

    Parameters
    ----------
    starts
        Name -> what it imports.
    """
    rules = contract()
    forbidden = {*rules["forbidden_modules"]}
    ignored = {tuple(pair.split(" -> ")) for pair in rules["ignore_imports"]}
    ways = [[start, other] for start in sorted(starts) for other in sorted(starts[start])]
    seen = {way[-1] for way in ways}
    for way in ways:  # it grows on the way
        if ".".join(way[-1].split(".")[:2]) in forbidden:
            return way
        after = {other for other in imports_of(way[-1]) if (way[-1], other) not in ignored} - seen
        seen |= after
        ways += [[*way, other] for other in sorted(after)]
    return None


def test_contributors_are_told_the_layers_of_the_contract():
    (told,) = re.findall(r"^```\n(__main__.*?)^```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.DOTALL | re.M)
    layers = [layer.replace("(", "").replace(")", "") for layer in contract("layers")["layers"]]  # ( ) may be missing
    assert told.splitlines() == layers


def test_contributors_are_told_every_folder_of_tests():
    told = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Tests")[2].partition("\n## ")[0]
    assert {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")} == {*re.findall(r"`(\w+)/`", told)}


def test_a_new_module_is_forbidden_to_baselines_until_it_is_allowed():
    forbidden = {name.removeprefix("hilap.") for name in contract()["forbidden_modules"]}
    there = {path.stem for path in SOURCE.glob("*.py")}
    there |= {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert there - {"__init__", "__main__", "baselines"} == (forbidden | MAY_USE) & there
    assert not forbidden & MAY_USE
    assert forbidden <= there


def test_no_baseline_imports_what_is_forbidden_to_it_nor_does_what_it_imports():
    baselines = {name: {*imports_of(name)} for name in modules() if name.startswith("hilap.baselines")}
    assert len(baselines) > 20
    assert "hilap.encoders.base" in baselines["hilap.baselines.hmcn"]
    assert way_to_forbidden(baselines) is None


@pytest.mark.parametrize(
    ("source", "at"),
    [
        ("import hilap.policy", "hilap.policy"),
        ("import numpy, hilap.policy as p", "hilap.policy"),
        ("from hilap import policy", "hilap.policy"),
        ("from hilap.policy import Policy", "hilap.policy"),
        ("from hilap.training.callbacks import Callback", "hilap.training"),
        ("from .. import policy", "hilap.policy"),
        ("from ..network import Network", "hilap.network"),
        ("from hilap import HiLAPClassifier", "hilap.classifier"),
        ("def fit(self):\n    from hilap.walker import Walker\n    return Walker()", "hilap.walker"),
        ("class Net:\n    def fit(self):\n        import hilap.wide", "hilap.wide"),
        ("if TYPE_CHECKING:\n    from hilap.settings import Settings", "hilap.settings"),
        ("import_module('hilap.rewards')", "hilap.rewards"),
    ],
)
def test_a_baseline_that_did_would_be_found(source, at):
    assert way_to_forbidden({"mine": imported(source, "hilap.baselines")}) == ["mine", at]


def test_a_way_through_an_allowed_module_would_be_found(monkeypatch):
    started = {"mine": imported("from hilap.corpus import Examples", "hilap.baselines")}
    assert way_to_forbidden(started) is None
    own = imports_of
    monkeypatch.setitem(
        globals(), "imports_of", lambda module: {"hilap.policy"} if module == "hilap.files" else own(module)
    )
    found = way_to_forbidden(started)
    assert found[0] == "mine"
    assert found[-2:] == ["hilap.files", "hilap.policy"]


@pytest.mark.parametrize(
    "source",
    [
        "from hilap.taxonomy import Taxonomy",
        "import hilap",
        "from hilap import Taxonomy, metrics",
        "from .base import Baseline",
        "from policy import Policy",
        "'''Not hilap.policy, which is another's.'''",
    ],
)
def test_what_is_allowed_is_not_found(source):
    assert way_to_forbidden({"mine": imported(source, "hilap.baselines")}) is None
