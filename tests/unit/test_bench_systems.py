"""A system of a researcher's own in the bench: one class, named in the settings; and which code made a result."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCH))

import run  # noqa: E402

from hilap.errors import SettingError  # noqa: E402

ALWAYS = '''
"""The same labels for every document: the most frequent ones."""

import json

import numpy as np
from scipy import sparse


class Always:
    def __init__(self, seed, share=0.5):
        self.share = share

    def fit(self, train, *, valid):
        self.shares = np.asarray(train.labels.mean(0)).ravel()
        return self

    def predict_proba(self, examples):
        return np.tile(self.shares, (len(examples), 1)).astype(np.float32)

    def predict(self, examples):
        return sparse.csr_array((self.predict_proba(examples) > self.share).astype(np.int32))

    def save(self, folder):
        folder.mkdir(parents=True)
        (folder / "always.json").write_text(json.dumps([self.share, self.shares.tolist()]))

    @classmethod
    def load(cls, folder):
        share, shares = json.loads((folder / "always.json").read_text())
        made = cls(0, share)
        made.shares = np.array(shares)
        return made
'''
MINE = """
from hilap.baselines.flat import Flat


class Mine(Flat):
    kind = "mine"
"""
COMPILES = """
import numba
from always import Always

from hilap.compiling import SPENT


class Compiles(Always):
    def fit(self, train, *, valid):
        @numba.njit
        def total(rows):
            return rows.sum() + rows.max()

        self.before = SPENT.cpu_seconds
        while SPENT.cpu_seconds - self.before < 0.3:  # anew, until a tenth of a second can be told
            total.recompile() if total.signatures else total(train.labels.data)
        return super().fit(train, valid=valid)
"""
SETTINGS = {
    "compiles": 'system = "compiles.py:Compiles"',
    "always": 'system = "always.py:Always"\nshare = 0.4',
    "always-of": 'of = "always"\nthreshold = 0.9',
    "mine": 'system = "mine.py:Mine"\nencoder_options = { min_df = 1, hidden = [4] }\nepochs = 2\ntune = "mean"',
    "mine-half": 'of = "mine"\nthreshold = 0.5',
    "mine-members": 'system = "mine.py:Mine"\nmembers_of = "mine"',
    "flat": 'system = "flat"\nencoder_options = { min_df = 1, hidden = [4] }\nepochs = 2\ntune = "mean"',
}


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A bench with a tiny set and systems of one's own; call it with a method and, if wanted, a folder of models."""
    home = tmp_path / "project" / "benchmarks"
    data = tmp_path / "data" / "tiny"
    (home / "settings").mkdir(parents=True)
    data.mkdir(parents=True)
    taxonomy = [
        {"label": "Food", "parents": []},
        {"label": "Bars", "parents": ["Food"]},
        {"label": "Law", "parents": []},
    ]
    (data / "taxonomy.jsonl").write_text("\n".join(map(json.dumps, taxonomy)))
    kinds = [("beer bar", ["Bars"]), ("cake", ["Food"]), ("court", ["Law"])]
    for part in ("train", "valid", "test"):
        documents = [{"id": f"{part}{i}", "text": kinds[i % 3][0], "labels": kinds[i % 3][1]} for i in range(30)]
        (data / f"{part}.jsonl").write_text("\n".join(map(json.dumps, documents)))
    for method, text in SETTINGS.items():
        (home / "settings" / f"{method}.toml").write_text(f"[all]\n{text}\n")
    (home / "settings" / "always.py").write_text(ALWAYS)
    (home / "settings" / "mine.py").write_text(MINE)
    (home / "settings" / "compiles.py").write_text(COMPILES)
    monkeypatch.syspath_prepend(home / "settings")
    monkeypatch.setattr(run, "HERE", home)

    def result(method, models=None, **options):
        folder = tmp_path / "data"
        return run.run("tiny", method, 0, test=True, changes=[], folder=folder, models=models, **options)

    return result


def settings_folder() -> Path:
    return run.HERE / "settings"


# --- a class and two lines of settings -------------------------------------------------------------------------------


