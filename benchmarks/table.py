"""The page of results, from result files and the paper's figures alone: `python benchmarks/table.py`.

Reads `results/<set>/<method>/<seed>.json` (only files with test scores) and `paper.json`, and writes `docs/results.md`
(with the figures that `figures.py` has drawn: draw them first) and the short table in the README. `--check` writes
nothing and exits with 1 where either is not what the files give.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from cells import (  # also finds hilap in src/
    F1,
    HEADINGS,
    NONE,
    figure,
    markdown_table,
    mean_of,
    percent,
    score_cells,
    spread,
)
from certainty import best_words, comparisons, marks_of
from effects import effects_section
from figures import NOWHERE, folder_for
from findings import FIGURE_4, RELIABILITY, ablation_words, groups_section, inconsistency_words, reliability_section
from orientation import anchor, contents, sets_section
from parts import PARTS, parts_section
from reading import Standing, reading_section, set_words, standings_of, to_beat
from records import ABLATION, BASE_METHODS, HERE, NAMES, SETS, Runs, rank, read_object, read_results
from reproduced import POLICIES, policy_of, reproduced_section
from roles import gene_section, place_of, player_of, role_section
from searched import search_section
from sections import AREAS, BASE_MODELS, areas_section, base_section, hmcn_section

from hilap.errors import HilapError
from hilap.files import read_text, writing

RESULTS, PAPER, PAGE = HERE / "results", HERE / "paper.json", HERE.parent / "docs" / "results.md"
README, BEGIN, END = (
    HERE.parent / "README.md",
    "<!-- results: made by benchmarks/table.py -->\n",
    "<!-- end of results -->\n",
)

OTHER = "best other system we ran"
MAIN_TABLES = ("table_rcv1", "table_yelp", "table_fungo")  # where the paper compares systems on a set

PAPERS_HILAP = ("HiLAP", "HiLAP (bow-CNN)")  # its rows in those tables

PRINTED = {  # ours in the paper's Table 7, in its order -> its row there
    "svm-zero": "SVM",
    "textcnn-flat-half": "TextCNN",
    "hmcn": "HMCN",
    "hilap-paper": "HiLAP",
    "hilap": "HiLAP",
}

HOW = "## How to read the tables"
FIGURES = {  # file of docs/figures -> its heading, and what it shows
    "base_models": ("Base models", "The same base models under each framework (the paper's Figure 3)"),
    "gains": (
        "Gains",
        "Gain in Macro-F1 by level and by popularity of labels, P1 the most frequent third (the paper's Figure 4)",
    ),
    "learning": (
        "Learning curves",
        "Validation scores after every epoch that was judged, mean over seeds; phases one after the other. "
        "HiLAP's recommended forms stand on flat models that are cross-fitted on the validation documents too, so "
        "their scores here do not compare with those of systems that have not seen these documents",
    ),
    "precision_recall": (
        "Precision and recall",
        "Precision against recall over all pairs of document and label, mean over seeds",
    ),
    "reliability": ("Reliability", "Share of pairs that are right against their probability, all seeds together"),
    "cost": (
        "Cost of a walk",
        "Milliseconds for a document against the size of the taxonomy and of the batch: each the best of several runs "
        "in a process of its own, on one machine",
    ),
}
BELONGS = {  # figure -> the section that links to it
    "base_models": BASE_MODELS,
    "gains": FIGURE_4,
    "learning": f"## {PARTS}",
    "precision_recall": AREAS,
    "reliability": RELIABILITY,
    "cost": HOW,
}


def paper_rows(paper: dict[str, Any], name: str) -> list[tuple[str, list[str]]]:
    """What the paper prints for a set: system, then the three scores."""
    for key in MAIN_TABLES:
        table = paper["tables"][key]
        wanted = [f"{name}/{metric}" for metric in F1]
        if set(wanted) <= set(table["columns"]):
            places = [table["columns"].index(column) for column in wanted]
            return [(system, [figure(row[place]) for place in places]) for system, row in table["rows"].items()]
    return []


def printed_of(paper: dict[str, Any], name: str) -> list[float | None] | None:
    """The paper's three scores of its own method on a set: of a text set those on bow-CNN, its best base model."""
    for key in MAIN_TABLES:
        table = paper["tables"][key]
        wanted = [f"{name}/{metric}" for metric in F1]
        if set(wanted) <= set(table["columns"]):
            row = next((table["rows"][system] for system in PAPERS_HILAP if system in table["rows"]), None)
            return None if row is None else [row[table["columns"].index(column)] for column in wanted]
    return None


