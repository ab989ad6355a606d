"""What whoever opens the page first needs: which sets these are, and what is where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cells import NONE, figure, markdown_table
from records import SETS

SHAPES = {  # what the data's own README says: labels, structure, levels, labels per document, train, valid, test
    "funcat": (499, "tree", 6, 8.76, 1_628, 848, 1_281),
    "go": (4_125, "DAG", 14, 34.9, 1_625, 848, 1_278),
    "arxiv": (114, "tree", 3, 4.3, 16_790, 1_809, 7_233),
    "trove": (107, "tree", 4, 3.3, 7_038, 758, 3_031),
    "medline": (385, "DAG", 8, 9.5, 5_235, 564, 2_256),
}
KINDS = {
    "funcat": "genes, 77 features; the paper's own",
    "go": "genes, 77 features; the paper's own",
    "arxiv": "titles and abstracts; role of RCV1",
    "trove": "descriptions of packages; role of NYT",
    "medline": "titles and abstracts; role of Yelp",
}
IN_PAPER = {"rcv1": "RCV1", "nyt": "NYT", "yelp": "Yelp"}  # sets of the paper that are not among ours
SETS_WORDS = """\
As the paper's Table 1. *Labels* are all of the taxonomy, *labels per document* with all ancestors. *Levels* of a DAG
are those of the longest way down; elsewhere on this page a label's level is that of the shortest. RCV1, NYT and Yelp
are under licence: where they are not at hand, sets of ours play their roles."""


def anchor(heading: str) -> str:
    """The part of an address behind # that leads to a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def contents(parts: Iterable[str]) -> str:
    """A list of the sections of a page, each with a link."""
    headings = re.findall(r"^## (.+)$", "\n".join(parts), re.MULTILINE)
    return "\n".join(f"- [{heading}](#{anchor(heading)})" for heading in headings)


def sets_section(names: Sequence[str], paper: Mapping[str, Any]) -> list[str]:
    """The sets of the page: ours as they are at hand, the paper's as it prints them; others are not known here."""
    rows = [row for name in names if (row := _row(name, paper))]
    if not rows:
        return []
    headings = ["Set", "What", "Labels", "Structure", "Levels", "Labels per document", "Train", "Valid", "Test"]
    table = markdown_table(headings, rows)
    return [f"## The sets (the paper's Table {paper['tables']['table_data']['number']})", SETS_WORDS, table]


def _row(name: str, paper: Mapping[str, Any]) -> list[str]:
    if name in SHAPES:
        labels, structure, levels, mean, *sizes = SHAPES[name]
        depth, kind = str(levels), KINDS[name]
    elif name in IN_PAPER:
        table = paper["tables"]["table_data"]
        known = dict(zip(table["columns"], table["rows"][IN_PAPER[name]], strict=True))
        labels, structure, mean = (known[key] for key in ("labels", "structure", "mean_labels"))
        sizes, depth, kind = [known[key] for key in ("train", "valid", "test")], NONE, "as the paper has it"
        structure = "tree" if structure == "Tree" else structure
    else:
        return []
    return [SETS[name], kind, f"{labels:,}", structure, depth, figure(mean), *(f"{size:,}" for size in sizes)]
