"""What whoever opens the page first needs: which sets these are, and what is where."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cells import NONE, figure, listing, markdown_table, wrapped
from records import SETS, Runs
from roles import ROLES

from hilap.errors import HilapError

COUNTS = ("labels", "levels", "train", "valid", "test")  # what of a shape is counted
KEYS = ("labels", "structure", "levels", "labels_per_document", "train", "valid", "test")
SHAPES = {  # of the sets whose results do not say it, by KEYS; a test compares them with the data
    "funcat": (499, "tree", 6, 8.76, 1_628, 848, 1_281),
    "go": (4_125, "DAG", 14, 34.9, 1_625, 848, 1_278),
    "arxiv": (114, "tree", 3, 4.3, 16_790, 1_809, 7_233),
    "trove": (107, "tree", 4, 3.3, 7_038, 758, 3_031),
    "medline": (385, "DAG", 8, 9.5, 5_235, 564, 2_256),
}
KINDS = {
    "funcat": "genes, 77 features",
    "go": "genes, 77 features",
    "arxiv": "titles and abstracts",
    "trove": "descriptions of packages",
    "medline": "titles and abstracts",
}
IN_PAPER = {"rcv1": "RCV1", "nyt": "NYT", "yelp": "Yelp", "funcat": "FunCat", "go": "GO"}  # set -> its row in Table 1
AS_PRINTED = "as the paper has it"
SETS_WORDS = """\
As the paper's Table 1. *Labels* are all of the taxonomy, *labels per document* with all ancestors. *Levels* of a DAG
are those of the longest way down; elsewhere on this page a label's level is that of the shortest."""
ABSENT = "{sets} {are} under licence: where {they} not at hand, sets of ours play {their}."


def anchor(heading: str) -> str:
    """The part of an address behind # that leads to a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def contents(parts: Iterable[str]) -> str:
    """A list of the sections of a page, each with a link."""
    headings = re.findall(r"^## (.+)$", "\n".join(parts), re.MULTILINE)
    return "\n".join(f"- [{heading}](#{anchor(heading)})" for heading in headings)


def sets_section(pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[str]:
    """The sets of the page, as their results have them."""
    rows = [_row(name, pages, paper) for name in pages]
    if not rows:
        return []
    absent = [SETS[name] for name in ROLES if name not in pages]
    words = SETS_WORDS
    if absent:
        are, they, their = ("is", "it is", "its role") if len(absent) == 1 else ("are", "they are", "their roles")
        words += f" {ABSENT.format(sets=listing(absent), are=are, they=they, their=their)}"
    headings = ["Set", "What", "Labels", "Structure", "Levels", "Labels per document", "Train", "Valid", "Test"]
    table = markdown_table(headings, rows)
    return [f"## The sets (the paper's Table {paper['tables']['table_data']['number']})", wrapped(words), table]


def _row(name: str, pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[str]:
    """One set: as its results say, else as it is listed here, else as the paper prints it; else dashes."""
    told = shape_in(pages[name])
    kind = KINDS.get(name, NONE if told is None else told["inputs"])
    if told is not None:
        shape: Mapping[str, Any] = told
    elif name in SHAPES:
        shape = dict(zip(KEYS, SHAPES[name], strict=True))
    elif name in IN_PAPER:
        shape, kind = _printed(name, paper), AS_PRINTED
    else:
        return [SETS.get(name, name), kind, *[NONE] * len(KEYS)]
    labels, structure, levels, mean, *sizes = (shape[key] for key in KEYS)
    what = kind if kind == AS_PRINTED else "; ".join(filter(None, (kind, _role(name, pages))))
    cells = [what, f"{labels:,}", structure, NONE if levels is None else str(levels), figure(mean)]
    return [SETS.get(name, name), *cells, *(f"{size:,}" for size in sizes)]


def _role(name: str, pages: Mapping[str, Sequence[Runs]]) -> str:
    """What a set has to do with the paper: it is one of its own, or plays one that is not on the page."""
    played = [SETS[theirs] for theirs, ours in ROLES.items() if ours == name and theirs not in pages]
    return "the paper's own" if name in IN_PAPER else f"role of {listing(played)}" if played else ""


def _printed(name: str, paper: Mapping[str, Any]) -> dict[str, Any]:
    """A shape as the paper has it: it does not say how many levels there are."""
    table = paper["tables"]["table_data"]
    known = dict(zip(table["columns"], table["rows"][IN_PAPER[name]], strict=True))
    structure = "tree" if known["structure"] == "Tree" else known["structure"]
    return {**known, "structure": structure, "levels": None, "labels_per_document": known["mean_labels"]}


def shape_in(runs: Sequence[Runs]) -> dict[str, Any] | None:
    """What the results of a set say of its shape; None where all of them are older than that."""
    for one in runs:
        for record in one.records:
            if "shape" in record:
                shape = record["shape"]
                if not _is_shape(shape):
                    raise HilapError(
                        f"{one.name}/{one.method}: shape must have {', '.join(('inputs', *KEYS))} as run.py writes "
                        f"them, got {shape!r}; run it again with --again"
                    )
                return dict(shape)
    return None


def _is_shape(value: Any) -> bool:
    if not isinstance(value, dict) or not {"inputs", *KEYS} <= set(value):
        return False
    words = isinstance(value["inputs"], str) and value["structure"] in ("tree", "DAG")
    mean = value["labels_per_document"]
    counted = all(type(value[key]) is int and value[key] >= 0 for key in COUNTS)
    return words and counted and type(mean) in (int, float) and 0 <= mean < math.inf