def set_section(
    name: str, pages: dict[str, list[Runs]], standings: Sequence[Standing | None], paper: dict[str, Any]
) -> list[str]:
    """All systems on one set but those on other base models, then the paper's, or where those stand beside ours."""
    runs: Sequence[Runs] = pages[name]
    every, runs = runs, [one for one in runs if one.method not in BASE_METHODS]
    tested = comparisons(runs)
    headings = ["System", "Seeds", *HEADINGS.values(), "AU(PRC) pooled", "Inconsistent %"]
    headings += ["Training, CPU s", "Prediction, documents per CPU s", "Memory, MB"]
    rows = []
    for one, scores in zip(runs, score_cells(runs, (*F1, "au_prc_pooled"), marks_of(tested)), strict=True):
        shares = spread(percent(one.values("test", "inconsistent_share")))
        cost = spread(one.values("training", "cpu_seconds"), 0)
        speed = spread(one.values("prediction", "documents_per_cpu_second"), 0)
        rows.append([one.title, str(len(one.records)), *scores, shares, cost, speed, memory(one)])
    place = place_of(name, pages, paper)
    theirs = [] if place else paper_rows(paper, name)
    rows += [[f"*paper: {system}*", NONE, *scores, *[NONE] * 5] for system, scores in theirs]
    parts = [f"## {SETS.get(name, name)}", markdown_table(headings, rows)]
    parts += [f"The paper's figures on this set stand beside ours in [{place}](#{anchor(place)})."] if place else []
    if any(one.values("test", f"rootless_{key}") for one in runs for key in F1):
        parts += rootless(runs)
    words = [*set_words(every, standings, tested), *against(name, runs, paper), *short_of_epochs(every)]
    return [*parts, *words, made_by(every)]


def short_of_epochs(runs: Sequence[Runs]) -> list[str]:
    """Which networks were still getting better when their epochs were over."""
    told = [
        f"`{one.method}` ({', '.join(f'{phase}: {most}' for phase, most in one.last_epochs.items())})"
        for one in runs
        if one.last_epochs
    ]
    return [f"Best in their last epochs in most seeds, so more might have helped: {'; '.join(told)}."] if told else []


def memory(one: Runs) -> str:
    """The most memory that the process held, mean over seeds."""
    values = one.values("peak_mb")
    return f"{fmean(values):,.0f}" if values else NONE


def rootless(runs: Sequence[Runs]) -> list[str]:
    keys = [f"rootless_{key}" for key in F1]
    shown = [one for one in runs if one.values("test", keys[0])]
    rows = [[one.title, *cells] for one, cells in zip(shown, score_cells(shown, keys), strict=True)]
    return [
        "Without the three namespace roots, which every example carries:",
        markdown_table(["System", *HEADINGS.values()], rows),
    ]


def against(name: str, runs: Sequence[Runs], paper: dict[str, Any]) -> list[str]:
    """The recommended system beside the strongest of the simple opponents, metric by metric."""
    told = [
        f"{HEADINGS[key]} {gap:+.2f} ({rival['system']}: {figure(rival['values'][F1.index(key)])})"
        for key, (gap, rival) in to_beat(name, runs, paper).items()
    ]
    return [f"`hilap` against the best of the opponents to beat: {'; '.join(told)}."] if told else []


def made_by(runs: Sequence[Runs]) -> str:
    """Which code and packages made these figures."""
    records = [record for one in runs for record in one.records]
    commits = sorted({str(record.get("commit") or "unknown") for record in records})
    packages = sorted({f"{key} {value}" for record in records for key, value in record.get("versions", {}).items()})
    told = ", ".join(f"`{commit}`" for commit in commits)
    return f"Made by the library as of {told} with {', '.join(packages) or 'unknown versions'}."


def ablation_section(pages: dict[str, list[Runs]], paper: dict[str, Any]) -> list[str]:
    """The six variants on each set that has some of them, beside the paper's on RCV1."""
    table = paper["tables"]["table_ablation"]
    parts = []
    for name, runs in pages.items():
        shown = sorted((one for one in runs if one.method in ABLATION), key=lambda one: rank(ABLATION, one.method))
        if {one.method for one in shown} <= {"hilap-paper"}:
            continue  # the whole method alone ablates nothing
        rows = []
        tested = comparisons(shown)
        for one, cells in zip(shown, score_cells(shown, F1, marks_of(tested)), strict=True):
            row = ABLATION[one.method]
            theirs = [figure(value) for value in table["rows"][row]]
            rows.append([f"{row} (`{one.method}`)", str(len(one.records)), *cells, *theirs])
        headings = ["Variant", "Seeds", *HEADINGS.values(), *(f"*paper, RCV1: {word}*" for word in HEADINGS.values())]
        parts += [f"### {SETS.get(name, name)}: ablation", markdown_table(headings, rows), *best_words(tested)]
        parts += [*ablation_words(runs, paper), *short_of_epochs(shown)]
    return [f"## Ablation (the paper's Table {table['number']})", *parts] if parts else []


