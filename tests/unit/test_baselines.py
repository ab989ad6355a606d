"""The front door of the baselines: every class by its name, imported when it is asked for."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys

import pytest

from hilap import baselines
from hilap.baselines import CSSA, METHODS, SVM, method


def run(code: str) -> str:
    """What code prints in a process of its own, where nothing is imported yet."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_every_class_has_the_name_of_its_method():
    assert (method("svm"), method("cssa")) == (SVM, CSSA)
    for name, (_, kind) in METHODS.items():
        assert getattr(baselines, kind) is method(name)
        assert method(name).kind == name


def test_what_is_listed_is_what_is_there():
    kinds = {kind for _, kind in METHODS.values()}
    assert {*baselines.__all__} == {*dir(baselines)} == {"METHODS", "method", *kinds}
    star: dict[str, object] = {}
    exec("from hilap.baselines import *", star)
    assert star["HRSVM"] is method("hr-svm")


def test_a_type_checker_sees_every_class():
    tree = ast.parse(inspect.getsource(baselines))
    seen = {
        (node.module, alias.name) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert {*METHODS.values()} <= seen


def test_no_class_is_imported_before_it_is_asked_for():
    heavy = "[m for m in ('numpy', 'scipy', 'torch', 'hilap.baselines.base') if m in sys.modules]"
    assert run(f"import sys, hilap.baselines as b; dir(b); print({heavy})") == "[]"
    there = "[m for m in ('hilap.baselines.cssa', 'hilap.baselines.hmcn') if m in sys.modules]"
    assert run(f"import sys; from hilap.baselines import CSSA; print({there})") == "['hilap.baselines.cssa']"


def test_another_name_is_refused():
    with pytest.raises(AttributeError, match=r"^module 'hilap\.baselines' has no attribute 'SVN'$"):
        baselines.SVN  # noqa: B018
