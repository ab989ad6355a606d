"""The bench: the paper's figures are typed right, the page is what the results say, the queue does what it must."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import textwrap
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from scipy import sparse

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "benchmarks"
sys.path.insert(0, str(BENCH))

import records  # noqa: E402
import run  # noqa: E402
import suite  # noqa: E402
import table  # noqa: E402
from roles import ROLES  # noqa: E402

from hilap.corpus import Examples  # noqa: E402
from hilap.errors import HilapError, SettingError  # noqa: E402
from hilap.metrics import calibration, ranking  # noqa: E402
from hilap.taxonomy import Taxonomy  # noqa: E402

PAPER = json.loads((BENCH / "paper.json").read_text(encoding="utf-8"))


# --- paper.json against the LaTeX source -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def source(data_folder) -> str:
    found = sorted((data_folder.parent / "paper").glob("*.txt"))
    if not found:
        pytest.skip("the paper's source is not here: it is expected in shared/paper beside the project")
    return "\n".join(path.read_text(encoding="utf-8") for path in found)


def environments(source: str) -> dict[str, str]:
    """LaTeX label -> the table environment, in the order of the source."""
    bodies = re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", source, re.DOTALL)
    return {re.search(r"\\label\{(\w+)\}", body)[1]: body for body in bodies}


def plain(cell: str) -> str:
    cell = re.sub(r"\\(?:c?midrule|toprule|bottomrule)(?:\[[^]]*\])?(?:\(\w*\))?(?:\{[^}]*\})?", "", cell)
    cell = cell.replace(r"~\citet{peng2018large}", " Peng et al., 2018")
    cell = re.sub(r"\$?\\text(?:bf)?\{([^}]*)\}(?:\^\*)?\$?", r"\1", cell)
    return re.sub(r"\s+", " ", cell).strip()


def value_of(cell: str) -> float | str | None:
    digits = cell.replace(",", "").replace(r"\%", "")
    if cell == "-":
        return None
    return float(digits) if re.fullmatch(r"\d+(\.\d+)?", digits) else cell


def rows_of(body: str) -> list[list[str]]:
    inner = re.search(r"\\begin\{tabular\}\{\w+\}(.*)\\end\{tabular\}", body, re.DOTALL)[1]
    rows = []
    for line in inner.split(r"\\"):
        cells = [plain(cell) for cell in re.split(r"(?<!\\)&", line)]
        if cells[0] == "" or "multirow" in cells[0]:  # the rotated name of a group
            cells = cells[1:]
        rows.append(cells)
    return rows


def printed(label: str, body: str) -> dict[str, list]:
    """Name of the row -> its figures, as the source prints them."""
    rows = rows_of(body)
    if label == "table_inconsistencies":  # systems side by side
        return {name: [value_of(cell)] for name, cell in zip(rows[0], rows[1], strict=True)}
    is_data = [len(row) > 1 and not isinstance(value_of(row[-1]), str) for row in rows]
    return {row[0]: [value_of(cell) for cell in row[1:]] for row, data in zip(rows, is_data, strict=True) if data}


@pytest.mark.data
@pytest.mark.parametrize("label", PAPER["tables"])
def test_a_table_of_the_paper_is_typed_as_printed(label, source):
    body, ours = environments(source)[label], PAPER["tables"][label]
    theirs = printed(label, body)
    assert ours["rows"] == theirs
    assert list(ours["rows"]) == list(theirs)
    caption = re.search(r"\\caption\{(.*)\}\s*\n", body)[1]
    assert plain(caption).startswith(ours["caption"])


@pytest.mark.data
def test_no_table_of_the_source_is_left_out(source):
    places = {label: entry["place"] for label, entry in PAPER["tables"].items()}
    assert places == {label: i for i, label in enumerate(environments(source), 1)}


@pytest.mark.data
def test_rows_reported_from_elsewhere_are_the_starred_ones(source):
    starred = re.findall(r"\\text\{([^}]*)\}\^\*", environments(source)["table_rcv1"])
    assert PAPER["tables"]["table_rcv1"]["reported"] == starred


@pytest.mark.parametrize("label", PAPER["tables"])
def test_every_row_has_a_figure_for_every_column(label):
    entry = PAPER["tables"][label]
    assert {len(row) for row in entry["rows"].values()} == {len(entry["columns"])}


@pytest.mark.data
def test_the_claims_are_the_papers(source):
    claims = PAPER["claims"]
    assert f"average improvement of {claims['macro_gain']}\\% in Macro-F1 compared to corresponding base" in source
    assert f"highest performance on {claims['best']} of {claims['cells']} results" in source


@pytest.mark.data
def test_the_opponents_are_those_of_the_notes(data_folder):
    notes = (data_folder.parent / "NOTES.md").read_text(encoding="utf-8").split("\n## ")[3]
    assert notes.startswith("3. What simple methods reach")
    own = "\n".join(line for line in notes.splitlines() if not line.startswith("| *paper"))
    about = (data_folder / "README.md").read_text(encoding="utf-8").partition("For orientation")[2]
    own += "\n".join(line for line in about.splitlines() if re.match(r"\| `(trove|medline|arxiv)`", line))
    triple = re.compile(r"(\d+\.\d+)\s*/\s*(\d+\.\d+)\s*/\s*(\d+\.\d+)")
    expected = sorted(tuple(map(float, found)) for found in triple.findall(own))
    assert sorted(tuple(row["values"][:3]) for row in PAPER["opponents"]["rows"]) == expected


# --- the page --------------------------------------------------------------------------------------------------------


def write_result(folder: Path, name: str, method: str, seed: int, *, valid_only: bool = False, **changes) -> Path:
    scores = {"micro_f1": 0.3, "macro_f1": 0.08, "example_f1": 0.29, "au_prc_pooled": 0.25, "inconsistent_share": 0.0}
    record = {
        "set": name,
        "method": method,
        "seed": seed,
        "settings": {"preset": "paper"},
        "data": {"train": "d1"},
        "code": "c0de",
        "versions": {"torch": "2.13.0"},
        "training": {"cpu_seconds": 1234.5},
        "prediction": {"documents_per_cpu_second": 2000.0},
        "valid": scores,
    }
    test = {**scores, **changes.pop("test", {})}
    record |= changes if valid_only else {"test": test, **changes}
    path = folder / name / method / f"{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")
    return path


def cells_of(page: str, section: str, row: str) -> dict[str, str]:
    """A row of the first table with it below a heading: heading of the column -> cell."""
    lines = page.partition(f"# {section}\n")[2].splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"| {row} |"))
    head = next(i for i in range(at, -1, -1) if lines[i].startswith("| :--")) - 1
    split = [[cell.strip() for cell in lines[i].strip("|").split("|")] for i in (head, at)]
    return dict(zip(*split, strict=True))


def test_the_committed_page_is_what_the_committed_results_give():
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == table.page(), (
        "docs/results.md is out of date: run python benchmarks/table.py"
    )


def test_every_committed_result_has_the_settings_of_today():
    runs = [one for mine in records.read_results(BENCH / "results").values() for one in mine]
    assert len(runs) > 100
    old = []
    for one in runs:
        today = json.loads(json.dumps(run.settings_of(one.method, one.name, [])))
        old += [f"{one.name}/{one.method}" for record in one.records if record["settings"] != today]
    assert not old, f"run them again with --again, or take the settings back: {', '.join(sorted(set(old)))}"


def test_the_readme_shows_what_the_committed_results_give():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert table.readme(text, table.short_table()) == text, "README.md is out of date: run python benchmarks/table.py"


def test_the_readme_table_has_means_over_seeds_and_the_best_opponents(tmp_path):
    for seed, score in enumerate((0.30, 0.32)):
        write_result(tmp_path, "funcat", "hilap", seed, test={"micro_f1": score, "macro_f1": 0.09, "example_f1": 0.31})
    write_result(tmp_path, "go", "svm", 0, test={"micro_f1": 0.4, "macro_f1": 0.09, "example_f1": 0.31})
    write_result(tmp_path, "trove", "hilap", 0, test={"micro_f1": 0.6, "macro_f1": 0.3, "example_f1": 0.57})
    made = table.short_table(tmp_path)
    assert "| FunCat (cellcycle) | 31.0 / 9.0 / 31.0 (2) | – | 30.6 / 9.7 / 30.2 | 26.5 / 7.5 / 27.4 |" in made
    assert "| PyPI descriptions (trove) | 60.0 / 30.0 / 57.0 (1) | – | 57.2 / 24.2 / 54.5 | – |" in made
    assert "Ontology" not in made  # HiLAP was not run there
    assert "hilap-minilm" not in made
    with pytest.raises(HilapError, match="the marks around the table of results are missing"):
        table.readme("no marks", made)


def test_the_readme_table_has_a_set_that_nobody_has_listed_behind_the_others(tmp_path):
    write_result(tmp_path, "a-new-one", "hilap", 0)
    write_result(tmp_path, "trove", "hilap", 0)
    made = table.short_table(tmp_path)
    assert made.splitlines()[3].startswith("| a-new-one | 30.0 / 8.0 / 29.0 (1) | ")
    assert made.splitlines()[2].startswith("| PyPI descriptions (trove) | ")


def test_the_readme_table_has_the_best_other_system_by_each_score(tmp_path):
    scores = {
        "hilap": (0.5, 0.5, 0.5),
        "svm": (0.6, 0.2, 0.3),
        "bowcnn-flat": (0.4, 0.7, 0.2),
        "flat-only": (0.9, 0.9, 0.9),
    }
    for method, three in scores.items():
        test = dict(zip(("micro_f1", "macro_f1", "example_f1"), three, strict=True))
        write_result(tmp_path, "trove", method, 0, test=test)
    made = table.short_table(tmp_path)
    assert "| 50.0 / 50.0 / 50.0 (1) | 60.0 / 70.0 / 30.0 (`svm` / `bowcnn-flat` / `svm`) |" in made
    (tmp_path / "trove" / "bowcnn-flat" / "0.json").unlink()
    assert "| 60.0 / 20.0 / 30.0 (`svm`) |" in table.short_table(tmp_path)


def test_without_results_the_page_says_so_and_claims_nothing(tmp_path):
    page = table.page(tmp_path)
    assert "There are no test results yet" in page
    assert "|" not in page


def test_results_of_validation_alone_do_not_count(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0, valid_only=True)
    assert table.page(tmp_path) == table.page(tmp_path / "nothing")


def test_scores_are_mean_and_sample_deviation_over_seeds_in_percent(tmp_path):
    values = [0.301, 0.288, 0.295]
    for seed, value in enumerate(values):
        write_result(tmp_path, "funcat", "hilap", seed, test={"micro_f1": value})
    row = cells_of(table.page(tmp_path), "FunCat (cellcycle)", "HiLAP, settings for the set (`hilap`)")
    assert row["Micro-F1"] == f"{100 * np.mean(values):.2f} ± {100 * np.std(values, ddof=1):.2f}"
    assert row["Seeds"] == "3"
    assert row["Training, CPU s"] == "1,234 ± 0"
    assert row["Prediction, documents per CPU s"] == "2,000 ± 0"
    assert row["Memory, MB"] == "–"  # an older result


def test_memory_is_the_mean_over_seeds(tmp_path):
    for seed, held in enumerate((900, 1_500)):
        write_result(tmp_path, "funcat", "hilap", seed, peak_mb=held)
    write_result(tmp_path, "funcat", "svm", 0, peak_mb=400)
    page = table.page(tmp_path)
    assert cells_of(page, "FunCat (cellcycle)", "HiLAP, settings for the set (`hilap`)")["Memory, MB"] == "1,200"
    assert "`hilap` 1,234 s, 2,000 documents/s, 1,200 MB; `svm` 1,234 s, 2,000 documents/s, 400 MB." in page


def test_one_seed_has_no_spread(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0)
    row = cells_of(table.page(tmp_path), "FunCat (cellcycle)", "HiLAP, settings for the set (`hilap`)")
    assert (row["Micro-F1"], row["AU(PRC) pooled"], row["Inconsistent %"]) == ("30.00", "25.00", "0.00")


def test_the_papers_rows_stand_beside_ours(tmp_path):
    write_result(tmp_path, "go", "hilap", 0)
    page = table.page(tmp_path)
    row = cells_of(page, "Table 5: Gene Ontology (cellcycle)", "CLUS-HMC")
    words = [f"*paper, Gene Ontology (cellcycle): {word}*" for word in ("Micro-F1", "Macro-F1", "EBF")]
    assert [row[word] for word in words] == ["41.4", "3.01", "40.3"]
    assert (row["Ours"], row["Seeds"], row["Micro-F1"]) == ("–", "–", "–")
    section = page.partition("## Gene Ontology (cellcycle)\n")[2].partition("\n## ")[0]
    assert "[Table 5: Gene Ontology (cellcycle)](#table-5-gene-ontology-cellcycle)" in section
    assert "paper:" not in section
    assert "FunCat (cellcycle)\n" not in page


def test_the_papers_rows_stay_below_a_set_where_none_of_its_systems_was_run(tmp_path):
    write_result(tmp_path, "go", "hr-lr", 0)
    page = table.page(tmp_path)
    row = cells_of(page, "Gene Ontology (cellcycle)", "*paper: CLUS-HMC*")
    assert (row["Micro-F1"], row["Macro-F1"], row["EBF"], row["Seeds"]) == ("41.4", "3.01", "40.3", "–")
    assert "Table 5" not in page


def test_table_5_has_the_papers_rows_with_ours_as_it_has_them_and_as_we_would(tmp_path):
    for method, value in (("svm-zero", 0.1), ("svm", 0.2), ("hilap-paper", 0.3), ("hilap", 0.4), ("flat", 0.9)):
        write_result(tmp_path, "funcat", method, 0, test={"micro_f1": value})
    part = table.page(tmp_path).partition("### Table 5: FunCat (cellcycle)\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in part.splitlines() if line.startswith("| ")][2:]
    assert [(row[0].strip("| "), re.findall(r"`(.*)`", row[1]), row[3]) for row in rows] == [
        ("SVM", ["svm-zero"], "10.00"),
        ("", ["svm"], "20.00"),
        ("CSSA", [], "–"),
        ("CLUS-HMC", [], "–"),
        ("HMCN", [], "–"),
        ("HiLAP", ["hilap-paper"], "30.00"),
        ("", ["hilap"], "**40.00**"),
    ]
    assert [row[6] for row in rows] == ["2.72", "", "16.0", "25.2", "21.3", "26.5", ""]
    assert "Micro-F1 `hilap` over `hilap-paper` by 10.00, not tested" in part  # flat is no system of this table


def test_links_inside_the_page_lead_to_its_headings():
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    headings = {table.anchor(line.lstrip("# ")) for line in text.splitlines() if line.startswith("#")}
    links = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert len(links) > 2
    assert links <= headings
    assert table.anchor("The paper's Table 5: GO (a-b)") == "the-papers-table-5-go-a-b"


def test_a_set_the_paper_does_not_have_gets_no_rows_of_the_paper(tmp_path):
    write_result(tmp_path, "arxiv", "hilap", 0)
    section = table.page(tmp_path).partition("## arXiv abstracts")[2].partition("\n## ")[0]
    assert "hilap" in section
    assert "paper:" not in section


def test_the_best_of_ours_is_bold_in_each_column_and_no_other(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0, test={"micro_f1": 0.31, "macro_f1": 0.07})
    write_result(tmp_path, "funcat", "svm", 0, test={"micro_f1": 0.30, "macro_f1": 0.09})
    page = table.page(tmp_path)
    ours = cells_of(page, "FunCat (cellcycle)", "HiLAP, settings for the set (`hilap`)")
    svm = cells_of(page, "FunCat (cellcycle)", "SVM, tuned (`svm`)")
    assert (ours["Micro-F1"], svm["Micro-F1"]) == ("**31.00**", "30.00")
    assert (ours["Macro-F1"], svm["Macro-F1"]) == ("7.00", "**9.00**")
    assert ours["EBF"] == svm["EBF"] == "**29.00**"  # equal is equally good


def test_a_system_alone_is_not_the_best(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0)
    assert (
        "**3"
        not in cells_of(table.page(tmp_path), "FunCat (cellcycle)", "HiLAP, settings for the set (`hilap`)")["Micro-F1"]
    )


def test_a_score_that_one_seed_lacks_or_cannot_define_is_a_dash(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0)
    write_result(tmp_path, "funcat", "hilap", 1, test={"micro_f1": None, "au_prc_pooled": float("nan")})
    row = cells_of(table.page(tmp_path), "FunCat (cellcycle)", "HiLAP, settings for the set (`hilap`)")
    assert (row["Micro-F1"], row["AU(PRC) pooled"], row["EBF"]) == ("–", "–", "29.00 ± 0.00")


def test_go_is_shown_without_its_roots_too(tmp_path):
    rootless = {"rootless_micro_f1": 0.21, "rootless_macro_f1": 0.03, "rootless_example_f1": 0.2}
    write_result(tmp_path, "go", "hilap", 0, test=rootless)
    below = table.page(tmp_path).partition("Without the three namespace roots")[2]
    assert "| HiLAP, settings for the set (`hilap`) | 21.00 | 3.00 | 20.00 |" in below


def test_areas_stand_beside_those_of_the_systems_own_papers(tmp_path):
    write_result(tmp_path, "funcat", "clus-hmc", 0, test={"au_prc_interpolated": 0.171})
    areas = {"au_prc_pooled": 0.48, "rootless_au_prc_pooled": 0.41}
    write_result(tmp_path, "go", "c-hmcnn-paper", 0, test=areas)
    below = table.page(tmp_path).partition("## Areas beside those published")[2]
    assert "(`clus-hmc`) | 17.10 | 17.2 | – | 35.7 | Vens et al. 2008 |" in below
    assert "(`c-hmcnn-paper`) | – | 25.5 | 48.00 (41.00) | 41.3 | Giunchiglia and Lukasiewicz 2020 |" in below
    assert "`hmcn-authors`" not in below  # not run


def test_published_areas_are_those_of_the_file(tmp_path):
    write_result(tmp_path / "results", "funcat", "cssa", 0)
    write_result(tmp_path / "results", "funcat", "hilap", 0)
    changed = json.loads(json.dumps(PAPER))
    next(row for row in changed["areas"]["rows"] if row["method"] == "cssa")["values"] = [12.3, 45.6]
    (tmp_path / "paper.json").write_text(json.dumps(changed), encoding="utf-8")
    below = table.page(tmp_path / "results", tmp_path / "paper.json").partition("## Areas beside those published")[2]
    assert "(`cssa`) | – | 12.3 | – | 45.6 | Bi and Kwok 2011 |" in below
    assert "(`hilap`) | 25.00 | – | – | – | – |" in below
    for row in PAPER["areas"]["rows"]:
        assert row["method"] in records.NAMES
        assert len(row["values"]) == len(PAPER["areas"]["columns"])


def test_the_ablation_shows_our_variants_beside_the_papers(tmp_path):
    for method, value in (("hilap-paper", 0.3), ("hilap-sl", 0.2), ("flat-only", 0.1)):
        write_result(tmp_path, "funcat", method, 0, test={"micro_f1": value})
    page = table.page(tmp_path)
    row = cells_of(page, "Ablation (the paper's Table 6)", "HiLAP-SL (`hilap-sl`)")
    assert (row["Micro-F1"], row["*paper, RCV1: Micro-F1*"], row["*paper, RCV1: EBF*"]) == ("20.00", "82.5", "83.0")
    section = page.partition("## Ablation")[2].partition("\n## ")[0]
    assert re.findall(r"\(`([\w-]+)`\)", section) == ["flat-only", "hilap-sl", "hilap-paper"]  # the paper's order


def test_the_whole_method_alone_is_no_ablation(tmp_path):
    write_result(tmp_path, "funcat", "hilap-paper", 0)
    assert "## Ablation" not in table.page(tmp_path)


def test_inconsistency_is_shown_for_all_sets_beside_the_papers(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0)
    write_result(tmp_path, "go", "svm", 0, test={"inconsistent_share": 0.081})
    page = table.page(tmp_path)
    section = "Inconsistent documents, % (the paper's Table 7)"
    svm = cells_of(page, section, "SVM, tuned (`svm`)")
    assert (svm["FunCat (cellcycle)"], svm["Gene Ontology (cellcycle)"]) == ("–", "8.10")
    theirs = "*paper, RCV1 (played by arXiv abstracts)*"
    assert cells_of(page, section, "*paper: TextCNN*")[theirs] == "3.74"  # not run: it stands alone
    assert cells_of(page, section, "HiLAP, settings for the set (`hilap`)")[theirs] == "0 (HiLAP)"
    assert "*paper: HiLAP*" not in page


def test_inconsistency_of_the_papers_systems_stands_in_its_order_with_its_figures(tmp_path):
    for method in ("hilap", "hmcn", "textcnn-flat-half", "textcnn-flat", "svm-zero", "svm"):
        write_result(tmp_path, "arxiv", method, 0)
    part = table.page(tmp_path).partition("## Inconsistent documents")[2].partition("\n## ")[0]
    rows = re.findall(r"\(`([\w-]+)`\) \|.*\| (.+) \|", part)
    expected = {"svm-zero": "SVM", "textcnn-flat-half": "TextCNN", "hmcn": "HMCN", "hilap": "HiLAP"}
    printed = {row: values[0] for row, values in PAPER["tables"]["table_inconsistencies"]["rows"].items()}
    assert rows == [(method, f"{printed[row]} ({row})") for method, row in expected.items()] + [("svm", "–")]
    write_result(tmp_path, "rcv1", "svm-zero", 0)
    assert "*paper, RCV1*" in table.page(tmp_path)  # it plays itself


def test_the_gap_to_the_opponents_to_beat_is_told_with_its_sign(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0, test={"micro_f1": 0.31, "macro_f1": 0.09})
    page = table.page(tmp_path)
    assert "Micro-F1 +0.40 (C-HMCNN, tuned: 30.6)" in page
    assert "Macro-F1 -0.70 (Flat net, 3 layers of 1,000, dropout 0.7, tuned: 9.7)" in page
    assert "## Opponents: not measured by us" in page


def test_the_page_names_the_commits_that_made_the_figures(tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0, commit="aaa")
    write_result(tmp_path, "funcat", "hilap", 1, commit="bbb")
    assert "Made by the library as of `aaa`, `bbb` with torch 2.13.0." in table.page(tmp_path)


def test_seeds_are_counted_in_the_order_of_numbers(tmp_path):
    for seed in (10, 2):
        write_result(tmp_path, "funcat", "hilap", seed)
    runs = records.read_results(tmp_path)["funcat"][0]
    assert [record["seed"] for record in runs.records] == [2, 10]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": {"preset": "residual"}}, "funcat/hilap: the seeds have different settings"),
        ({"data": {"train": "d2"}}, "funcat: the results come from different data"),
        ({"seed": 7}, "says it is funcat/hilap/7.json"),
        ({"test": {"micro_f1": "30"}}, "funcat/hilap: test.micro_f1 must be a number, got '30'"),
    ],
)
def test_results_that_do_not_belong_together_are_refused(change, message, tmp_path):
    write_result(tmp_path, "funcat", "hilap", 0)
    path = write_result(tmp_path, "funcat", "hilap", 1)
    record = json.loads(path.read_text()) | change
    path.write_text(json.dumps(record))
    with pytest.raises(HilapError, match=re.escape(message)):
        table.page(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"test":\n', "0.json:2: not valid JSON"),
        (b"[1]", "a JSON object is needed, got list"),
        (b"\xff{}", "not valid UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_damaged_result_is_named(content, message, tmp_path, capsys):
    path = tmp_path / "funcat" / "hilap" / "0.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert table.main(["--results", str(tmp_path), "--out", str(tmp_path / "page.md")]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert str(path) in told
    assert not (tmp_path / "page.md").exists()


def test_check_tells_an_old_page_from_a_new_one(tmp_path, capsys):
    given = ["--results", str(tmp_path / "results"), "--out", str(tmp_path / "page.md")]
    assert table.main(given) == 0
    assert table.main([*given, "--check"]) == 0
    write_result(tmp_path / "results", "funcat", "hilap", 0)
    before = (tmp_path / "page.md").read_bytes()
    assert table.main([*given, "--check"]) == 1
    assert "out of date" in capsys.readouterr().out
    assert (tmp_path / "page.md").read_bytes() == before


@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0], [1234.5, 1234.5]])
def test_spread_agrees_with_another_library(values):
    mean, deviation = (float(part.replace(",", "")) for part in table.spread(values).split(" ± "))
    assert mean == pytest.approx(np.mean(values), abs=0.005)
    assert deviation == pytest.approx(statistics.pstdev(values) * (len(values) / (len(values) - 1)) ** 0.5, abs=0.005)


# --- the queue -------------------------------------------------------------------------------------------------------

RUNNER = """
import argparse, json, os, pathlib, sys, time
parser = argparse.ArgumentParser()
for name in ("--set", "--method", "--seed", "--out", "--data", "--models"):
    parser.add_argument(name)
