"""Words and sentences of a text, the same for every encoder that has no tokeniser of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from unicodedata import category, normalize

VERSION = 2
"""Rises when a text would be cut into other words: what was cached before is then never taken for the same."""

_LETTERS_A_WORD = 12  # more than nearly all texts have, blanks and signs included
_CASED_BY_CONTEXT = "Σ"  # the only letter whose lower case depends on what stands around it
_WITHOUT_BLANKS = (  # scripts that put no blank between words
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"  # Thai, Lao, Myanmar, Khmer
    "\u3000-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001b16f"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_THEIR_FIRST_BYTES = (0xE0, 0xE1, *range(0xE3, 0xEB), 0xEF, 0xF0)  # in UTF-8; rare in Latin texts
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

    In scripts that put no blank between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) each letter is a word.

    Examples
    --------
    >>> words("Craft-beer & Åse's snake_case, 2nd ed.")
    ['craft', 'beer', 'åse', 's', 'snake', 'case', '2nd', 'ed']
    >>> words("Craft-beer and more", most=2)
    ['craft', 'beer']
    >>> words("USB接口, 25個")
    ['usb', '接', '口', '25', '個']
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
    raw = text.encode("utf-8", "surrogatepass")
    word = _word_of_any_script(_maybe_without_blanks(raw))
    if _CASED_BY_CONTEXT in text:
        return word.findall(normalize("NFC", text.lower()).replace("_", " "))
    # What is ASCII is cut as above, fast; only the pieces with another character in them are looked at one by one.
    found: list[str] = []
    for piece in raw.translate(_PLAIN).decode("utf-8", "surrogatepass").split():
        if piece.isascii():
            found.append(piece)
        else:
            found += word.findall(normalize("NFC", piece.lower()))
    return found


def _all_sentences(text: str) -> list[list[str]]:
    return [line for line in map(_all_words, _SENTENCE_END.split(text)) if line]


def _maybe_without_blanks(raw: bytes) -> bool:
    for byte in _THEIR_FIRST_BYTES:  # noqa: SIM110 - `any` takes twice as long
        if byte in raw:
            return True
    return False


@cache
def _word_of_any_script(without_blanks: bool = True) -> re.Pattern[str]:
    """Letters, digits and the marks that belong to them (vowel signs of Hindi, say), which re's word letters lack.

    An expression that knows nothing of scripts without blanks finds the same where there are none, and is faster.
    """
    marks = "".join(chr(code) for code in range(0x300, 0x10000) if category(chr(code))[0] == "M")
    mark = f"[{re.escape(marks)}]"  # a set of 16-bit characters alone is fast
    if not without_blanks:
        return re.compile(rf"\w+(?:{mark}+\w*)*")
    letter = rf"[^\W{_WITHOUT_BLANKS}]"
    return re.compile(rf"\w(?:(?<={letter}){letter}*(?:{mark}+{letter}*)*|{mark}*)")
