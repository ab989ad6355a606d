"""How figures are put into tables: mean and spread, the best in bold, the paper's as printed, words to the left."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from records import Runs  # also finds hilap in src/

from hilap.metrics.words import markdown_table as plain_table

F1 = ("micro_f1", "macro_f1", "example_f1")
HEADINGS = {"micro_f1": "Micro-F1", "macro_f1": "Macro-F1", "example_f1": "EBF"}
NONE = "–"
LEFT, RIGHT = ":--", "--:"
NUMBER = re.compile(r"\**[+-]?\d")  # how a cell with a figure begins, bold or not


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Mean ± sample standard deviation; the value alone where there is one seed."""
    if not values:
        return NONE
    text = f"{fmean(values):,.{digits}f}"
    return text if len(values) == 1 else f"{text} ± {stdev(values):,.{digits}f}"


def percent(values: Sequence[float]) -> list[float]:
    return [100 * value for value in values]


def mean_of(one: Runs | None, key: str) -> float | None:
    """The mean of a test score over seeds, in percent."""
    values = [] if one is None else percent(one.values("test", key))
    return fmean(values) if values else None


def with_best_bold(cells: list[list[str]], means: list[list[float | None]]) -> list[list[str]]:
    """The cells with the highest mean of each column in bold; equal to two decimals is equal. One row has no best."""
    columns = [[None if mean is None else round(mean, 2) for mean in column] for column in zip(*means, strict=True)]
    best = [max((mean for mean in column if mean is not None), default=None) for column in columns]
    return [
        [
            f"**{cell}**" if len(cells) > 1 and best[j] is not None and columns[j][i] == best[j] else cell
            for j, cell in enumerate(row)
        ]
        for i, row in enumerate(cells)
    ]


def score_cells(
    runs: Sequence[Runs], keys: Sequence[str], marks: Mapping[tuple[str, str], str] | None = None
) -> list[list[str]]:
    """One row of scores in percent for each system, the best of ours in bold; marks for (method, key) stand behind."""
    values = [[percent(one.values("test", key)) for key in keys] for one in runs]
    means = [[fmean(cell) if cell else None for cell in row] for row in values]
    rows = with_best_bold([[spread(cell) for cell in row] for row in values], means)
    if marks is None:
        return rows
    return [
        [cell + marks.get((one.method, key), "") for cell, key in zip(row, keys, strict=True)]
        for one, row in zip(runs, rows, strict=True)
    ]


def figure(value: float | None) -> str:
    """A figure of the paper, with the decimals it has."""
    if value is None:
        return NONE
    if isinstance(value, int):
        return str(value)
    return f"{value:.1f}" if round(value, 1) == value else f"{value:.2f}"


def listing(words: Sequence[str]) -> str:
    """Words as a sentence lists them: `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def wrapped(text: str) -> str:
    """A paragraph whose words depend on what is on the page, in lines as long as those of the others."""
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; columns of figures to the right, the first and those of words to the left."""
    columns = [[row[j] for row in rows if row[j] not in ("", NONE)] for j in range(len(headings))]
    sides = [RIGHT if j and all(map(NUMBER.match, column)) else LEFT for j, column in enumerate(columns)]
    head, _, *lines = plain_table(headings, rows).splitlines()
    return "\n".join([head, f"| {' | '.join(sides)} |", *lines])