parser.add_argument("--test", action="store_true")
given = parser.parse_args()
out = pathlib.Path(given.out)
with open(out / "started.txt", "a") as lines:
    lines.write(f"{given.set}/{given.method}/{given.seed} {os.getpid()} {os.environ['OMP_NUM_THREADS']}\\n")
until = time.monotonic() + 30
while given.set == "pair" and (out / "started.txt").read_text().count("pair") < 2:
    if time.monotonic() > until:
        sys.exit("nobody came")
    time.sleep(0.05)
if given.set == "slow":
    time.sleep(60)
if given.set == "bad":
    sys.exit("the disk is on fire")
if given.set != "silent":
    path = out / given.set / given.method / f"{given.seed}{'' if given.test else '.valid'}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"options": sys.argv}))
"""


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A queue of toy runs: call it with entries (set, seeds) and further words."""
    (tmp_path / "runner.py").write_text(RUNNER)
    monkeypatch.setattr(suite, "RUNNER", tmp_path / "runner.py")

    def call(entries, *words):
        return suite.main(["--queue", str(queue_of(tmp_path, entries)), "--out", str(tmp_path), *words])

    return call


def queue_of(folder: Path, entries) -> Path:
    path = folder / "queue.toml"
    lines = [f'[[entries]]\nset = "{name}"\nmethods = ["hilap"]\nseeds = {seeds}\n' for name, seeds in entries]
    path.write_text("\n".join(lines))
    return path


