"""A few minutes on FunCat: HiLAP in a quick setting against three baselines, one seed each: `make bench-quick`.

Everything goes to a folder that is removed at the end, so that every call measures the code as it is; the committed
results are not touched. The data directory is the one of `run.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import suite
from cells import F1, HEADINGS, percent, score_cells, spread
from records import Runs, read_results
from rich.console import Console
from run import DATA

from hilap.errors import HilapError
from hilap.metrics.words import rich_table

QUEUE = suite.HERE / "quick.toml"


def missing(data: Path, name: str = "funcat") -> str | None:
    """What to do where the data set is not there."""
    if (data / name).is_dir():
        return None
    return (
        f"{data / name}: the data set {name} is not there; put the data folder at ../shared/data beside the project, "
        "or name it: make bench-quick HILAP_DATA=FOLDER"
    )


def summary(runs: Sequence[Runs]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: the three scores, consistency and cost of each system."""
    rows = []
    for one, cells in zip(runs, score_cells(runs, F1), strict=True):
        shares = spread(percent(one.values("test", "inconsistent_share")))
        cost = spread(one.values("training", "cpu_seconds"), 0)
        rows.append([one.title, *(cell.replace("**", "") for cell in cells), shares, cost])
    return ["System", *HEADINGS.values(), "Inconsistent %", "Training, CPU s"], rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with the data sets")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="how many runs at a time")
    chosen = parser.parse_args(arguments)
    fault = missing(chosen.data)
    if fault is not None:
        print(fault, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="bench-quick-") as folder:
        options = ["--queue", str(QUEUE), "--out", folder, "--data", str(chosen.data), "--jobs", str(chosen.jobs)]
        code = suite.main([*options, "--test"])
        try:
            runs = read_results(Path(folder)).get("funcat", [])
        except HilapError as wrong:
            print(wrong, file=sys.stderr)
            return 2
    if runs:
        print("FunCat (cellcycle), test documents, one seed; quick settings, so compare the rows with each other only:")
        Console().print(rich_table(*summary(runs)))
    return code


if __name__ == "__main__":
    raise SystemExit(main())