def inconsistency_section(pages: dict[str, list[Runs]], paper: dict[str, Any]) -> list[str]:
    """The share of documents with a label that lacks an ancestor: systems by sets, the paper's on RCV1 beside them."""
    table = paper["tables"]["table_inconsistencies"]
    listed = [(name, one) for name, runs in pages.items() for one in runs]
    kept = [(name, one) for name, one in listed if one.method in PRINTED or one.method not in BASE_METHODS]
    shares = {(name, one.method): one for name, one in kept}
    order = [*PRINTED, *NAMES]  # the paper's rows first
    methods = sorted({method for _, method in shares}, key=lambda method: rank(order, method))
    rows = []
    for method in methods:
        ours = [shares.get((name, method)) for name in pages]
        title = next(one.title for one in ours if one)
        cells = [NONE if one is None else spread(percent(one.values("test", "inconsistent_share"))) for one in ours]
        row = PRINTED.get(method)
        rows.append([title, *cells, f"{figure(table['rows'][row][0])} ({row})" if row else NONE])
    blank, there = [NONE] * len(pages), {PRINTED.get(method) for method in methods}
    rows += [[f"*paper: {row}*", *blank, figure(cell[0])] for row, cell in table["rows"].items() if row not in there]
    player = player_of("rcv1", pages)
    told = "*paper, RCV1*" if player == "rcv1" else f"*paper, RCV1 (played by {SETS[player]})*"
    headings = ["System", *(SETS.get(name, name) for name in pages), told]
    parts = [f"## Inconsistent documents, % (the paper's Table {table['number']})", INCONSISTENT]
    return [*parts, markdown_table(headings, rows), *inconsistency_words(pages, methods)]


def opponents_section(names: Iterable[str], paper: dict[str, Any]) -> list[str]:
    """What simple methods reached before this project, for the sets on the page."""
    rows = []
    for name in names:
        for row in paper["opponents"]["rows"]:
            if row["set"] == name:
                *scores, inconsistent, area = row["values"]
                system = {"to_beat": f"**{row['system']}**", "probe": f"*{row['system']}*"}.get(row.get("mark", ""))
                cells = [*map(figure, scores), inconsistent or NONE, NONE if area is None else f"{100 * area:.1f}"]
                rows.append([SETS.get(name, name), system or row["system"], *cells])
    if not rows:
        return []
    headings = ["Set", "System", *HEADINGS.values(), "Inconsistent %", "AU(PRC) pooled"]
    return ["## Opponents: not measured by us", OPPONENTS, markdown_table(headings, rows)]


def short_table(results: Path = RESULTS, paper: Path = PAPER) -> str:
    """HiLAP on every set that has it, a line each, beside the paper and the opponents to beat: for the README."""
    pages, figures = read_results(results), read_object(paper)
    shown = ("hilap-preset", "hilap", "hilap-minilm", "hilap-paper")
    known = {name: {one.method: one for one in runs} for name, runs in pages.items()}
    shown = tuple(method for method in shown if any(method in mine for mine in known.values()))
    rows = []
    for name in (name for name, mine in known.items() if "hilap" in mine):
        ours = [_form(known[name], method) for method in shown]
        printed = dict(paper_rows(figures, name)).get("HiLAP")
        rivals = [
            row["values"] for row in figures["opponents"]["rows"] if (row["set"], row.get("mark")) == (name, "to_beat")
        ]
        best = " / ".join(figure(max(values[place] for values in rivals)) for place in range(3)) if rivals else NONE
        theirs = NONE if printed is None else " / ".join(printed)
        rows.append([SETS.get(name, name), *ours, best_other(pages[name]), best, theirs])
    titles = [f"{NAMES[method]} (`{method}`)" for method in shown]
    headings = ["Micro-F1 / Macro-F1 / EBF (seeds)", *titles, OTHER, "simple opponents", "the paper"]
    return markdown_table(headings, rows) + "\n"