def started(folder: Path) -> list[list[str]]:
    path = folder / "started.txt"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def test_the_queue_runs_everything_in_order_with_one_thread_each(bench, tmp_path):
    assert bench([("b", 2), ("a", 1)], "--jobs", "1", "--test") == 0
    assert [line[0] for line in started(tmp_path)] == ["b/hilap/0", "b/hilap/1", "a/hilap/0"]
    assert {line[2] for line in started(tmp_path)} == {"1"}
    assert (tmp_path / "a" / "hilap" / "0.json").is_file()


def test_two_jobs_run_side_by_side(bench):
    assert bench([("pair", 2)], "--jobs", "2") == 0  # each waits for the other


def test_what_has_a_result_is_skipped(bench, tmp_path, capsys):
    assert bench([("a", 1)], "--test") == 0
    assert bench([("a", 2)], "--test") == 0
    assert [line[0] for line in started(tmp_path)] == ["a/hilap/0", "a/hilap/1"]
    assert "1 to run, 1 skipped" in capsys.readouterr().err


def test_a_result_of_validation_alone_does_not_stand_for_the_test(bench, tmp_path):
    assert bench([("a", 1)]) == 0
    assert bench([("a", 1)], "--test") == 0
    assert len(started(tmp_path)) == 2


def test_one_failure_stops_nobody_and_is_told_at_the_end(bench, tmp_path, capsys):
    assert bench([("bad", 1), ("a", 1)], "--jobs", "1") == 1
    told = capsys.readouterr().err
    assert (tmp_path / "a" / "hilap" / "0.valid.json").is_file()
    assert "bad/hilap/0 failed:\n    exit code 1\n    the disk is on fire" in told
    assert "1 done, 1 failed" in told


