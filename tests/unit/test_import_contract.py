"""The import contract names every module: what baselines may use is a list, and all else is forbidden to them."""

from __future__ import annotations

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
MAY_USE = {  # docs/decisions/0006-baselines.md says why, of those that the issue does not name
    "taxonomy", "corpus", "encoders", "metrics", "storage",
    "adam", "card", "compiling", "consistent", "descent", "errors", "files", "inputs", "levels", "moments", "outputs",
    "prediction", "products", "samples", "version",
}  # fmt: skip


def test_a_new_module_is_forbidden_to_baselines_until_it_is_allowed():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (contract,) = (one for one in contracts if one["type"] == "forbidden")
    forbidden = {name.removeprefix("hilap.") for name in contract["forbidden_modules"]}
    there = {path.stem for path in (ROOT / "src" / "hilap").glob("*.py")}
    there |= {path.parent.name for path in (ROOT / "src" / "hilap").glob("*/__init__.py")}
    assert there - {"__init__", "__main__", "baselines"} == (forbidden | MAY_USE) & there
    assert not forbidden & MAY_USE
    assert forbidden <= there