def test_a_class_in_a_file_beside_the_settings_is_a_system(bench):
    found = bench("always")
    assert found["settings"] == {"system": "always.py:Always", "share": 0.4}
    assert found["test"]["micro_f1"] == pytest.approx(2 * 20 / (30 + 40))  # Food to all: 20 right of 30, 40 gold
    assert found["valid"]["micro_f1"] == found["test"]["micro_f1"]
    assert (found["decoding"], found["history"]) == ({}, [])


def test_a_subclass_of_a_baseline_has_all_that_hilaps_own_have(bench):
    mine, flat = bench("mine"), bench("flat")
    for key in ("test", "valid", "decoding"):
        assert mine[key] == flat[key]
    assert [record["loss"] for record in mine["history"]] == [record["loss"] for record in flat["history"]]


def test_a_class_of_an_installed_module_is_a_system_too(bench, tmp_path, monkeypatch):
    (tmp_path / "site" / "theirs").mkdir(parents=True)
    (tmp_path / "site" / "theirs" / "__init__.py").write_text("from theirs.system import Always\n")
    (tmp_path / "site" / "theirs" / "system.py").write_text(ALWAYS)
    monkeypatch.syspath_prepend(tmp_path / "site")
    (settings_folder() / "theirs.toml").write_text('[all]\nsystem = "theirs:Always"\nshare = 0.4\n')
    found = bench("theirs")
    assert found["test"] == bench("always")["test"]
    names = [path.name for path in run.sources_of(found["settings"], run.kind_of(found["settings"]))]
    assert names == ["__init__.py", "system.py"]
    monkeypatch.delitem(sys.modules, "theirs")
    monkeypatch.delitem(sys.modules, "theirs.system")


def test_what_kernels_take_to_compile_stands_beside_the_time_of_training(bench, monkeypatch):
    began = time.perf_counter()
    spent = bench("compiles")["training"]
    took = time.perf_counter() - began
    assert spent["compiling"]["cpu_seconds"] >= 0.3
    assert spent["cpu_seconds"] < 0.3
    assert spent["seconds"] + spent["compiling"]["seconds"] < took + 0.1
    assert "compiling" not in bench("always")["training"]
    monkeypatch.delitem(sys.modules, "hilap.compiling")  # a system without kernels does not import numba
    assert run.compiling() == {"seconds": 0.0, "cpu_seconds": 0.0}


def test_what_made_a_result_includes_the_file_of_ones_own(bench):
    plain = run.code_hash()
    assert bench("flat")["code"] == plain
    before = bench("always")["code"]
    assert before != plain
    (settings_folder() / "always.py").write_text(ALWAYS + "\n# another day\n")
    assert bench("always")["code"] not in (before, plain)


@pytest.mark.parametrize("method", ["always", "mine"])
def test_a_kept_model_is_taken_as_long_as_its_code_is_the_same(bench, method, tmp_path):
    models, file = tmp_path / "models", settings_folder() / f"{method}.py"
    first = bench(method, models)
    note = models / "tiny" / method / "0.json"
    marked = json.loads(note.read_text()) | {"peak_mb": -1}  # so that a model that was taken can be told from a new one
    note.write_text(json.dumps(marked))
    again = bench(method, models)
    assert (again["peak_mb"], again["test"], again["code"]) == (-1, first["test"], first["code"])
    assert again["commit"] == first["commit"]
    file.write_text(file.read_text() + "\n# another day\n")
    shutil.rmtree(note.with_suffix(""))  # what is taken would have to be there
    later = bench(method, models)
    assert later["peak_mb"] != -1
    assert later["code"] != first["code"]


def test_a_kept_model_from_before_commits_were_noted_is_still_taken(bench, tmp_path):
    bench("flat", tmp_path / "models")
    note = tmp_path / "models" / "tiny" / "flat" / "0.json"
    kept = json.loads(note.read_text())
    del kept["commit"]
    note.write_text(json.dumps(kept | {"peak_mb": -1}))
    again = bench("flat", tmp_path / "models")
    assert (again["peak_mb"], again["commit"]) == (-1, None)


def test_labels_are_read_otherwise_off_a_class_that_can_and_no_other(bench):
    half = bench("mine-half")
    assert half["decoding"]["threshold"] == 0.5
    assert half["trained_with"] == bench("mine")["settings"]  # so that the page knows whose model it is
    assert half["trained_with"]["system"] == "mine.py:Mine"
    assert "trained_with" not in bench("mine")
    with pytest.raises(
        SettingError, match=r"of: Always has no with_decoding, so threshold cannot change after training"
    ):
        bench("always-of")