def test_a_run_that_ends_well_without_a_result_has_failed(bench, capsys):
    assert bench([("silent", 1)]) == 1
    assert "it ended well but" in capsys.readouterr().err


@pytest.mark.parametrize(("word", "expected"), [("a", ["a/hilap/0"]), ("a/hilap", ["a/hilap/0"])])
def test_only_chooses(word, expected, bench, capsys):
    assert bench([("a", 1), ("b", 1)], "--only", word, "--list") == 0
    assert capsys.readouterr().out.split() == expected


def test_data_models_and_test_are_handed_on(bench, tmp_path):
    assert bench([("a", 1)], "--data", "D", "--models", "M", "--test") == 0
    options = json.loads((tmp_path / "a" / "hilap" / "0.json").read_text())["options"]
    assert options[-7:] == ["--out", str(tmp_path), "--test", "--data", "D", "--models", "M"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ending_the_suite_ends_its_runs(number, tmp_path):
    (tmp_path / "runner.py").write_text(RUNNER)
    code = f"import sys, pathlib; sys.path.insert(0, {str(BENCH)!r}); import suite; "
    code += f"suite.RUNNER = pathlib.Path({str(tmp_path / 'runner.py')!r}); sys.exit(suite.main())"
    words = ["--queue", str(queue_of(tmp_path, [("slow", 3)])), "--out", str(tmp_path)]
    process = subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while len(started(tmp_path)) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(number)
    told = process.communicate(timeout=30)[1].decode()
    assert process.returncode == 128 + number
    assert "0 done, 0 failed, 3 left" in told
    children = [int(line[1]) for line in started(tmp_path)]
    assert len(children) == 2
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[[entries", "not valid TOML"),
        ("", "there is nothing to run"),
        ('[[entries]]\nset = "a"', "entry 1: needs exactly set, methods and seeds"),
        (
            '[[entries]]\nset = ""\nmethods = ["hilap"]\nseeds = 1',
            "entry 1: set must be the name of a data set, got ''",
        ),
        ('[[entries]]\nset = "a"\nmethods = []\nseeds = 1', "entry 1: methods must be a list of names, got []"),
        ('[[entries]]\nset = "a"\nmethods = ["hilup"]\nseeds = 1', "(the files of settings/), got 'hilup'"),
        ('[[entries]]\nset = "a"\nmethods = ["hilap"]\nseeds = 0', "seeds must be a number of at least 1, got 0"),
        ('[[entries]]\nset = "a"\nmethods = ["hilap"]\nseeds = true', "seeds must be a number of at least 1, got True"),
    ],
)
def test_a_bad_queue_is_refused(content, message, tmp_path):
    path = tmp_path / "queue.toml"
    path.write_text(content)
    with pytest.raises(SettingError, match=re.escape(message)) as caught:
        suite.read_queue(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--jobs", "0"], "--jobs must be at least 1, got 0"), (["--only", "x"], "--only must be a set or method")],
)
def test_bad_options_get_a_sentence_and_exit_code_2(words, message, bench, capsys):
    assert bench([("a", 1)], *words) == 2
    assert message in capsys.readouterr().err


def counted(queue: Path) -> dict[tuple[str, str], int]:
    """(set, method) -> how many seeds, which must be the first ones."""
    found: dict[tuple[str, str], list[int]] = {}
    for job in suite.read_queue(queue, run.HERE / "settings"):
        found.setdefault((job.set, job.method), []).append(job.seed)
    assert all(seeds == list(range(len(seeds))) for seeds in found.values())
    return {key: len(seeds) for key, seeds in found.items()}


TEXTS = ("arxiv", "trove", "medline")
PAPERS_ENCODERS = ("textcnn-", "han-", "bowcnn-")
# Not `hsvm`, `hr-svm` and `hr-lr`, which stop near their optimum: seeds of `hsvm` on trove lie a point apart.
CERTAIN = {"svm", "svm-zero", "svm-refit", "leaf-svm", "td-svm", "clus-hmc"}
QUEUES = ["suite.toml", "beyond.toml", "paper.toml", "quick.toml"]


def check_planned(queue: Path, wanted: dict[tuple[str, str], int]) -> None:
    """All that should be in a queue is there with its seeds; whoever works on the bench may add more."""
    found = counted(queue)
    assert {key: found.get(key) for key in wanted} == wanted


def check_once(queue: Path) -> None:
    """Nothing stands in a queue twice: `read_queue` would run it once, with the larger number of seeds."""
    entries = suite.tomllib.loads(queue.read_text(encoding="utf-8"))["entries"]
    named = Counter((entry["set"], method) for entry in entries for method in entry["methods"])
    assert [f"{name}/{method}" for (name, method), times in named.items() if times > 1] == []


BEYOND = ["clus-hmc-ens", "hmcn-authors", "hmcn-authors-tuned", "hmcn-r", "hmcn-r-tuned"]  # on texts, beyond the paper
PRESETS_OWN = [f"{encoder}{part}" for encoder in PAPERS_ENCODERS for part in ("hilap", "flat-members")]  # beyond it too
ALSO_BEYOND = {"hilap-residual", "hmcn-authors-refit", *PRESETS_OWN}


def planned() -> dict[tuple[str, str], int]:
    """What must be in suite.toml: (set, method) -> how many seeds."""
    ours = dict.fromkeys(["hilap", "hilap-start", "hilap-flat-members", "hilap-preset"], 3)
    # CSSA draws landmarks only from many documents; smooth losses come to their goal on features.
    once = CERTAIN | {"cssa", "cssa-refit", "hr-svm-squared", "hr-lr"}
    on_features = {method: 1 if method in once else 3 for method in records.BASELINES}
    for method in ("hr-dgcnn", "c-hmcnn-refit", "svm-scutfbr-refit", "hr-svm-refit", "hmcn-authors-refit"):
        del on_features[method]  # texts alone; c-hmcnn-paper learns anew by itself; weak on features; beyond the paper
    on_features |= ours | {"hilap-paper": 3}
    features = {(name, method): seeds for name in ("funcat", "go") for method, seeds in on_features.items()}
    # What authors give for FunCat and GO, the paper's network for features, and what is strong on features alone.
    not_on_texts = {"c-hmcnn-paper", "flat-half", "hmcn-authors-refit", *BEYOND}
    read = {method: 1 if method in CERTAIN else 3 for method in records.BASELINES if method not in not_on_texts}
    of_the_paper = [
        method for method in records.BASE_METHODS if method.startswith(PAPERS_ENCODERS) and method not in ALSO_BEYOND
    ]
    read |= ours | dict.fromkeys(of_the_paper, 3)
    texts = {(name, method): seeds for name in TEXTS for method, seeds in read.items()}
    texts |= {(name, "hilap-macro"): 3 for name in (*TEXTS, "go")}
    ablation = {(name, method): 3 for name in ("arxiv", "funcat") for method in records.ABLATION}
    return features | texts | ablation


def test_the_committed_queue_has_all_that_is_planned():
    check_planned(suite.QUEUE, planned())


def test_the_committed_queue_is_a_nights_work():
    """Eight hours of two cores were the aim; what is told of it in the documents is this sum."""
    jobs = suite.read_queue(suite.QUEUE)
    minutes = [suite.minutes_of(job, {*jobs}) for job in jobs]
    assert sum(known for known in minutes if known is not None) / 60 / 2 < 10.5
    assert sum(known is None for known in minutes) < len(jobs) / 10


def test_time_that_a_job_of_the_queue_lends_is_not_counted_twice(tmp_path):
    whole, walk, read = (suite.Job("funcat", method, 0) for method in ("hilap", "hilap-start", "flat-half"))
    for job, settings, training in (
        (whole, {}, {"cpu_seconds": 600.0}),
        (walk, {"members_of": "hilap"}, {"cpu_seconds": 660.0, "members": {"cpu_seconds": 540.0}}),
        (read, {"of": "hilap"}, {"cpu_seconds": 600.0}),
    ):
        path = job.result(tmp_path, test=True)
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"settings": settings, "training": training}), encoding="utf-8")
    jobs = [whole, walk, read, suite.Job("funcat", "svm", 0)]
    assert [suite.minutes_of(job, {*jobs}, tmp_path) for job in jobs] == [10.0, 2.0, 0.0, None]
    assert suite.minutes_of(walk, {walk}, tmp_path) == 11.0  # nobody lends
    assert suite.minutes_of(suite.Job("funcat", "hilap", 2), {*jobs}, tmp_path) == 10.0  # as another seed of it
    assert suite.hours_words(jobs, 2, tmp_path) == "training takes about 0.1 hours, 2 at a time; of 1 no time is known"


