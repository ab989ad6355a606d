"""Words of a text, the same for every encoder that has no tokeniser of its own."""

from __future__ import annotations

import re
from functools import cache
from unicodedata import category, normalize

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_LETTERS_A_WORD = 12  # more than nearly all texts have, blanks and signs included


def words(text: str, most: int | None = None) -> list[str]:
    """The first words of a text in lower case: unbroken runs of letters and digits of any script.

    Examples
    --------
    >>> words("Craft-beer & Åse's snake_case, 2nd ed.")
    ['craft', 'beer', 'åse', 's', 'snake', 'case', '2nd', 'ed']
    >>> words("Craft-beer and more", most=2)
    ['craft', 'beer']
    """
    if most is None:
        return _all_words(text)
    # Only as much of a long text is looked at as is needed; its last word may be cut, so one more than wanted is found.
    length = _LETTERS_A_WORD * (most + 1)
    while length < len(text):
        found = _all_words(text[:length])
        if len(found) > most:
            return found[:most]
        length *= 4
    return _all_words(text)[:most]


def _all_words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return _word_of_any_script().findall(normalize("NFC", text.lower()).replace("_", " "))


@cache
def _word_of_any_script() -> re.Pattern[str]:
    """Letters, digits and the marks that belong to them (vowel signs of Hindi, say), which re's word letters lack."""
    marks = "".join(chr(code) for code in range(0x300, 0x10000) if category(chr(code))[0] == "M")
    return re.compile(rf"\w+(?:[{re.escape(marks)}]+\w*)*")  # a set of 16-bit characters alone is fast
