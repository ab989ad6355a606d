"""Pictures: what they show, what they cut, and that no name can break them."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET

import pytest
from rich.console import Console

from hilap.errors import SettingError, TaxonomyError
from hilap.taxonomy import Taxonomy
from hilap.taxonomy.draw import svg
from hilap.taxonomy.draw import tree as draw

NS = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "[bold]x[/bold]",
    "[/]",
    "\x1b[31mred\x1b[0m",
    "\x9b31m",
    "a\nb\tc",
    "<b>&\"'",
    "\ud800",
    "\u202eabc",
    "\uffff",
]


def shown(picture) -> list[str]:
    """The lines as a terminal with colours gets them, without the colours that rich itself adds."""
    out = io.StringIO()
    Console(file=out, width=300, force_terminal=True, color_system="standard").print(picture)
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()).splitlines()]


def texts(picture: str) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(picture).iter(f"{NS}text")]


def paths(picture: str, kind: str | None = None) -> list[str]:
    return [e.get("d", "") for e in ET.fromstring(picture).iter(f"{NS}path") if e.get("class") == kind]


# -- the terminal ------------------------------------------------------------------------------------------------------


def test_the_whole_tree(tree):
    assert shown(draw(tree)) == [
        "6 labels",
        "├── Restaurants",
        "│   ├── Bars",
        "│   │   └── Beer Bars",
        "│   └── Caribbean",
        "│       └── Dominican",
        "└── shops",
    ]


def test_below_a_label(tree):
    assert shown(draw(tree, label="caribbean")) == ["Caribbean", "└── Dominican"]


def test_a_cut_level_says_how_many_labels_are_below(tree):
    assert shown(draw(tree, max_depth=1)) == ["6 labels", "├── Restaurants … 4 below", "└── shops"]


def test_cut_children_say_how_many_more(tree):
    assert shown(draw(tree, max_children=1)) == [
        "6 labels",
        "├── Restaurants",
        "│   ├── Bars",
        "│   │   └── Beer Bars",
        "│   └── … 1 more (2 with all below)",
        "└── … 1 more",
    ]


def test_a_label_with_several_parents_is_drawn_in_full_once_nearest_to_the_root(dag):
    assert shown(draw(dag)) == [
        "5 labels",
        "└── a",
        "    ├── b",
        "    │   └── d",
        "    │       └── e ↗",
        "    ├── c",
        "    │   └── d ↗",
        "    └── e",
    ]


def test_labels_drawn_elsewhere_are_not_counted_as_hidden():
    graph = {"a": [], "b": [], "o": ["b"], "p": ["b"], "q": ["a", "b"], "r": ["q"]}
    assert shown(draw(Taxonomy.of(graph), max_children=2)) == [
        "6 labels",
        "├── a",
        "│   └── q",
        "│       └── r",
        "└── b",
        "    ├── o",
        "    ├── p",
        "    └── … 1 more",
    ]


def test_figures_stand_behind_the_names(tree):
    lines = shown(draw(tree, counts={"food": 1234, "beer": 0}))
    assert lines[1:4] == ["├── Restaurants 1,234", "│   ├── Bars", "│   │   └── Beer Bars 0"]


def test_highlighted_labels_are_bold(tree):
    out = io.StringIO()
    Console(file=out, force_terminal=True, color_system="standard").print(draw(tree, highlight=["beer"]))
    assert "\x1b[1mBeer Bars\x1b[0m" in out.getvalue()
    assert "\x1b[1mBars" not in out.getvalue()


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_steers_the_terminal_or_is_taken_for_markup(name):
    out = io.StringIO()
    Console(file=out, color_system=None, width=100).print(draw(Taxonomy.of({"a": []}, {"a": name})))
    said = out.getvalue()
    said.encode("utf-8")
    assert said.count("\n") == 2
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", said)
    if name.startswith("["):
        assert name in said


def test_a_label_without_a_name_shows_its_id():
    assert shown(draw(Taxonomy.of({"a": [], " ": []}, {"a": "", " ": ""})))[1:] == ["├── a", "└── (no name)"]


# -- SVG ---------------------------------------------------------------------------------------------------------------


def test_every_label_is_in_the_svg_with_its_id_as_tooltip(tree):
    picture = svg(tree, title="Places")
    assert texts(picture) == ["Places", "6 labels", *[tree.name(x) for x in ("food", "shops")], *texts(picture)[4:]]
    assert sorted(texts(picture)[2:]) == sorted(tree.names)
    tips = [element.text for element in ET.fromstring(picture).iter(f"{NS}title")]
    assert sorted(tips) == sorted(["Places", "6 labels", *tree.labels])


def test_the_svg_has_an_edge_for_each_drawn_label(tree):
    assert len(paths(svg(tree))) == 6
    assert len(paths(svg(tree, label="food"))) == 4


def test_further_parents_get_a_dashed_edge(dag):
    picture = svg(dag)
    assert len(paths(picture)) == 5
    assert len(paths(picture, "also")) == 2  # c -> d and a -> e


def test_cuts_and_figures_are_in_the_svg_too(tree):
    found = texts(svg(tree, max_depth=1, max_children=1, counts={"food": 1234}))
    assert found == ["6 labels", "Restaurants1,234… 4 below", "… 1 more"]


def test_highlighted_labels_and_their_edges_are_marked(tree):
    picture = svg(tree, highlight=["food", "bars"])
    assert len(paths(picture, "mark")) == 2
    marked = ["".join(e.itertext()) for e in ET.fromstring(picture).iter(f"{NS}text") if e.get("class") == "mark"]
    assert marked == ["Restaurants", "Bars"]


def boxes(picture: str) -> list[tuple[float, float, str]]:
    return [
        (float(e.get("x", "nan")), float(e.get("y", "nan")), "".join(e.itertext()))
        for e in ET.fromstring(picture).iter(f"{NS}text")
    ]


def test_no_texts_overlap():
    wide = Taxonomy.of({"root": []} | {f"{'W' * (i % 30)} {i}": ["root"] for i in range(40)}).extended(
        {f"child {i} {j}": [f"{'W' * (i % 30)} {i}"] for i in range(0, 40, 3) for j in range(i % 5)}
    )
    placed = boxes(svg(wide))
    assert len(placed) == 1 + len(wide)
    for i, (x, y, text) in enumerate(placed):
        for other_x, other_y, other in placed[i + 1 :]:
            same_row = abs(y - other_y) < 13
            left, right, words = (x, other_x, text) if x <= other_x else (other_x, x, other)
            widest = 13 * sum(0.99 if letter == "W" else 0.62 for letter in words)  # as wide as DejaVu Sans
            assert not same_row or left + widest < right, (text, other)


def test_nothing_lies_outside_the_picture(dag):
    picture = svg(dag, title="A title")
    root = ET.fromstring(picture)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for x, y, text in boxes(picture):
        assert 0 < x < x + 7 * len(text) < width
        assert 0 < y < height


def test_parents_stand_left_of_their_children(dag):
    places = {text: x for x, _, text in boxes(svg(dag))}
    assert places["a"] < places["b"] == places["c"] < places["d"] < places["e"]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_the_svg(name):
    picture = svg(Taxonomy.of({name: []}), title=name)
    root = ET.fromstring(picture.encode("utf-8"))
    assert {element.tag.removeprefix(NS) for element in root.iter()} <= {
        *("svg", "title", "style", "rect", "text", "tspan", "path", "g", "circle"),
    }


def test_equal_input_gives_equal_bytes(dag):
    again = Taxonomy.from_json(dag.to_json())
    assert svg(dag, counts={"a": 1}, highlight={"a", "b", "c"}) == svg(
        again, counts={"a": 1}, highlight=["c", "b", "a"]
    )


def test_the_svg_knows_the_dark(tree):
    assert "prefers-color-scheme:dark" in svg(tree)


# -- both --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("picture", [svg, draw])
def test_a_very_deep_taxonomy_is_cut_and_says_so(picture):
    chain = Taxonomy.of({str(i): [str(i - 1)] if i else [] for i in range(5000)})
    drawn = picture(chain)
    lines = texts(drawn) if isinstance(drawn, str) else shown(drawn)
    assert len(lines) == 61
    assert lines[-1].endswith("… 4,940 below")


@pytest.mark.parametrize("picture", [svg, draw])
def test_a_very_wide_taxonomy_is_drawn(picture):
    drawn = picture(Taxonomy.of({str(i): ["0"] if i else [] for i in range(5000)}))
    assert len(texts(drawn) if isinstance(drawn, str) else shown(drawn)) == 5001


@pytest.mark.parametrize("picture", [svg, draw])
def test_a_taxonomy_without_labels_is_drawn(picture):
    drawn = picture(Taxonomy.of({}))
    assert (texts(drawn) if isinstance(drawn, str) else shown(drawn)) == ["0 labels"]


@pytest.mark.parametrize("picture", [svg, draw])
@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"label": "bear"}, TaxonomyError, "label 'bear' is not in the taxonomy; did you mean 'beer'?"),
        ({"counts": {"bear": 1}}, TaxonomyError, "label 'bear' is not in the taxonomy; did you mean 'beer'?"),
        ({"highlight": ["bear"]}, TaxonomyError, "label 'bear' is not in the taxonomy; did you mean 'beer'?"),
        ({"highlight": "beer"}, SettingError, "highlight must be a collection of labels, got 'beer'"),
        ({"max_depth": 0}, SettingError, "max_depth must be at least 1, got 0"),
        ({"max_children": -1}, SettingError, "max_children must be at least 1, got -1"),
    ],
)
def test_options_that_cannot_be(picture, options, kind, sentence):
    with pytest.raises(kind) as caught:
        picture(Taxonomy.of({"beer": []}), **options)
    assert str(caught.value) == sentence
