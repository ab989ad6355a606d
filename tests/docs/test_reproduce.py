"""The commands that tell how to make the results again are ones that exist, and `make bench` runs them."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "benchmarks"
PAGE = ROOT / "docs" / "how_to" / "reproduce.md"
TOLD = [PAGE, BENCH / "paper.toml"]
sys.path.insert(0, str(BENCH))

import suite  # noqa: E402

COMMAND = re.compile(r"^(?:#   )?((?:python benchmarks/|hilap |make )\S.*?)(?:  +\(.*)?$", re.MULTILINE)
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not here")


def commands(path: Path) -> list[list[str]]:
    return [shlex.split(line) for line in COMMAND.findall(path.read_text(encoding="utf-8"))]


def options_of(script: Path) -> set[str]:
    return set(re.findall(r"add_argument\(\s*\"(--[\w-]+)\"", script.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", TOLD, ids=lambda path: path.name)
def test_scripts_have_the_options_that_are_told(path):
    told = [words[1:] for words in commands(path) if words[0] == "python"]
    assert {"benchmarks/suite.py", "benchmarks/figures.py", "benchmarks/table.py"} <= {words[0] for words in told}
    for script, *words in told:
        assert {word for word in words if word.startswith("--")} <= options_of(ROOT / script), script


def test_the_page_and_the_queue_tell_the_same_for_the_licensed_sets():
    queue = commands(TOLD[1])
    assert len(queue) == 4
    assert [words for words in commands(PAGE) if words in queue] == queue


def test_what_the_page_runs_alone_is_in_the_queue():
    jobs = suite.read_queue(suite.QUEUE)
    runs = [words for words in commands(PAGE) if words[1].endswith("suite.py") and "--queue" not in words]
    chosen = [[word for before, word in pairwise(words) if before == "--only"] for words in runs]
    assert chosen == [["funcat"], ["hilap", "arxiv/svm"], ["funcat/hilap"]]
    for only in chosen:
        assert suite.chosen_jobs(jobs, only)  # raises where a name is in no entry
    (one,) = (words for words in commands(PAGE) if words[1].endswith("run.py"))
    told = dict(pairwise(one))
    assert suite.Job(told["--set"], told["--method"], int(told["--seed"])) in jobs


def test_links_of_the_page_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", PAGE.read_text(encoding="utf-8"))
    assert len(links) > 5
    for path, _ in links:
        assert (PAGE.parent / path).exists(), path


# --- make bench ------------------------------------------------------------------------------------------------------


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *words], cwd=ROOT, capture_output=True, encoding="utf-8", check=False)


def scripts_run(said: str) -> list[list[str]]:
    """The commands with a script of the bench that make would run; folders of the environment left out."""
    lines = said.replace("\\\n", " ").splitlines()
    return [shlex.split(line.partition("benchmarks/")[2]) for line in lines if "/python benchmarks/" in line]


@needs_make
def test_make_bench_runs_the_suite_then_draws_then_writes_the_page():
    assert scripts_run(make("-n", "bench").stdout) == [
        ["suite.py", "--test", "--models", "build/models"],
        ["figures.py"],
        ["table.py"],
    ]


@needs_make
def test_make_bench_with_a_folder_of_its_own_leaves_the_committed_results_alone():
    said = make("-n", "bench", "OUT=build/b", "HILAP_DATA=D").stdout
    assert "HILAP_DATA='D' " in said
    assert scripts_run(said) == [
        ["suite.py", "--test", "--models", "build/b/models", "--out", "build/b"],
        ["figures.py", "--results", "build/b", "--out", "build/b/figures"],
        ["table.py", "--results", "build/b", "--out", "build/b/results.md"],
    ]


@needs_make
def test_make_bench_asks_for_the_data_before_anything_is_installed(tmp_path):
    (tmp_path / "funcat").mkdir()
    done = make("bench-data", f"HILAP_DATA={tmp_path}")
    assert done.returncode == 2
    assert f"{tmp_path}/go: this part of the data is not there; put the data folder at ../shared/data" in done.stderr
    assert "or name it: make bench HILAP_DATA=FOLDER" in done.stderr
    assert make("-n", "bench").stdout.index("for part in") < make("-n", "bench").stdout.index("suite.py")
    for part in ("go", "trove", "medline", "arxiv", "vectors"):
        (tmp_path / part).mkdir()
    assert make("bench-data", f"HILAP_DATA={tmp_path}").returncode == 0
    sets = {job.set for job in suite.read_queue(suite.QUEUE)}
    assert sets <= {path.name for path in tmp_path.iterdir()}  # so none of the suite's is forgotten