def test_members_are_not_lent_to_a_class_of_ones_own(bench, tmp_path):
    with pytest.raises(SystemExit, match=r"--members: mine\.py:Mine has no flat models of HiLAP's"):
        bench("mine", members=tmp_path)
    bench("mine", tmp_path / "models")
    with pytest.raises(SystemExit, match=r"--members: mine\.py:Mine has no flat models of HiLAP's"):
        bench("mine-members", tmp_path / "models")


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("mine.py", r"system must be 'FILE\.py:CLASS' or 'MODULE:CLASS', got 'mine\.py'"),
        ("mine.py:", r"system must be 'FILE\.py:CLASS' or 'MODULE:CLASS', got 'mine\.py:'"),
        (":Mine", r"system must be 'FILE\.py:CLASS' or 'MODULE:CLASS', got ':Mine'"),
        ("mine.py:a b", r"system must be .*, got 'mine\.py:a b'"),
        ("none.py:Mine", r"there is no file .*none\.py, got 'none\.py:Mine'; put it there, or correct the name"),
        ("mine.py:Min", r"there is no class Min in mine\.py, got 'mine\.py:Min'; there are: Flat, Mine"),
        ("no.such.module:Mine", r"there is no module 'no\.such\.module', got .*; install it, or put a file"),
        (
            "pathlib:Path",
            r"Path of pathlib has no fit, predict, predict_proba, save, load; the bench calls fit, predict",
        ),
        ("pathlib:os", r"there is no class os in pathlib"),
        ("hmnc", r"there is no method 'hmnc'; did you mean 'hmcn'"),
    ],
)
def test_a_system_that_is_none_is_told_what_it_lacks(bench, system, message):
    with pytest.raises(SettingError, match=message):
        run.kind_of({"system": system})


def test_a_class_that_lacks_something_is_told_before_anything_is_trained(bench):
    (settings_folder() / "half.py").write_text(ALWAYS.replace("def save", "def keep").replace("Always", "Half"))
    with pytest.raises(SettingError, match=r"Half of half\.py has no save; the bench calls .*Baseline has"):
        run.kind_of({"system": "half.py:Half"})


def test_a_fault_inside_ones_own_code_is_shown_as_it_is(bench):
    (settings_folder() / "broken.py").write_text("import no_such_package_at_all\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_package_at_all"):
        run.kind_of({"system": "broken.py:Mine"})


# --- the commit ------------------------------------------------------------------------------------------------------


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "core.hooksPath=/dev/null"]
    done = subprocess.run(["git", "-C", str(folder), *who, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(bench, monkeypatch):
    """The tiny bench as a repository with one commit."""
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):  # a test may run in a hook
        monkeypatch.delenv(name, raising=False)
    root = run.HERE.parent
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "first")
    return root


def test_a_result_names_the_commit_it_was_made_from(bench, repository):
    assert bench("always")["commit"] == git(repository, "rev-parse", "--short", "HEAD")


def test_a_plus_says_that_what_a_result_is_made_from_is_not_committed(repository):
    commit = git(repository, "rev-parse", "--short", "HEAD")
    (run.HERE / "results").mkdir()
    (run.HERE / "results" / "0.json").write_text("{}")  # results are made, not made from
    assert run.commit_of() == commit
    (settings_folder() / "new.toml").write_text("[all]\n")
    assert run.commit_of() == f"{commit}+"
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", "second")
    assert run.commit_of() == git(repository, "rev-parse", "--short", "HEAD") != commit
    (settings_folder() / "mine.py").write_text(MINE + "\n")
    assert run.commit_of().endswith("+")


def test_without_git_or_a_repository_of_its_own_there_is_no_commit(bench, repository, monkeypatch):
    inner = repository / "inside" / "benchmarks"  # unpacked within somebody else's repository
    inner.mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(run, "HERE", inner)
        assert run.commit_of() is None
    shutil.rmtree(repository / ".git")
    assert run.commit_of() is None
    assert bench("always")["commit"] is None
    monkeypatch.setenv("PATH", "")
    assert run.commit_of() is None
