"""Sections of the page that set systems of one kind side by side: base models (Figure 3), HMCN (Table 8), areas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from cells import F1, HEADINGS, NONE, figure, markdown_table, mean_of, percent, score_cells, spread, wrapped
from certainty import comparisons, marks_of
from records import BASE_METHODS, BASE_NAMES, BASES, CALLED, FRAMEWORKS, PAPERS_OWN, SETS, Runs
from roles import player_of, players_of, sets_of

HMCN = {  # method -> its row in the paper
    "hmcn-authors": None,
    "hmcn-original": "HMCN (original)",
    "hmcn": "HMCN (ours)",
    "hmcn-closed": None,
    "hmcn-tuned": None,
}
OUR_AREA = ("hilap", "au_prc_pooled")  # ours, and the curve taken
LEAST_PAIRS = 3  # of base model and set: a mean over fewer says little
GAINS_WORDS = f"""\
Means over pairs of a base model and a set that both frameworks were run on; of fewer than {LEAST_PAIRS} pairs there is
none. *Best*: in how many cells of set, base model and score. Only cells count in which HiLAP and all that it is held
against were run, as far as the base model is combined with them at all; as good is not best."""
Found = dict[str, Runs]  # framework -> its runs

BASE_MODELS, AREAS = "## Base models (the paper's Figure 3)", "## Areas beside those published"
BASE_WORDS = """\
The same base model under each framework, as in the paper's Figure 3. *Flat*: one network, one sigmoid a label, at 0.5
as in the paper and with one threshold for all labels chosen on validation documents (*tuned*): one network read in two
ways, its epoch the best with the tuned threshold. *HMCN* is HMCN-F in the paper's better order, tuned, its static
features replaced by the base model. HiLAP-SL has the paper's policy. *HiLAP* is the preset `residual`, on which the
recommended one stands: a policy on three cross-fitted networks of this base model, whose average is the row *flat,
HiLAP's nets*; so what the networks' number does and what the walk does, with its biases for labels, can be told apart.
*HiLAP, the paper's policy* is trained on one network, word for word as in the paper, with an alpha of 30, which the
paper leaves open. What they choose on validation documents (threshold, stop bias,
epoch) is chosen for the same mean of the three scores. HiLAP's networks, also as *flat, HiLAP's nets*, learn from the
validation documents too, each scored by the networks that have not seen it; the other rows learn from the training
documents alone. On arXiv, trove and MEDLINE the encoders are the light presets, for every framework alike; TextCNN and
HAN start from GloVe's vectors (6B, 50 numbers a word) and read 128 words, and HAN, which hardly learns at the usual
rates, learns at 0.01. *Linear SVMs* are no encoder but what the recommended preset stands on: its HiLAP is `hilap`, and
*flat, HiLAP's nets* are its SVMs, on arXiv and MEDLINE condensed, on MEDLINE one structured SVM for all labels. Bold:
the best for this base model; † and ‡ are against the runner-up of this base model."""

HMCN_WORDS = """\
The paper adds local and global outputs before the sigmoid (*sum first*), the authors of HMCN after it (*sigmoids
first*): here the same network, trained in the same way. *As its authors have it* differs in more than that: both
outputs are fitted, with dropout, batch normalisation and the penalty; the paper of HMCN was not at hand, and of these
the sizes are from memory ([which](baselines/neural.md#hmcn)). The program of the HiLAP paper adds the ancestors of
predicted labels before it counts (*ancestors added*). *Tuned* is sum first with a threshold chosen on validation
documents instead of 0.5. The paper's figures stand in the row that has its order, on {place}: compare how far its two
orders lie apart with how far ours do, not figures across. A dash: it has none. Bold, † and ‡: the best of ours on a
set, and against its runner-up there."""

AREAS_WORDS = """\
The pooled area under the precision-recall curve, beside what the systems' authors published for the same data. Clus
interpolates the curve, the others take average precision. On GO the authors of C-HMCNN leave out the three namespace
roots; figures without them are in brackets. What is published for CSSA, the forest and HMCN is as the table of Wehrmann
et al. 2018 has it, known to us from a public summary of their paper and, for HMCN, from a program of other authors that
repeats the figures; the two agree. Ours of HMCN have details from memory ([which](baselines/neural.md#hmcn))."""


def areas_section(pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[str]:
    """Areas on FunCat and GO beside those of the systems' own papers, of each system that has some."""
    names = paper["areas"]["columns"]
    known = {(name, one.method): one for name in names for one in pages.get(name, ())}
    rows = []
    for row in [*paper["areas"]["rows"], _our_area(names)]:
        mine = [known.get((name, row["method"])) for name in names]
        title = next((one.title for one in mine if one is not None), None)
        if title is not None:
            pairs = zip(mine, row["values"], strict=True)
            cells = [cell for one, theirs in pairs for cell in (area_cell(one, row["curve"]), figure(theirs))]
            rows.append([title, *cells, row["source"]])
    if not rows:
        return []
    headings = ["System", *(f"{SETS[name]}{word}" for name in names for word in ("", ", published")), "by"]
    return [AREAS, AREAS_WORDS, markdown_table(headings, rows)]


def _our_area(names: Sequence[str]) -> dict[str, Any]:
    """Our own row: nobody has published it."""
    return {"method": OUR_AREA[0], "curve": OUR_AREA[1], "source": NONE, "values": [None] * len(names)}


def area_cell(one: Runs | None, key: str) -> str:
    """An area in percent, behind it in brackets that without the namespace roots, where it is known."""
    ours = [] if one is None else percent(one.values("test", key))
    rest = [] if one is None else percent(one.values("test", f"rootless_{key}"))
    return f"{spread(ours)} ({spread(rest)})" if rest else spread(ours)


def base_section(pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[str]:
    """Figure 3 as tables: each base model under each framework, set by set, then what HiLAP gains, and its reading."""
    found = {name: bases_of(runs) for name, runs in pages.items() if any(one.method in BASE_METHODS for one in runs)}
    if not found:
        return []
    parts = [BASE_MODELS, BASE_WORDS]
    for name, bases in found.items():
        parts += [f"### {SETS.get(name, name)}: base models", base_table(bases)]
    return [*parts, *gains_part(found, paper), *base_words(found)]


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
        for framework, one, cells in zip(mine, runs, score_cells(runs, F1, marks_of(comparisons(runs))), strict=True):
            shares = spread(percent(one.values("test", "inconsistent_share")))
            title = f"{BASE_NAMES[base]}: {FRAMEWORKS[framework]} (`{one.method}`)"
            rows.append([title, str(len(one.records)), *cells, shares])
    return markdown_table(["Base model and framework", "Seeds", *HEADINGS.values(), "Inconsistent %"], rows)


def gains_part(found: Mapping[str, Mapping[str, Found]], paper: Mapping[str, Any]) -> list[str]:
    """HiLAP's mean relative gain in Macro-F1, and in how many cells it is best: ours, and as the paper says it."""
    every = _places(found)
    rows = []
    for title, chosen in (("TextCNN, HAN, bow-CNN", PAPERS_OWN), ("all base models above", tuple(BASES))):
        mine = {place: one for place, one in every.items() if place[1] in chosen}
        for ours, words in (("hilap", ""), ("paper", ", the paper's policy")):
            shares = [gains_of(list(mine.values()), rival, ours) for rival in ("flat-half", "flat", "flat-members")]
            rivals = ("flat-half", "hmcn", "sl"), ("flat-half", "flat", "flat-members", "hmcn", "sl")
            if max(map(len, shares)) >= LEAST_PAIRS:
                best = [best_cells(mine, which, ours) for which in rivals]
                rows.append([title + words, *map(gain, shares), *best])
    if not rows:
        return []
    claims = paper["claims"]
    rows.append(
        [
            "*paper: RCV1, NYT, Yelp*",
            *(f"+{claims['macro_gain']}%", NONE, NONE),
            *(f"{claims['best']} of {claims['cells']}", NONE),
        ]
    )
    headings = ["Base models", "Macro-F1 over flat at 0.5", "over flat, tuned", "over HiLAP's nets, tuned"]
    headings += ["best of flat at 0.5, HMCN, SL, HiLAP", "best, all tuned flat ones too"]
    return ["### What HiLAP gains on the same base model", GAINS_WORDS, markdown_table(headings, rows)]


def gains_of(bases: Sequence[Found], rival: str, ours: str) -> list[float]:
    """HiLAP's gain in Macro-F1 as a share of the rival's, in percent, of every base model and set that has both."""
    pairs = [(mean_of(mine.get(ours), "macro_f1"), mean_of(mine.get(rival), "macro_f1")) for mine in bases]
    return [100 * (reached / theirs - 1) for reached, theirs in pairs if reached is not None and theirs]


def gain(shares: Sequence[float]) -> str:
    """The mean over base models and sets; a dash where they are too few for one."""
    return f"{fmean(shares):+.1f}% ({len(shares)} pairs)" if len(shares) >= LEAST_PAIRS else NONE


def _places(found: Mapping[str, Mapping[str, Found]]) -> dict[tuple[str, str], Found]:
    """Set and base model -> what was run there."""
    return {(name, base): mine for name, bases in found.items() for base, mine in bases.items()}


def best_cells(places: Mapping[tuple[str, str], Found], rivals: Sequence[str], ours: str) -> str:
    """In how many cells (set, base model, score) HiLAP is best.

    Only cells count that have HiLAP and all of these rivals, as far as the base model is combined with them at all.
    """
    best = cells = 0
    for (_, base), mine in places.items():
        wanted = [rival for rival in rivals if rival in BASES[base]]
        for key in F1:
            reached = mean_of(mine.get(ours), key)
            others = [mean for mean in (mean_of(mine.get(rival), key) for rival in wanted) if mean is not None]
            if reached is not None and wanted and len(others) == len(wanted):
                cells += 1
                best += round(reached, 2) > round(max(others), 2)  # as good is not best
    return f"{best} of {cells}" if cells else NONE


def base_words(found: Mapping[str, Mapping[str, Found]]) -> list[str]:
    """In how many cells (set, base model, score) HiLAP is above each framework: the preset, and the paper's policy."""
    every = _places(found)
    told = []
    for ours, name in (("hilap", "HiLAP, the preset `residual`,"), ("paper", "The paper's policy")):
        rivals = [one for one in FRAMEWORKS if one not in ("hilap", "paper")]
        pairs = {rival: best_cells(every, (rival,), ours) for rival in rivals}
        cells = {rival: counted for rival, counted in pairs.items() if counted != NONE}
        if cells:
            each = "; ".join(f"{FRAMEWORKS[rival]}: {counted}" for rival, counted in cells.items())
            whole = best_cells(every, list(cells), ours)
            last = "No cell has all of them." if whole == NONE else f"It is above all of them in {whole}."
            told.append(f"{name} is above {each}. {last}")
        elif ours == "paper":
            told.append("The paper's policy was not run on a base model that another framework has.")
    return [f"Reading, in cells of set, base model and score: {' '.join(told)}"] if told else []


def hmcn_section(pages: Mapping[str, Sequence[Runs]], paper: Mapping[str, Any]) -> list[str]:
    """HMCN's two orders on each set that has some of them, the paper's beside them where the set has the role."""
    table, rows = paper["tables"]["table_hmcn"], []
    players = {player_of(name, pages): name for name in sets_of(table)}
    for name, runs in pages.items():
        known = {one.method: one for one in runs}
        mine = [known[method] for method in HMCN if method in known]
        for one, cells in zip(mine, score_cells(mine, F1, marks_of(comparisons(mine))), strict=True):
            theirs = printed_orders(table, players.get(name), HMCN[one.method])
            rows.append([SETS.get(name, name), one.title, str(len(one.records)), *cells, *theirs])
    if not rows:
        return []
    there = {row[-1 - len(F1)] for row in rows}
    blank = [NONE] * (2 + len(F1))
    printed = [(name, printed_orders(table, name, row)) for name in sets_of(table) for row in table["rows"]]
    rows += [[SETS[name], *blank, *theirs] for name, theirs in printed if theirs[0] not in there]
    headings = ["Set", "System", "Seeds", *HEADINGS.values()]
    headings += ["*paper*", *(f"*paper: {word}*" for word in HEADINGS.values())]
    words = wrapped(HMCN_WORDS.format(place=_own_or_player(pages, sets_of(table))))
    return [f"## HMCN's orders (the paper's Table {table['number']})", words, markdown_table(headings, rows)]


def _own_or_player(pages: Mapping[str, Sequence[Runs]], names: Sequence[str]) -> str:
    """On which set the paper's figures stand: on its own, or on that which plays its role."""
    played = [
        f"{CALLED.get(player, player)} for {SETS[name]}" for name, player in players_of(pages).items() if name in names
    ]
    if not played:
        return "its own set"
    told = (
        "its own set or that which plays its role"
        if set(names) & set(pages)
        else "the set that plays the role of its own"
    )
    return f"{told} ({', '.join(played)})"


def printed_orders(table: Mapping[str, Any], name: str | None, row: str | None) -> list[str]:
    """The paper's row and set, and its figures; dashes where it has none."""
    if name is None or row is None:
        return [NONE] * (1 + len(F1))
    places = [table["columns"].index(f"{name}/{key}") for key in F1]
    return [f"{row}, {SETS[name]}", *(figure(table["rows"][row][place]) for place in places)]