def best_other(runs: Sequence[Runs]) -> str:
    """The best of all rivals by each score, whatever their encoder, and who they are."""
    found = [None if one is None else one.rival for one in standings_of(runs)]
    means = [mean_of(one, key) for one, key in zip(found, F1, strict=True)]
    if all(mean is None for mean in means):
        return NONE
    names = [NONE if one is None else f"`{one.method}`" for one in found]
    told = " / ".join(NONE if mean is None else f"{mean:.1f}" for mean in means)
    return f"{told} ({' / '.join(names if len(set(names)) > 1 else names[:1])})"


def _form(known: Mapping[str, Runs], method: str) -> str:
    """A form of HiLAP on a set; where the paper's was not run as such, its policy on another base model, by name."""
    one = known.get(method) or (policy_of(list(known.values())) if method in POLICIES else None)
    return _short(one) + ("" if one is None or one.method == method else f", `{one.method}`")


def _short(runs: Runs | None) -> str:
    """Three means over seeds with one decimal, and how many seeds."""
    values = [] if runs is None else [runs.values("test", key) for key in F1]
    if not values:
        return NONE
    return f"{' / '.join(f'{fmean(percent(cell)):.1f}' for cell in values)} ({len(values[0])})"


def readme(text: str, table: str) -> str:
    """The README with this table between its marks."""
    before, mark, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise HilapError(f"{README.name}: the marks around the table of results are missing; put them back")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


INTRO = """\
# Results

Made by `python benchmarks/table.py` from {files} and from `benchmarks/paper.json`, which
holds the figures of the paper's tables. Do not edit: {end}."""
OURS = {"files": "the files in `benchmarks/results`", "end": "a test builds this page again and compares"}
THEIRS = {"files": "a folder of results that is not the committed one", "end": "make it anew"}

EMPTY = """\
**There are no test results yet.** `python benchmarks/suite.py --test` makes them, and `python benchmarks/table.py` then
fills this page."""

READING = """\
- Test split; scores in percent. Mean ± sample standard deviation over seeds; with one seed, that seed's figure alone.
  Epochs, thresholds and biases were chosen on the validation split; how often the test split was looked at is said
  above.
- The best of our own runs in bold (not where there is only one system). A dash: not measured, or not in the paper.
- † and ‡ behind the best figure: better than the runner-up with p < 0.05 and p < 0.01, two-sided, by a paired bootstrap
  of 2,000 draws (fewer above 200,000 documents). For Micro-F1 and EBF documents are drawn, for Macro-F1 the labels it
  covers; the seeds of both systems are drawn too, because the claim is about the system and not about one training run.
  With one seed its variation is not seen, with three it is underestimated; nothing is corrected for the number of
  comparisons. *Not tested*, and without a mark: one of the two results is older than the counts that this needs. Areas
  have no marks either.
- **Macro-F1** of ours covers the labels with a document in the training or validation split *and* in the test
  split.{genes}
- *Paper* rows and columns are as printed; the paper gives no spread.
- **AU(PRC)**, precision-recall curves and reliability of HiLAP's recommended forms are those of its flat models: the
  preset gives their probabilities (`probabilities="flat"`), where SVMs' margins are scaled (Platt), capped so that no
  label is above a parent, and leaves the walk to decide what is placed; `hilap-flat-members` has them without that cap.
  `hilap-paper` and the ablation have the marginals of the policy itself.
- Processor seconds are of one thread, on a shared machine: compare systems of one table. Where vectors of a pretrained
  encoder come from a cache, the seconds leave out what it takes to make them. They leave out what kernels take to
  compile too, which the first run in a new clone does for all others; results from before that was measured may have up
  to 20 seconds of it in one seed. Memory is the most that the process held up to the end of training, with the data and
  the packages; mean over seeds.
- HiLAP's recommended forms (`hilap`, `hilap-minilm`, `...-hilap`) train their flat models on the validation documents
  too, each of which is scored by the models that have not seen it. Other systems learn from the training documents,
  but for those with *all documents* in their name (`...-refit`) and `c-hmcnn-paper`, which learn anew from both when
  validation documents have chosen their thresholds, epochs and settings.
- **HMCN as its authors have it** (`hmcn-authors`, `hmcn-r` and what is made from them) follows a paper that was not at
  hand: its layers, their width and beta are certain; dropout, the penalty's weight and the course of training are from
  memory ([which is which](baselines/neural.md#hmcn)).
- *Made by* names commits; a `+` behind one: something that the result is made from was not as committed. Where a result
  is older than this note it is the first commit with the source that its hash (`code`) is of."""
