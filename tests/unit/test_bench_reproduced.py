"""The page's section on the paper's own method: which row stands for it, its rank, its distance from the print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import records  # noqa: E402
import reproduced  # noqa: E402
import table  # noqa: E402
from records import Runs, read_object  # noqa: E402


def runs(name: str, method: str, micro: float, macro: float, example: float, **more: Any) -> Runs:
    scores = {"micro_f1": micro / 100, "macro_f1": macro / 100, "example_f1": example / 100}
    return Runs(name, method, ({"test": scores, "settings": {"system": "flat"}, **more},))


def page(name: str, *others: Runs) -> dict[str, list[Runs]]:
    return {name: [runs(name, "hilap-paper", 27, 3, 28), runs(name, "hilap", 31, 10, 31), *others]}


def cells(section: list[str], line: int = 2) -> list[str]:
    return [cell.strip() for cell in section[2].splitlines()[line].strip("|").split("|")]


def test_the_paper_s_policy_stands_among_other_systems_and_beside_the_print():
    others = runs("funcat", "flat", 28, 9, 28), runs("funcat", "svm", 20, 5, 20), runs("funcat", "cssa", 26, 2, 25)
    section = reproduced.reproduced_section(page("funcat", *others), {"funcat": [26.5, 7.5, 27.4]})
    assert section[0] == reproduced.TITLE
    row = cells(section)
    assert row[:3] == ["FunCat (cellcycle)", "`hilap-paper`", "1"]
    assert row[-1] == "2 / 3 / 1 of 4"  # `hilap` is its own; as good is not ahead
    assert "against the print on FunCat (cellcycle) Micro-F1 +0.50, Macro-F1 -4.50, EBF +0.60" in section[3]
    assert "in the upper half of the rows in 2 of 3 comparisons" in section[3]


def test_with_four_walks_it_has_a_line_of_its_own():
    others = runs("funcat", "hilap-paper-walks", 30, 9, 27.4), runs("funcat", "hilap-paper-refit", 26.5, 7.5, 27.4)
    section = reproduced.reproduced_section(page("funcat", *others), {"funcat": [26.5, 7.5, 27.4]})
    named = [cells(section, line)[1] for line in (2, 3, 4)]
    assert named == ["`hilap-paper`", "`hilap-paper-refit`", "`hilap-paper-walks`"]
    assert "EBF +0.00, with four walks Micro-F1 +3.50, Macro-F1 +1.50, EBF +0.00" in section[3]


def test_learned_from_all_documents_it_has_a_line_of_its_own():
    anew = runs("funcat", "hilap-paper-refit", 29, 4, 28)
    others = anew, runs("funcat", "svm", 28, 5, 20)
    section = reproduced.reproduced_section(page("funcat", *others), {"funcat": [26.5, 7.5, 27.4]})
    assert [cells(section, line)[1] for line in (2, 3)] == ["`hilap-paper`", "`hilap-paper-refit`"]
    assert [cells(section, line)[-1] for line in (2, 3)] == ["2 / 2 / 1 of 2", "1 / 2 / 1 of 2"]
    print_of = "against the print on FunCat (cellcycle) Micro-F1 +0.50, Macro-F1 -4.50, EBF +0.60"
    assert f"{print_of}, of all documents Micro-F1 +2.50, Macro-F1 -3.50, EBF +0.60; in the upper" in section[3]
    assert "in 1 of 3 comparisons" in section[3]  # which counts the row that stands for the method


@pytest.mark.parametrize(
    ("rivals", "upper"),  # how many others there are -> the places that are in the upper half
    [(1, [1]), (2, [1]), (3, [1, 2]), (4, [1, 2]), (5, [1, 2, 3])],  # of an odd number of rows the middle is not
)
def test_the_upper_half_is_never_more_than_half_of_the_rows(rivals, upper):
    found = []
    for place in range(1, rivals + 2):
        others = [runs("trove", f"svm-{i}", *[40 if i < place - 1 else 10] * 3) for i in range(rivals)]
        section = reproduced.reproduced_section({"trove": [runs("trove", "hilap-paper", 20, 20, 20), *others]}, {})
        assert cells(section)[-1] == f"{place} / {place} / {place} of {rivals + 1}"
        times = 3 if place in upper else 0
        assert section[3] == f"Reading: in the upper half of the rows in {times} of 3 comparisons."
        found += [place] * (times > 0)
    assert found == upper


def test_where_it_was_not_run_its_policy_on_bow_cnn_stands_for_it():
    found = [runs("trove", "bowcnn-paper", 50, 14, 48), runs("trove", "svm", 57, 32, 54)]
    row = cells(reproduced.reproduced_section({"trove": found}, {}))
    assert row[1] == "`bowcnn-paper`"
    assert row[6:] == ["–", "–", "–", "2 / 2 / 2 of 2"]
    both = [*found, runs("trove", "hilap-paper", 51, 14, 48)]
    assert cells(reproduced.reproduced_section({"trove": both}, {}))[1] == "`hilap-paper`"


def test_sets_without_it_have_no_line_and_alone_it_has_no_rank():
    assert reproduced.reproduced_section({"trove": [runs("trove", "svm", 1, 1, 1)]}, {}) == []
    section = reproduced.reproduced_section({"trove": [runs("trove", "hilap-paper", 1, 1, 1)]}, {})
    assert cells(section)[-1] == "–"
    assert section[3] == "Reading: nothing to compare with yet."


@pytest.mark.parametrize(("macro", "told"), [(3, True), (8, False)])
def test_why_macro_f1_is_low_is_said_only_where_it_is_low_on_both_sets(macro, told):
    pages = {name: [runs(name, "hilap-paper", 27, macro, 28)] for name in ("funcat", "go")}
    printed = {"funcat": [26.5, 7.5, 27.4], "go": [45.4, 5.87, 45.2]}
    assert (reproduced.CHOICE in reproduced.reproduced_section(pages, printed)) == told


def test_what_the_paper_prints_of_its_own_method_is_found():
    paper = read_object(table.PAPER)
    assert table.printed_of(paper, "funcat") == [26.5, 7.5, 27.4]
    assert table.printed_of(paper, "go") == [45.4, 5.87, 45.2]
    assert table.printed_of(paper, "rcv1") == [83.3, 60.1, 85.0]  # on bow-CNN
    assert table.printed_of(paper, "trove") is None


def test_every_set_of_the_committed_page_has_a_line():
    pages = records.read_results(table.RESULTS)
    section = "\n".join(reproduced.reproduced_section(pages, {}))
    for name in pages:
        assert f"| {records.SETS[name]} |" in section
