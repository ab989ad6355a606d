"""Words in scripts that put no blank between them, and what is learned from such texts."""

from __future__ import annotations

import numpy as np
import pytest

from hilap import HiLAPClassifier
from hilap.encoders.tokens import words
from hilap.taxonomy import Taxonomy

TREE = Taxonomy.of({"sport": [], "football": ["sport"], "basketball": ["sport"], "law": [], "tax": ["law"]})
SIGNS = {"football": "足球 射门 点球 前锋", "basketball": "篮球 扣篮 投篮 盖帽", "law": "法院 律师", "tax": "关税 税务"}
FILLERS = "我们 今天 大家 可以 看到 这个 问题 非常 重要 他们 已经 开始 网球 门口 法国"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我爱北京，USB接口25個", "我 爱 北 京 usb 接 口 25 個"),
        ("東京タワー々", "東 京 タ ワ ー 々"),
        ("か\u3099っこう", "が っ こ う"),
        ("ก็ดี ที่นี่", "ก็ ดี ที่ นี่"),
        ("ລາວ", "ລ າ ວ"),
        ("ភាសា", "ភា សា"),
        ("မြန်မာ", "မြ န် မာ"),
        ("\U00020000\U00030000x", "\U00020000 \U00030000 x"),
        ("한국어 문장", "한국어 문장"),
        ("हिन्दी में", "हिन्दी में"),
    ],
)
def test_each_letter_is_a_word_in_scripts_without_blanks_and_keeps_its_marks(text, expected):
    assert words(text) == expected.split()
    assert words(text, 2) == expected.split()[:2]


def documents(n: int, seed: int) -> tuple[list[str], list[list[str]]]:
    """Chinese texts with two words of their label among words that say nothing, as one run between two signs."""
    random = np.random.default_rng(seed)
    labels = random.choice([*SIGNS], n).tolist()
    lines = [[*random.choice(FILLERS.split(), 8), *random.choice(SIGNS[label].split(), 2)] for label in labels]
    return ["“" + "".join(random.permutation(line)) + "。" for line in lines], [[label] for label in labels]


@pytest.mark.parametrize(
    "settings",
    [
        {"preset": "residual"},
        {"encoder": "tfidf", "variant": "flat", "flat_epochs": 15, "learning_rate": 0.01},
        {"encoder": "textcnn", "encoder_options": {"preset": "light"}, "variant": "flat", "flat_epochs": 15},
    ],
    ids=["residual", "tfidf", "textcnn"],
)
def test_a_classifier_learns_from_chinese(settings):
    made = HiLAPClassifier(TREE, hidden=16, width=8, **settings).fit(*documents(200, 0), valid=documents(60, 1))
    assert made.score(*documents(100, 2)) > 0.95