@pytest.mark.parametrize("queue", QUEUES)
def test_nothing_stands_twice_in_a_queue(queue):
    check_once(BENCH / queue)


def test_what_is_beyond_the_paper_has_a_queue_of_its_own():
    theirs = [method for method in records.BASE_METHODS if not method.startswith(PAPERS_ENCODERS)]
    wanted = {(name, method): 3 for name in TEXTS for method in ["hilap-minilm", *theirs, *BEYOND, *PRESETS_OWN]}
    wanted |= {("go", method): 3 for method in records.ABLATION if method != "hilap-paper"}
    wanted |= {(name, method): 3 for name in (*TEXTS, "funcat", "go") for method in ["hilap-residual"]}
    wanted |= {("funcat", "hilap-original"): 3, ("funcat", "hmcn-authors-refit"): 3, ("go", "hmcn-authors-refit"): 3}
    check_planned(BENCH / "beyond.toml", wanted)


def test_the_papers_queue_has_every_system_that_we_have_of_its_tables():
    found = counted(BENCH / "paper.toml")
    own = {"hilap", "hmcn", "hmcn-original", "svm-zero", "td-svm"}
    own |= {f"{encoder}-{framework}" for encoder in ("textcnn", "han", "bowcnn") for framework in records.FRAMEWORKS}
    for name in ("rcv1", "nyt", "yelp"):
        assert own <= {method for data, method in found if data == name}
    rcv1 = {method for name, method in found if name == "rcv1"}
    assert {"leaf-svm", "hsvm", "hr-svm", "hr-dgcnn", *records.ABLATION} <= rcv1
    assert {name for name, _ in found} <= set(run.DATASETS)