GENES = """
  On FunCat these are 416, on GO 2,410. The paper too leaves out labels without examples, but does not say how many
  remain; on GO its figures fit a mean over about 1,550 to 1,650 labels, so they are about **1.5 times** what ours would
  be for the same predictions. Divide them by that before comparing. Scores without GO's roots have no marks."""

INCONSISTENT = """\
Documents with a label that lacks an ancestor. The first rows are the systems of the paper's table as it has them, with
its figures in the last column; the others it does not have."""

OPPONENTS = """\
One seed each, measured before this project began, partly with other people's programs; typed into `paper.json`.
**Bold**: the opponents to beat. *Italic*: mixtures that probe how far one could get. Macro-F1 on FunCat and GO covers
the same labels as ours. "Tuned": thresholds chosen on validation data."""


def how_section(names: Iterable[str]) -> list[str]:
    """How tables are to be read; what is said of genes only where they are on the page."""
    return [HOW, READING.format(genes=GENES if {"funcat", "go"} & set(names) else "")]


def drawn_in(folder: Path) -> list[str]:
    """The figures that `figures.py` has drawn."""
    return [name for name in FIGURES if (folder / f"{name}.svg").is_file()]


def figures_section(folder: Path) -> list[str]:
    """Each figure that is drawn below a heading of its own."""
    shown = [(name, *FIGURES[name]) for name in drawn_in(folder)]
    told = [f"### Figure: {title}\n\n![{title}](figures/{name}.svg)\n\n{words}." for name, title, words in shown]
    return ["## Figures", *told] if told else []


def with_links(parts: Sequence[str], drawn: Iterable[str]) -> list[str]:
    """Parts of a page with a link to its figure below the heading of each section that one belongs to."""
    links = {BELONGS[name]: f"Figure: {FIGURES[name][0]}" for name in drawn}
    found = []
    for part in parts:
        found.append(part)
        if part in links:
            found.append(f"Drawn: [{links[part]}](#{anchor(links[part])}).")
    return found


def page(results: Path = RESULTS, paper: Path = PAPER) -> str:
    """The whole page as Markdown."""
    pages, figures = read_results(results), read_object(paper)
    intro = INTRO.format(**(OURS if results == RESULTS else THEIRS))
    if not pages:
        return f"{intro}\n\n{EMPTY}\n"
    standings = {name: standings_of(runs) for name, runs in pages.items()}
    printed = {name: theirs for name in pages if (theirs := printed_of(figures, name)) is not None}
    parts = [*reading_section(pages, standings, figures), *reproduced_section(pages, printed), *parts_section(pages)]
    parts += sets_section(pages, figures) + how_section(pages)
    for name in pages:
        parts += set_section(name, pages, standings[name], figures)
    parts += role_section(pages, figures) + gene_section(pages, figures)
    parts += base_section(pages, figures) + ablation_section(pages, figures)
    parts += inconsistency_section(pages, figures) + hmcn_section(pages, figures) + areas_section(pages, figures)
    parts += groups_section(pages) + reliability_section(pages)
    if results == RESULTS:  # these, and the figures beside the page, belong to the committed results
        parts += search_section(list(pages)) + effects_section(list(pages))
        folder = PAGE.parent / "figures"
        parts = with_links(parts, drawn_in(folder)) + figures_section(folder)
    parts += opponents_section(pages, figures)
    return "\n\n".join([intro, contents(parts), *parts]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, help="the page; docs/results.md for the committed results")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where the page is out of date")
    chosen = parser.parse_args(arguments)
    results = RESULTS if chosen.results.resolve() == RESULTS else chosen.results
    out = folder_for(results, chosen.out, PAGE)
    if out is None:
        print(NOWHERE.format(results=chosen.results, kept=PAGE), file=sys.stderr)
        return 2
    try:
        made = page(results)
        pages = {out: made}
        if out == PAGE:
            pages[README] = readme(read_text(README, HilapError), short_table(results))
        if chosen.check:
            current = {path: read_text(path, HilapError) == text for path, text in pages.items()}
            for path, good in current.items():
                print(f"{path}: {'up to date' if good else 'out of date; run python benchmarks/table.py'}")
            return 0 if all(current.values()) else 1
        for path, text in pages.items():
            with writing(path) as lines:
                lines.write(text)
    except HilapError as fault:
        print(fault, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
