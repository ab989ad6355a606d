"""The paper's Tables 2, 3 and 5: its systems on its sets, beside the same systems on the sets that we have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cells import F1, HEADINGS, NONE, figure, listing, markdown_table, score_cells, wrapped
from certainty import best_words, comparisons, marks_of
from records import CALLED, SETS, Runs

ROLES = {"rcv1": "arxiv", "nyt": "trove", "yelp": "medline"}  # the paper's set -> who plays it where it is not at hand
TABLES, FEATURES = ("table_rcv1", "table_yelp"), ("table_fungo",)
TEXTS = {  # the paper's row -> ours: first as the paper has it, then as we would have it
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
GENES = {
    "SVM": ("svm-zero", "svm"),
    "CSSA": ("cssa",),
    "CLUS-HMC": ("clus-hmc", "clus-hmc-ens"),
    "HMCN": ("hmcn", "hmcn-closed", "hmcn-tuned"),
    "HiLAP": ("hilap-paper", "hilap"),
}
SYSTEMS = dict.fromkeys(TABLES, TEXTS) | dict.fromkeys(FEATURES, GENES)  # table -> its rows and ours
Pair = tuple[str, Runs | None]  # a row of the paper, a run of ours
OWN = ("*not in the paper*", "hilap")  # on texts it stands on SVMs, not on these encoders
WORDS = """\
The systems of the paper's Tables 2 and 3, in its order. {players} A row of the paper can have several of ours: as it
has the system (a network at 0.5, the paper's policy), and as we would (a tuned threshold, the preset `residual` on the
same encoder). The last row is `hilap` itself, which stands on SVMs and not on an encoder; systems later than the paper
are in the tables of the sets above. A dash: not run yet, or not in the paper. Bold: the best of ours in this table."""
PLAYED = """\
{sets} {are} under licence and not at hand: {roles} played by {players}, so {figures} down a column and not across.
Where a role is played, the paper's encoders have their light presets, and TextCNN and HAN read 128 words
([details](details.md), points 8 and 34)."""
GENE_WORDS = """\
The systems of the paper's Table 5, in its order, on the same data. A row of the paper can have several of ours: first
as it has the system, where we know how it read labels off it (of CSSA and CLUS-HMC we do not: ours have a tuned
threshold; its CSSA is an open program that projects labels otherwise: [what that
does](baselines/trees.md#beside-the-papers-table-5)), then as we would (a tuned threshold, a forest for a tree, the
recommended preset). The paper's **Macro-F1 on GO** is about 1.5 times what ours would be for the same predictions
([why](#how-to-read-the-tables)): divide it before comparing. A dash: not run yet. Bold: the best of ours in this
table."""


def role_section(pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[str]:
    """The paper's text sets: one table for each, of those whose own results or whose player's are here."""
    parts = _tables(TABLES, pages, paper)
    words = wrapped(WORDS.format(players=_played_words(pages, paper)))
    return ["## The paper's systems on texts (its Tables 2 and 3)", words, *parts] if parts else []


def _played_words(pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> str:
    """Which of the tables are of sets that play a role; nothing where all are of the paper's own."""
    shown = [name for key in TABLES for name in sets_of(paper["tables"][key]) if _runs_of(name, key, pages, paper)]
    played = {name: player for name, player in players_of(pages).items() if name in shown}
    if not played:
        return ""
    one = len(played) == 1
    return PLAYED.format(
        sets=listing([SETS[name] for name in played]),
        are="is" if one else "are",
        roles="its role is" if one else "their roles are",
        players=listing([CALLED.get(player, player) for player in played.values()]),
        figures="figures compare" if set(shown) == set(played) else "figures there compare",
    )


def gene_section(pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[str]:
    """The paper's sets of genes, which are at hand."""
    parts = _tables(FEATURES, pages, paper)
    return ["## The paper's systems on genes (its Table 5)", GENE_WORDS, *parts] if parts else []


def _tables(keys: Sequence[str], pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[str]:
    """Heading, table and how sure the best of it is, for each set of these tables of the paper."""
    parts = []
    for key in keys:
        for name in sets_of(paper["tables"][key]):
            pairs = listed(pages.get(player_of(name, pages), ()), key, paper)
            mine = _runs_of(name, key, pages, paper)
            if mine:
                headings = [*HEADINGS.values(), *(f"*paper, {SETS[name]}: {word}*" for word in HEADINGS.values())]
                parts += [f"### {heading_of(key, name, pages, paper)}"]
                shown = role_rows(pairs, paper["tables"][key], name)
                parts += [markdown_table(["The paper's row", "Ours", "Seeds", *headings], shown)]
                parts += best_words(comparisons(mine))
    return parts


def _runs_of(name: str, key: str, pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[Runs]:
    """Those of ours that stand in a table of the paper for one of its sets."""
    return [one for _, one in listed(pages.get(player_of(name, pages), ()), key, paper) if one is not None]


def sets_of(table: Mapping[str, Any]) -> list[str]:
    """The sets of a table of the paper, in its order."""
    return list(dict.fromkeys(column.partition("/")[0] for column in table["columns"]))


def player_of(name: str, pages: Mapping[str, Sequence[Runs]]) -> str:
    """The set that has the role of one of the paper's: itself where it is at hand."""
    return name if name in pages else ROLES.get(name, name)


def players_of(pages: Mapping[str, Sequence[Runs]]) -> dict[str, str]:
    """Sets of the paper that are not on the page -> who plays their role there."""
    return {name: player for name, player in ROLES.items() if name not in pages and player in pages}


def heading_of(key: str, name: str, pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> str:
    """The heading over a set's table."""
    ours = player_of(name, pages)
    return f"Table {paper['tables'][key]['number']}: {SETS[name]}" + (
        "" if ours == name else f", played by {SETS[ours]}"
    )


def place_of(name: str, pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> str:
    """The heading under which the paper's figures on a set of its own stand beside ours; empty where they do not."""
    for key in SYSTEMS:
        if name in sets_of(paper["tables"][key]) and any(one for _, one in listed(pages[name], key, paper)):
            return heading_of(key, name, pages, paper)
    return ""


def listed(runs: Sequence[Runs], key: str, paper: Mapping[str, Any]) -> list[Pair]:
    """Each row of a table of the paper with runs of ours, None where one has not been run; ours alone at the end."""
    known = {one.method: one for one in runs}
    rows = paper["tables"][key]["rows"]
    found = [(row, known.get(method)) for row in rows for method in SYSTEMS[key][row]]
    named = [one.method for _, one in found if one is not None]
    if named and OWN[1] in known and OWN[1] not in named:
        found.append((OWN[0], known[OWN[1]]))
    return found


def role_rows(pairs: Sequence[Pair], table: Mapping[str, Any], name: str) -> list[list[str]]:
    """The rows of one set, of what `listed` gives."""
    mine = [one for _, one in pairs if one is not None]
    cells = dict(zip((one.method for one in mine), score_cells(mine, F1, marks_of(comparisons(mine))), strict=True))
    places = [table["columns"].index(f"{name}/{metric}") for metric in F1]
    found, before = [], None
    for row, one in pairs:
        if one is None and (row == before or any(other is not None for same, other in pairs if same == row)):
            continue  # another of ours stands for it
        printed = table["rows"].get(row, [None] * len(table["columns"]))
        theirs = [figure(printed[place]) if row != before else "" for place in places]
        ours = (
            [NONE, NONE, *[NONE] * len(F1)] if one is None else [one.title, str(len(one.records)), *cells[one.method]]
        )
        found.append([row if row != before else "", *ours, *theirs])
        before = row
    return found