@pytest.mark.parametrize("name", ["rcv1", "nyt", "yelp"])
def test_neural_systems_have_settings_for_the_papers_sets_and_not_just_defaults(name):
    for method in ("hmcn", "hmcn-original", "hmcn-authors", "hmcn-r", "hmcn-tuned"):
        settings = run.settings_of(method, name, [])
        assert (settings["encoder"], settings["encoder_options"]) == ("bowcnn", {"preset": "paper"})
    assert run.settings_of("hmcn-tuned", name, []) == run.settings_of("bowcnn-hmcn", name, [])  # so one is run
    options = run.settings_of("hr-dgcnn", name, [])["encoder_options"]
    assert options["dropout"] < 0.5
    assert options["vectors"].startswith("data:vectors/glove")


@pytest.mark.parametrize(("name", "player"), ROLES.items())
def test_the_licensed_sets_have_the_recommended_settings_of_those_that_play_their_roles(name, player):
    ours, theirs = (run.settings_of("hilap", which, []) for which in (name, player))
    assert ours == theirs != {"preset": "residual"}


def test_the_papers_bow_cnn_on_rcv1_differs_from_its_ablation_in_what_validation_chooses_alone():
    ablation, framework = (run.settings_of(method, "rcv1", []) for method in ("hilap-paper", "bowcnn-paper"))
    differing = {key for key in {*ablation, *framework} if ablation.get(key) != framework.get(key)}
    assert differing == {"select", "tune", "patience", "supervised_weight"}  # what the files of both say, and why


def test_other_results_do_not_overwrite_what_is_made_from_the_committed_ones(tmp_path, capsys):
    write_result(tmp_path, "funcat", "svm", 0)
    figures = pytest.importorskip("figures")
    before = table.PAGE.stat().st_mtime_ns, table.README.stat().st_mtime_ns
    for script, kept in ((table, "results.md"), (figures, "figures")):
        assert script.main(["--results", str(tmp_path)]) == 2
        told = capsys.readouterr().err
        assert f"--results {tmp_path} without --out would overwrite" in told
        assert f"{kept}, made from the committed results; say where, by --out" in told
    assert (table.PAGE.stat().st_mtime_ns, table.README.stat().st_mtime_ns) == before
    assert table.main(["--results", str(tmp_path), "--out", str(tmp_path / "page.md")]) == 0
    assert "from a folder of results that is not the committed one" in (tmp_path / "page.md").read_text(
        encoding="utf-8"
    )


def test_the_papers_queue_becomes_tables_and_figures_beside_its_results(tmp_path, capsys):
    """What paper.toml tells to do once everything has run, on made-up results."""
    counts = {"right": "1 1 1", "placed": "2 2 2", "gold": "2 2 2"}
    labels = {**counts, "training": "3 2 1", "level": "1 2 3"}
    for job in suite.read_queue(BENCH / "paper.toml"):
        kept = {"settings": run.settings_of(job.method, job.set, []), "counts": {"documents": counts, "labels": labels}}
        write_result(tmp_path, job.set, job.method, job.seed, **kept)
    committed = [ROOT / "README.md", ROOT / "docs" / "results.md", *(ROOT / "docs" / "figures").iterdir()]
    before = [(path, path.stat().st_mtime_ns) for path in committed]
    figures = pytest.importorskip("figures")
    out = tmp_path / "figures"
    assert figures.main(["base_models", "gains", "--results", str(tmp_path), "--out", str(out)]) == 0
    assert capsys.readouterr().out.split("\n")[:2] == ["base_models: 3 sets", "gains: 3 sets"]
    assert {path.name for path in out.glob("*.svg")} == {"base_models.svg", "gains.svg"}
    assert table.main(["--results", str(tmp_path), "--out", str(tmp_path / "results.md")]) == 0
    page = (tmp_path / "results.md").read_text(encoding="utf-8")
    for heading in ("### Table 2: RCV1", "### Table 3: NYT", "### Table 3: Yelp", "### RCV1: ablation"):
        assert f"{heading}\n" in page
    assert not re.search(r"^#.*played by", page, re.MULTILINE)  # each is itself
    row = cells_of(page, "Table 2: RCV1", "HiLAP (bow-CNN)")
    assert (row["Seeds"], row["*paper, RCV1: Macro-F1*"]) == ("3", "60.1")
    assert cells_of(page, "HMCN's orders (the paper's Table 8)", "Yelp")["*paper*"] == "HMCN (original), Yelp"
    assert [(path, path.stat().st_mtime_ns) for path in committed] == before


