"""The paper's Tables 2 and 3: its systems on its licensed sets, beside the same systems on the sets that we have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cells import F1, HEADINGS, NONE, figure, score_cells
from records import SETS, Runs

from hilap.metrics.words import markdown_table

ROLES = {"rcv1": "arxiv", "nyt": "trove", "yelp": "medline"}  # the paper's set -> who plays it where it is not at hand
TABLES = ("table_rcv1", "table_yelp")
SYSTEMS = {  # the paper's row -> ours: first as the paper has it, then as we would have it
    "Leaf-SVM": ("leaf-svm",),
    "SVM": ("svm-zero", "svm"),
    "TextCNN": ("textcnn-flat-half", "textcnn-flat"),
    "HAN": ("han-flat-half", "han-flat"),
    "bow-CNN": ("bowcnn-flat-half", "bowcnn-flat"),
    "TD-SVM": ("td-svm",),
    "HSVM": ("hsvm",),
    "HR-SVM": ("hr-svm-leaves", "hr-svm"),
    "HR-DGCNN": ("hr-dgcnn",),
    "HMCN": ("bowcnn-hmcn", "hmcn", "hmcn-tuned"),
    "HiLAP (TextCNN)": ("textcnn-paper", "textcnn-hilap"),
    "HiLAP (HAN)": ("han-paper", "han-hilap"),
    "HiLAP (bow-CNN)": ("bowcnn-paper", "bowcnn-hilap"),
}
OWN = ("*not in the paper*", "hilap")  # stands on SVMs, not on these encoders
WORDS = """\
The systems of the paper's Tables 2 and 3, in its order. RCV1, NYT and Yelp are under licence and not at hand: their
roles are played by arXiv, trove and MEDLINE, so figures compare down a column and not across. A row of the paper can
have several of ours: as it has the system (a network at 0.5, the paper's policy), and as we would (a tuned threshold,
the recommended preset on the same encoder). The last row is `hilap` itself, which stands on SVMs and not on an encoder;
systems later than the paper are in the tables of the sets above. A dash: not run yet, or not in the paper. Bold: the
best of ours in this table."""


def role_section(pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[str]:
    """One table for each of the paper's text sets, of those whose own results or whose player's are here."""
    parts = []
    for key in TABLES:
        table = paper["tables"][key]
        for name in dict.fromkeys(column.partition("/")[0] for column in table["columns"]):
            ours = name if name in pages else ROLES[name]
            shown = role_rows(pages.get(ours, ()), table, name)
            if shown:
                told = f"### Table {table['number']}: {SETS[name]}" + (
                    "" if ours == name else f", played by {SETS[ours]}"
                )
                headings = [*HEADINGS.values(), *(f"*paper, {SETS[name]}: {word}*" for word in HEADINGS.values())]
                parts += [told, markdown_table(["The paper's row", "Ours", "Seeds", *headings], shown)]
    return ["## The paper's systems on texts (its Tables 2 and 3)", WORDS, *parts] if parts else []


def role_rows(runs: Sequence[Runs], table: Mapping[str, Any], name: str) -> list[list[str]]:
    """The rows of one set; none where none of the systems has been run."""
    known = {one.method: one for one in runs}
    listed = [(row, known.get(method)) for row in table["rows"] for method in SYSTEMS[row]]
    if listed and any(one is not None for _, one in listed) and OWN[1] in known:
        listed.append((OWN[0], known[OWN[1]]))
    cells = dict(
        zip(
            (one.method for _, one in listed if one is not None),
            score_cells([one for _, one in listed if one is not None], F1),
            strict=True,
        )
    )
    if not cells:
        return []
    places = [table["columns"].index(f"{name}/{metric}") for metric in F1]
    found, before = [], None
    for row, one in listed:
        if one is None and (row == before or any(other is not None for same, other in listed if same == row)):
            continue  # another of ours stands for it
        printed = table["rows"].get(row, [None] * len(table["columns"]))
        theirs = [figure(printed[place]) if row != before else "" for place in places]
        ours = (
            [NONE, NONE, *[NONE] * len(F1)] if one is None else [one.title, str(len(one.records)), *cells[one.method]]
        )
        found.append([row if row != before else "", *ours, *theirs])
        before = row
    return found
