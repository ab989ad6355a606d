"""Sections of the page that set systems of one kind side by side: base models (Figure 3), HMCN (Table 8), areas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from cells import F1, HEADINGS, NONE, figure, mean_of, percent, score_cells, spread
from records import BASE_METHODS, BASE_NAMES, BASES, FRAMEWORKS, PAPERS_OWN, SETS, Runs

from hilap.metrics.words import markdown_table

HMCN = ("hmcn-authors", "hmcn-original", "hmcn", "hmcn-closed", "hmcn-tuned")
Found = dict[str, Runs]  # framework -> its runs

BASE_WORDS = """\
The same base model under each framework, as in the paper's Figure 3. *Flat*: one network, one sigmoid a label, at 0.5
as in the paper and with one threshold for all labels chosen on validation documents (*tuned*). *HMCN* is HMCN-F in the
paper's better order, tuned, its static features replaced by the base model. HiLAP-SL has the paper's policy. *HiLAP* is
the recommended preset: a policy on three cross-fitted networks of this base model, whose average is the row *flat,
HiLAP's nets*; so what the networks' number does and what the walk does, with its biases for labels, can be told apart.
*HiLAP, the paper's policy* is trained on one network, word for word as in the paper. What they choose on validation
documents (threshold, stop bias, epoch) is chosen for the same mean of the three scores. HiLAP's networks, also as
*flat, HiLAP's nets*, learn from the validation documents too, each scored by the networks that have not seen it; the
other rows learn from the training documents alone. On arXiv, trove and MEDLINE the encoders are the light presets, for
every framework alike; TextCNN and HAN start from GloVe's vectors (6B, 50 numbers a word) and read 128 words, and HAN,
which hardly learns at the usual rates, learns at 0.01. *Linear SVMs* are no encoder but what the recommended preset
stands on: its HiLAP is `hilap`, and *flat, HiLAP's nets* are its SVMs, on arXiv and MEDLINE condensed, on MEDLINE one
structured SVM for all labels. Bold: the best for this base model."""

HMCN_WORDS = """\
The paper adds local and global outputs before the sigmoid (*sum first*), the authors of HMCN after it (*sigmoids
first*): here the same network, trained in the same way. *As its authors have it* differs in more than that: both
outputs are fitted, with dropout, batch normalisation and the penalty ([the baselines](baselines/neural.md#hmcn)). The
program of the HiLAP paper adds the ancestors of predicted labels before it counts (*ancestors added*). *Tuned* is sum
first with a threshold chosen on validation documents instead of 0.5."""

AREAS_WORDS = """\
The pooled area under the precision-recall curve, beside what the systems' authors published for the same data. Clus
interpolates the curve, the others take average precision. On GO the authors of C-HMCNN leave out the three namespace
roots; figures without them are in brackets. What is published for CSSA, the forest and HMCN is as the table of Wehrmann
et al. 2018 has it, known to us from a public summary of their paper."""
AREAS = {  # method -> the figure of its authors on FunCat and on GO, and which curve they took
    "clus-hmc": ("Vens et al. 2008", (17.2, 35.7), "au_prc_interpolated"),
    "clus-hmc-ens": ("Schietgat et al. 2010", (22.7, 38.7), "au_prc_interpolated"),
    "cssa": ("Bi and Kwok 2011", (18.8, 36.6), "au_prc_interpolated"),
    "hmcn-authors": ("Wehrmann et al. 2018", (25.2, 40.0), "au_prc_pooled"),
    "c-hmcnn-paper": ("Giunchiglia and Lukasiewicz 2020", (25.5, 41.3), "au_prc_pooled"),
    "c-hmcnn": ("Giunchiglia and Lukasiewicz 2020", (25.5, 41.3), "au_prc_pooled"),
    "hilap": (NONE, (None, None), "au_prc_pooled"),
}


def areas_section(pages: Mapping[str, Sequence[Runs]]) -> list[str]:
    """Areas on FunCat and GO beside those of the systems' own papers, of each system that has some."""
    names = ("funcat", "go")
    known = {(name, one.method): one for name in names for one in pages.get(name, ())}
    rows = []
    for method, (source, printed, key) in AREAS.items():
        cells = []
        for name, theirs in zip(names, printed, strict=True):
            one = known.get((name, method))
            ours = NONE if one is None else spread(percent(one.values("test", key)))
            rest = [] if one is None else percent(one.values("test", f"rootless_{key}"))
            cells += [f"{ours} ({spread(rest)})" if rest else ours, figure(theirs)]
        if any((name, method) in known for name in names):
            title = next(known[name, method].title for name in names if (name, method) in known)
            rows.append([title, *cells, source])
    if not rows:
        return []
    headings = ["System", *(f"{SETS[name]}{word}" for name in names for word in ("", ", published")), "by"]
    return ["## Areas beside those published", AREAS_WORDS, markdown_table(headings, rows)]


def base_section(pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[str]:
    """Figure 3 as tables: each base model under each framework, set by set, then what HiLAP gains."""
    found = {name: bases_of(runs) for name, runs in pages.items() if any(one.method in BASE_METHODS for one in runs)}
    if not found:
        return []
    parts = ["## Base models (the paper's Figure 3)", BASE_WORDS]
    for name, bases in found.items():
        parts += [f"### {SETS.get(name, name)}: base models", base_table(bases)]
    return [*parts, "### What HiLAP gains on the same base model", gains_table(found, paper)]


def bases_of(runs: Sequence[Runs]) -> dict[str, Found]:
    """Base model -> framework -> runs, of those that a set has."""
    known = {one.method: one for one in runs}
    found = {
        base: {framework: known[method] for framework, method in methods.items() if method in known}
        for base, methods in BASES.items()
    }
    return {base: mine for base, mine in found.items() if mine}


def base_table(bases: Mapping[str, Found]) -> str:
    rows = []
    for base, mine in bases.items():
        runs = list(mine.values())
        for framework, one, cells in zip(mine, runs, score_cells(runs, F1), strict=True):
            shares = spread(percent(one.values("test", "inconsistent_share")))
            title = f"{BASE_NAMES[base]}: {FRAMEWORKS[framework]} (`{one.method}`)"
            rows.append([title, str(len(one.records)), *cells, shares])
    return markdown_table(["Base model and framework", "Seeds", *HEADINGS.values(), "Inconsistent %"], rows)


def gains_table(found: Mapping[str, Mapping[str, Found]], paper: Mapping[str, Any]) -> str:
    """HiLAP's mean relative gain in Macro-F1, and in how many cells it is best: ours, and as the paper says it."""
    every = [(base, mine) for bases in found.values() for base, mine in bases.items()]
    rows = []
    for title, chosen in (("TextCNN, HAN, bow-CNN", PAPERS_OWN), ("all base models above", tuple(BASES))):
        mine = [one for base, one in every if base in chosen]
        for ours, words in (("hilap", ""), ("paper", ", the paper's policy")):
            gains = [gain(mine, rival, ours) for rival in ("flat-half", "flat", "flat-members")]
            rivals = ("flat-half", "hmcn", "sl"), ("flat-half", "flat", "flat-members", "hmcn", "sl")
            if ours == "hilap" or any(ours in one for one in mine):
                rows.append([title + words, *gains, *(best_cells(mine, which, ours) for which in rivals)])
    claims = paper["claims"]
    rows.append(
        [
            "*paper: RCV1, NYT, Yelp*",
            *(f"+{claims['macro_gain']}%", NONE, NONE),
            *(f"{claims['best']} of {claims['cells']}", NONE),
        ]
    )
    headings = ["Base models", "Macro-F1 over flat at 0.5", "over flat, tuned", "over HiLAP's nets, tuned"]
    return markdown_table([*headings, "best of flat at 0.5, HMCN, SL, HiLAP", "best, all tuned flat ones too"], rows)


def gain(bases: Sequence[Found], rival: str, ours: str) -> str:
    """The mean over base models and sets of HiLAP's gain in Macro-F1, as a share of the rival's."""
    pairs = [(mean_of(mine.get(ours), "macro_f1"), mean_of(mine.get(rival), "macro_f1")) for mine in bases]
    shares = [100 * (reached / theirs - 1) for reached, theirs in pairs if reached is not None and theirs]
    return f"{fmean(shares):+.1f}% ({len(shares)} pairs)" if shares else NONE


def best_cells(bases: Sequence[Found], rivals: Sequence[str], ours: str) -> str:
    """In how many cells (set, base model, metric) HiLAP is best; only cells with HiLAP and a rival count."""
    best = cells = 0
    for mine in bases:
        for key in F1:
            reached = mean_of(mine.get(ours), key)
            others = [mean for mean in (mean_of(mine.get(rival), key) for rival in rivals) if mean is not None]
            if reached is not None and others:
                cells += 1
                best += round(reached, 2) > round(max(others), 2)  # as good is not best
    return f"{best} of {cells}" if cells else NONE


def hmcn_section(pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[str]:
    """HMCN's two orders on each set that has some of them, then the paper's on its own sets."""
    table, rows = paper["tables"]["table_hmcn"], []
    for name, runs in pages.items():
        known = {one.method: one for one in runs}
        mine = [known[method] for method in HMCN if method in known]
        for one, cells in zip(mine, score_cells(mine, F1), strict=True):
            rows.append([SETS.get(name, name), one.title, str(len(one.records)), *cells])
    if not rows:
        return []
    names = dict.fromkeys(column.partition("/")[0] for column in table["columns"])
    for name in names:
        places = [table["columns"].index(f"{name}/{key}") for key in F1]
        for system, values in table["rows"].items():
            rows.append([SETS[name], f"*paper: {system}*", NONE, *(figure(values[place]) for place in places)])
    headings = ["Set", "System", "Seeds", *HEADINGS.values()]
    return [f"## HMCN's orders (the paper's Table {table['number']})", HMCN_WORDS, markdown_table(headings, rows)]