def check_shared(queue: Path) -> None:
    """What a method takes of another one's model is trained before."""
    jobs = list(counted(queue))
    for at, (name, method) in enumerate(jobs):
        settings = run.settings_of(method, name, [])
        owner = settings.get("of", settings.get("members_of", method))
        assert (name, owner) in jobs[: at + 1], f"{method} on {name} wants {owner}'s model"


def check_made(queue: Path) -> None:
    """Every system can be made with its settings, and those of the sets of texts that we know are for texts."""
    for name, method in counted(queue):
        settings = run.settings_of(method, name, [])
        if "of" in settings:
            if method in records.NAMES:
                assert set(settings) in ({"of", "threshold"}, {"of", "repair"})  # what any baseline can change
            settings = run.settings_of(settings["of"], name, [])
        for options in run.OPTIONS:
            if "package:" in str(settings.get(options)):
                settings[options]["model"] = "a folder"
        given = {key: value for key, value in run.located(settings, Path("data")).items() if key not in run.OURS}
        made = run.kind_of(settings)(**given, seed=0)
        if not run.is_own(settings):
            made.check()  # raises where a setting is unknown or impossible
            if name in (*TEXTS, "rcv1", "nyt", "yelp"):
                assert made.get_params().get("encoder") not in ("mlp", "rows"), f"{method} on {name}: these are texts"


@pytest.mark.parametrize("queue", QUEUES[:3])
def test_what_is_shared_is_trained_before_it_is_asked_for(queue):
    check_shared(BENCH / queue)


@pytest.mark.parametrize("queue", QUEUES)
def test_every_system_of_a_queue_can_be_made_with_its_settings(queue):
    check_made(BENCH / queue)


OWN_FILES = {  # what somebody adds to the bench: a system, other readings of it, and forms of HiLAP
    "mine.py": """
        class Mine:
            def __init__(self, width=1, seed=0): ...
            def fit(self, train, valid=None): ...
            def predict(self, examples): ...
            def predict_proba(self, examples): ...
            def save(self, folder): ...
            @classmethod
            def load(cls, folder): ...
    """,
    "mine.toml": '[all]\nsystem = "mine.py:Mine"\nwidth = 2\n',
    "mine-wide.toml": '[all]\nof = "mine"\nwidth = 3\n',
    "hilap-mine.toml": '[all]\npreset = "residual"\nencoder = "mlp"\n',
    "hilap-mine-flat.toml": '[all]\nmembers_of = "hilap-mine"\nvariant = "flat"\n',
}
OWN_LINE = '\n[[entries]]\nset = "{name}"\nmethods = [{methods}]\nseeds = 1\n'


def with_lines(tmp_path: Path, monkeypatch, *lines: dict[str, str]) -> Path:
    """The committed queue with more lines at its end, and settings for them."""
    shutil.copytree(BENCH / "settings", tmp_path / "settings")
    for name, text in OWN_FILES.items():
        (tmp_path / "settings" / name).write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.setattr(run, "HERE", tmp_path)
    path = tmp_path / "suite.toml"
    added = [OWN_LINE.format(**line) for line in lines]
    path.write_text("".join([suite.QUEUE.read_text(encoding="utf-8"), *added]), encoding="utf-8")
    return path


def test_a_line_for_a_system_or_a_set_of_ones_own_is_welcome_in_the_queue(tmp_path, monkeypatch):
    methods = ", ".join(f'"{name[:-5]}"' for name in OWN_FILES if name.endswith(".toml"))
    lines = {"name": "genes", "methods": f'{methods}, "svm", "hilap"'}, {"name": "funcat", "methods": methods}
    path = with_lines(tmp_path, monkeypatch, *lines)
    check_planned(path, planned())
    check_once(path)
    check_shared(path)
    check_made(path)
    assert {("genes", "mine"), ("genes", "hilap"), ("funcat", "hilap-mine-flat")} <= set(counted(path))


def test_a_queue_that_lacks_something_or_has_it_twice_is_found(tmp_path, monkeypatch):
    path = with_lines(tmp_path, monkeypatch, {"name": "go", "methods": '"svm"'})
    with pytest.raises(AssertionError, match="go/svm"):
        check_once(path)
    path.write_text(path.read_text(encoding="utf-8").replace('"hilap-start", ', "", 1), encoding="utf-8")
    with pytest.raises(AssertionError, match="hilap-start"):
        check_planned(path, planned())


# --- what methods share ----------------------------------------------------------------------------------------------

