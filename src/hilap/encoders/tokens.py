"""Words and sentences of a text, the same for every encoder that has no tokeniser of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from unicodedata import category, normalize

VERSION = 1
"""Rises when a text would be cut into other words: what was cached before is then never taken for the same."""

_LETTERS_A_WORD = 12  # more than nearly all texts have, blanks and signs included
_CASED_BY_CONTEXT = "Σ"  # the only letter whose lower case depends on what stands around it
_SENTENCE_END = re.compile(
    r"[.!?…。！？\n]"  # found first, and fast; then looked at
    r"(?:(?<=[.!?…])(?<!\b[A-Z]\.)[\"')\]»”’]*\s+(?=[^\sa-z])"  # not after an initial, nor before a small letter
    r"|(?<=[。！？])"
    r"|(?<=\n)\s*\n)"
)


def _plain_byte(byte: int) -> int:
    """A letter in lower case, a digit, or part of a character beyond ASCII as it is; a blank for all others."""
    if byte >= 128 or chr(byte).isalnum():
        return ord(chr(byte).lower()) if byte < 128 else byte
    return ord(" ")


_PLAIN = bytes(map(_plain_byte, range(256)))


def words(text: str, most: int | None = None) -> list[str]:
    """The first words of a text in lower case: unbroken runs of letters and digits of any script.

    Examples
    --------
    >>> words("Craft-beer & Åse's snake_case, 2nd ed.")
    ['craft', 'beer', 'åse', 's', 'snake', 'case', '2nd', 'ed']
    >>> words("Craft-beer and more", most=2)
    ['craft', 'beer']
    """
    return _all_words(text) if most is None else _first(text, most, _all_words, len)[:most]


def sentences(text: str, most: int, longest: int) -> list[list[str]]:
    """The first words of a text, sentence by sentence; what is longer than `longest` words is cut into pieces.

    A sentence ends at a full stop, an exclamation or question mark before a blank and something that is no small
    letter, and at an empty line. None is empty.

    Examples
    --------
    >>> sentences("Beer by J. Smith, i.e. stout. It is good! Really so", most=9, longest=4)
    [['beer', 'by', 'j', 'smith'], ['i', 'e', 'stout'], ['it', 'is']]
    """
    found: list[list[str]] = []
    left = most
    for sentence in _first(text, most, _all_sentences, lambda lines: sum(map(len, lines))):
        kept = sentence[:left]
        found += [kept[start : start + longest] for start in range(0, len(kept), longest)]
        left -= len(kept)
    return found


def _first(text: str, most: int, cut: Callable[[str], list], count: Callable[[list], int]) -> list:  # type: ignore[type-arg]
    """What `cut` makes of as much of a text as is needed to have `most` words.

    The last word of a part may be broken, so one more than wanted is looked for.
    """
    length = _LETTERS_A_WORD * (most + 1)
    while length < len(text):
        found = cut(text[:length])
        if count(found) > most:
            return found
        length *= 4
    return cut(text)


def _all_words(text: str) -> list[str]:
    if text.isascii():
        return text.encode("ascii").translate(_PLAIN).decode("ascii").split()
    if _CASED_BY_CONTEXT in text:
        return _words_of_any_script(text)
    # What is ASCII is cut as above, fast; only the pieces with another character in them are looked at one by one.
    pieces = text.encode("utf-8", "surrogatepass").translate(_PLAIN).decode("utf-8", "surrogatepass").split()
    found: list[str] = []
    for piece in pieces:
        if piece.isascii():
            found.append(piece)
        else:
            found += _words_of_any_script(piece)
    return found


def _all_sentences(text: str) -> list[list[str]]:
    return [line for line in map(_all_words, _SENTENCE_END.split(text)) if line]


def _words_of_any_script(text: str) -> list[str]:
    return _word_of_any_script().findall(normalize("NFC", text.lower()).replace("_", " "))


@cache
def _word_of_any_script() -> re.Pattern[str]:
    """Letters, digits and the marks that belong to them (vowel signs of Hindi, say), which re's word letters lack."""
    marks = "".join(chr(code) for code in range(0x300, 0x10000) if category(chr(code))[0] == "M")
    return re.compile(rf"\w+(?:[{re.escape(marks)}]+\w*)*")  # a set of 16-bit characters alone is fast