SHARED = {
    "net": """
        system = "flat"
        encoder = "tfidf"
        encoder_options = { min_df = 1, hidden = [4] }
        tune = "mean"
        epochs = 3
    """,
    "net-half": 'of = "net"\nthreshold = 0.5',
    "walk": """
        preset = "residual"
        encoder = "tfidf"
        encoder_options = { min_df = 1, hidden = [4] }
        wide = false
        folds = 2
        flat_epochs = 2
        reinforced_epochs = 1
        learning_rate = 0.01
    """,
    "walk-flat": 'members_of = "walk"\nvariant = "flat"',
}


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A set of texts, methods that share what they train, and a function that runs one."""
    rng = np.random.default_rng(0)
    words = {"beer": "Bars", "court": "Law", "cake": "Food"}
    (tmp_path / "data" / "tiny").mkdir(parents=True)
    lines = [{"label": "Food", "parents": []}, {"label": "Bars", "parents": ["Food"]}, {"label": "Law", "parents": []}]
    (tmp_path / "data" / "tiny" / "taxonomy.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for part, n in (("train", 60), ("valid", 30), ("test", 30)):
        drawn = [rng.choice(list(words), size=2) for _ in range(n)]
        lines = [
            {"id": f"{part}{i}", "text": " ".join(w), "labels": [words[x] for x in w]} for i, w in enumerate(drawn)
        ]
        (tmp_path / "data" / "tiny" / f"{part}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "settings").mkdir()
    for method, text in SHARED.items():
        (tmp_path / "settings" / f"{method}.toml").write_text("[all]\n" + text)
    monkeypatch.setattr(run, "HERE", tmp_path)

    def result(method, models):
        return run.run("tiny", method, 0, test=True, changes=[], folder=tmp_path / "data", models=models)

    return result


def test_a_method_of_another_reads_its_network_otherwise(shared, tmp_path):
    net, half = (shared(method, tmp_path / "models") for method in ("net", "net-half"))
    assert half["decoding"] == {"threshold": 0.5, "thresholds_differ": False} != net["decoding"]
    assert half["training"] == net["training"]  # it was not trained again
    assert sorted(path.name for path in (tmp_path / "models" / "tiny").iterdir()) == ["net"]
    assert half["valid"] != net["valid"]
    assert half["test"] != net["test"]
    assert half["test"]["au_prc_pooled"] == net["test"]["au_prc_pooled"]
    alone = shared("net-half", None)  # trained for itself
    assert (alone["valid"], alone["test"]) == (half["valid"], half["test"])


def test_a_method_with_members_of_another_is_what_it_would_be_alone(shared, tmp_path, monkeypatch):
    whole = shared("walk", tmp_path / "models")
    flat = shared("walk-flat", tmp_path / "models")
    assert flat["settings"]["flat_epochs"] == whole["settings"]["flat_epochs"] == 2
    assert flat["settings"]["variant"] == "flat"
    alone = shared("walk-flat", None)
    assert (alone["valid"], alone["test"], alone["decoding"]) == (flat["valid"], flat["test"], flat["decoding"])
    asked = []
    before = run.lent
    monkeypatch.setattr(run, "lent", lambda lender, data: asked.append(lender) or before(lender, data))
    (tmp_path / "models" / "tiny" / "walk-flat" / "0.json").unlink()
    assert shared("walk-flat", tmp_path / "models")["test"] == flat["test"]
    assert asked == [tmp_path / "models" / "tiny" / "walk" / "0"]  # and it was lent, not trained


def test_settings_like_those_of_another_method_differ_in_what_they_say(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "HERE", tmp_path)
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "one.toml").write_text('[all]\nsystem = "svm"\nstrength = 0.5\n[go]\nstrength = 2\n')
    (tmp_path / "settings" / "two.toml").write_text('[all]\nlike = "one"\nrefit = true\n[go]\ntune = "mean"\n')
    assert run.settings_of("two", "trove", []) == {"system": "svm", "strength": 0.5, "refit": True}
    assert run.settings_of("two", "go", []) == {"system": "svm", "strength": 2, "refit": True, "tune": "mean"}


class Asked:
    """A classifier that notes how many documents it is asked for at a time."""

    def __init__(self, made):
        self.made, self.sizes = made, []

    def predict(self, examples):
        return self.made.predict(examples)

    def predict_proba(self, examples):
        self.sizes.append(len(examples))
        return self.made.predict_proba(examples)


@pytest.mark.parametrize("method", ["net", "walk"])
def test_a_large_test_split_is_judged_in_blocks_with_the_same_figures(shared, tmp_path, monkeypatch, method):
    shared(method, tmp_path / "models")
    parts = run.parts_of("tiny", tmp_path / "data")
    settings = {**run.settings_of(method, "tiny", []), "seed": 0}
    made, _ = run.trained_model(settings, parts, tmp_path / "models" / "tiny" / method / "0")
    told = []
    for most, sizes in ((run.MOST_PAIRS, [30]), (24, [8, 8, 8, 6])):
        monkeypatch.setattr(run, "MOST_PAIRS", most)
        monkeypatch.setattr(run, "BLOCK", 8)
        asked, found = Asked(made), {}
        scores = run.on_test(asked, parts, found)
        assert asked.sizes == sizes
        told.append((scores, found["counts"], found["precision_recall"], found["reliability"]))
    assert told[0] == told[1]


def bytes_of_judging(documents: int) -> int:
    """The most that is held while so many documents are judged, with labels as on RCV1: 103, 3.24 a document."""
    rng = np.random.default_rng(0)
    taxonomy = Taxonomy.of({f"l{i}": [] for i in range(103)})

    def drawn(n):
        given = sparse.random_array((n, 103), density=3.24 / 103, format="csr", rng=rng)
        given.data[:] = 1
        return Examples(taxonomy, [str(i) for i in range(n)], given.astype(np.int32), texts=[""] * n)

    parts = {"train": drawn(200), "valid": drawn(100), "test": drawn(documents)}
    placed, chances = drawn(documents).labels, rng.random((documents, 103), dtype=np.float32)
    made = Mock(predict=lambda _: placed, predict_proba=lambda some: chances[: len(some)].copy())
    tracemalloc.start()
    try:
        run.on_test(made, parts, {})
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_judging_rcv1_takes_the_memory_that_the_page_says(monkeypatch):
    for module, name in ((ranking, "MOST_SCORES"), (calibration, "AT_A_TIME"), (run, "MOST_PAIRS")):
        monkeypatch.setattr(module, name, 100_000)  # blocks have their full size here too, so they drop out
    few, many = 3_000, 12_000
    each = (bytes_of_judging(many) - bytes_of_judging(few)) / (many - few)
    row = dict(
        zip(PAPER["tables"]["table_data"]["columns"], PAPER["tables"]["table_data"]["rows"]["RCV1"], strict=True)
    )
    assert (row["labels"], row["mean_labels"]) == (103, 3.24)
    page = " ".join((ROOT / "docs" / "how_to" / "reproduce.md").read_text(encoding="utf-8").split())
    documents, gigabytes = re.search(r"judging its ([\d,]+) test documents about ([\d.]+) GB", page).groups()
    assert int(documents.replace(",", "")) == row["test"]
    assert float(gigabytes) == pytest.approx(each * row["test"] / 1e9, abs=0.25)  # whose blocks are some 100 MB
    told = float(re.search(r"in it take about ([\d.]+) bytes a pair", page)[1])
    assert told == pytest.approx(each / row["labels"], abs=1)


def data_of(folder):
    parts = run.parts_of("tiny", folder / "data")
    return {part: run.hash_of(parts[part]) for part in ("train", "valid", "test")}


def test_the_time_of_lent_members_is_added_by_both_clocks(shared, tmp_path, monkeypatch):
    shared("walk", tmp_path / "models")
    before = run.lent
    monkeypatch.setattr(
        run, "lent", lambda lender, data: (before(lender, data)[0], {"seconds": 1000.0, "cpu_seconds": 2000.0})
    )
    spent = shared("walk-flat", tmp_path / "models")["training"]
    assert spent.pop("members") == {"seconds": 1000.0, "cpu_seconds": 2000.0}
    assert 1000 <= spent["seconds"] < 1100  # to a tenth
    assert 2000 <= spent["cpu_seconds"] < 2100
    monkeypatch.setattr(run, "lent", before)
    told = before(tmp_path / "models" / "tiny" / "walk-flat" / "0", data_of(tmp_path))[1]
    assert told == {"seconds": 1000.0, "cpu_seconds": 2000.0}  # lent on, they are what they were


def test_a_test_result_of_changed_settings_cannot_stand_where_those_of_the_settings_do(monkeypatch, tmp_path):
    words = ["run.py", "--set", "tiny", "--method", "svm", "--test", "--change", "strength=3"]
    monkeypatch.setattr(
        run, "run", lambda *_, **__: {"test": dict.fromkeys(("micro_f1", "macro_f1", "example_f1"), 0.5)}
    )
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SettingError, match=r"--change with --test would write strength=3 where .*; name another"):
        run.main()
    monkeypatch.setattr(sys, "argv", [*words, "--out", str(tmp_path)])
    run.main()
    assert (tmp_path / "tiny" / "svm" / "0.json").is_file()


def test_members_that_are_asked_for_and_not_there_are_an_error_not_trained_anew(shared, tmp_path):
    with pytest.raises(SystemExit, match=r"--members: there is no model .*walk.0; keep one there with --models"):
        run.run(
            *("tiny", "walk-flat", 0),
            test=False,
            changes=[],
            folder=tmp_path / "data",
            models=None,
            members=tmp_path / "nowhere",
        )
