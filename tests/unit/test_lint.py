"""Every finding of the linter: when it comes, where it stands, what it says, and when it stays away."""

from __future__ import annotations

import json
import time

import pytest

from hilap.errors import TaxonomyError
from hilap.taxonomy.draft import Draft, Entry
from hilap.taxonomy.lint import Finding, errors_of, lint


def draft(*rows: tuple, **more) -> Draft:
    """A draft with one label a line: (label, parents) or (label, parents, name)."""
    entries = [Entry(row[0], row[2] if len(row) > 2 else row[0], tuple(row[1]), i) for i, row in enumerate(rows, 1)]
    return Draft("file.jsonl", "jsonl", entries, **more)


def found(given: Draft, code: str) -> list[Finding]:
    return [finding for finding in lint(given) if finding.code == code]


def only(given: Draft, code: str) -> Finding:
    findings = found(given, code)
    assert len(findings) == 1, findings
    return findings[0]


# -- errors ------------------------------------------------------------------------------------------------------------


def test_a_sound_taxonomy_has_nothing_to_complain_about():
    assert lint(draft(("food", ""), ("bars", ["food"]), ("cafés", ["food"]))) == []


def test_an_empty_file():
    finding = only(Draft("file.jsonl", "jsonl"), "empty")
    assert finding.severity == "error"
    assert finding.where == "file.jsonl"
    assert finding.message == "there is no label in it, read as jsonl; is this the right file and format?"


def test_a_cycle_is_printed_whole():
    finding = only(draft(("top", ""), ("a", ["b", "top"]), ("b", ["c"]), ("c", ["a"])), "cycle")
    assert finding.severity == "error"
    assert (finding.where, finding.line) == ("file.jsonl:2", 2)
    assert finding.message == "the taxonomy has a cycle: 'a' -> 'b' -> 'c' -> 'a'; remove one of these parents"
    assert finding.labels == ("a", "b", "c")


def test_a_label_that_is_its_own_parent():
    finding = only(draft(("a", ["a"])), "cycle")
    assert finding.message.startswith("the taxonomy has a cycle: 'a' -> 'a'; a label cannot be its own parent")


def test_every_knot_gives_one_cycle():
    given = draft(("a", ["b"]), ("b", ["a"]), ("x", ["y", "z"]), ("y", ["x"]), ("z", ["x"]), ("below", ["a", "x"]))
    assert [finding.labels for finding in found(given, "cycle")] == [("a", "b"), ("x", "y")]


def test_the_shortest_cycle_through_the_first_label_is_shown():
    ring = [(str(i), [str((i + 1) % 50)]) for i in range(50)]
    ring[3] = ("3", ["4", "0"])
    assert only(draft(*ring), "cycle").labels == ("0", "1", "2", "3")


def test_a_very_long_cycle_is_cut_in_the_message_only():
    finding = only(draft(*[(f"n{i}", [f"n{(i + 1) % 1000}"]) for i in range(1000)]), "cycle")
    assert len(finding.labels) == 1000
    assert "'n0' -> 'n1' -> " in finding.message
    assert " -> ... 971 more ... -> 'n999' -> 'n0'; remove" in finding.message


@pytest.mark.parametrize(
    ("parent", "hint"),
    [
        ("fod", "did you mean 'food'?"),
        ("FOOD", "did you mean 'food'?"),
        ("quite another", "add it as a label of its own"),
        ("Restaurants", "it is the name of label 'food': parents are given by id"),
        ("eating", "it is another id of 'food': write that"),
    ],
)
def test_an_unknown_parent_gets_a_hint(parent, hint):
    given = draft(("food", "", "Restaurants"), ("bars", [parent]), aliases={"eating": "food"})
    finding = only(given, "unknown-parent")
    assert (finding.severity, finding.where) == ("error", "file.jsonl:2")
    assert finding.message == f"parent {parent!r} of label 'bars' is not in the taxonomy; {hint}"
    assert finding.labels == ("bars", parent)


def test_a_name_that_two_labels_have_is_no_hint():
    given = draft(("a", "", "Other"), ("b", ["a"], "Other"), ("c", ["Other"]))
    assert only(given, "unknown-parent").message.endswith("add it as a label of its own")


def test_a_label_is_never_suggested_as_its_own_parent():
    assert only(draft(("GO:1", ["GO:2"])), "unknown-parent").message.endswith("add it as a label of its own")


def test_an_unknown_parent_of_a_repeated_entry_is_told_too():
    given = draft(("a", ""), ("a", ["nobody"]))
    assert [f.code for f in errors_of(given)] == ["duplicate-id", "unknown-parent"]


def test_a_duplicate_id_names_both_lines():
    given = draft(("a", ""), ("b", ["a"]), ("a", ""))
    finding = only(given, "duplicate-id")
    assert (finding.severity, finding.where) == ("error", "file.jsonl:3")
    assert finding.message == "label 'a' is given twice (first on line 1); ids must be unique: rename or remove one"


def test_a_duplicate_id_in_a_format_without_lines():
    entry = Entry("a", "A", (), 0)
    finding = only(Draft("file.yaml", "nested", [entry, entry]), "duplicate-id")
    assert finding.where == "file.yaml"
    assert finding.message == "label 'a' is given twice; ids must be unique: rename or remove one"


@pytest.mark.parametrize(
    ("aliases", "sentence", "line"),
    [
        ({"b": "a"}, "'b' is a label and also another id of 'a'; remove one of the two", 2),
        ({"x": "y"}, "'x' is another id of 'y', which is not in the taxonomy; add that label", 0),
    ],
)
def test_aliases_that_cannot_be(aliases, sentence, line):
    finding = only(draft(("a", ""), ("b", ["a"]), aliases=aliases), "alias")
    assert (finding.severity, finding.message, finding.line) == ("error", sentence, line)


def test_building_raises_the_first_error_and_counts_the_others():
    with pytest.raises(TaxonomyError) as caught:
        draft(("bars", ["fod"]), ("food", ""), ("food", "")).build()
    assert str(caught.value) == (
        "file.jsonl:1: parent 'fod' of label 'bars' is not in the taxonomy; did you mean 'food'? "
        "(and 1 more; see: hilap taxonomy check)"
    )


# -- warnings ----------------------------------------------------------------------------------------------------------


def test_an_orphan():
    finding = only(draft(("a", ""), ("b", ["a"]), ("alone", "")), "orphan")
    assert (finding.severity, finding.where) == ("warning", "file.jsonl:3")
    assert finding.message == "label 'alone' has neither parents nor children; give it a parent if it was forgotten"


def test_in_a_flat_list_nobody_is_an_orphan():
    assert found(draft(("a", ""), ("b", "")), "orphan") == []


def test_a_label_with_an_unknown_parent_is_no_orphan():
    assert found(draft(("a", ""), ("b", ["a"]), ("c", ["gone"])), "orphan") == []


def test_siblings_of_one_name():
    given = draft(("a", ""), ("b", ["a"], "Other"), ("c", ["a"], "OTHER"), ("d", ["b"], "Other"))
    finding = only(given, "duplicate-sibling-name")
    assert (finding.severity, finding.line, finding.labels) == ("warning", 3, ("b", "c"))
    assert finding.message == (
        "labels 'b' and 'c' below 'a' have one name, 'Other'; "
        "rename them so that people can tell them apart, or merge them"
    )


def test_top_labels_of_one_name_are_siblings_too():
    finding = only(draft(("a", "", "Same"), ("b", "", "same")), "duplicate-sibling-name")
    assert finding.message.startswith("labels 'a' and 'b' at the top have one name, 'Same'; ")


def test_one_name_below_two_parents_is_fine():
    given = draft(("a", ""), ("b", ""), ("c", ["a"], "Other"), ("d", ["b"], "Other"))
    assert found(given, "duplicate-sibling-name") == []


def test_a_chain_of_only_children_is_told_once():
    given = draft(("a", ""), ("b", ["a"]), ("c", ["b"]), ("d", ["c"]), ("e", ["c"]))
    finding = only(given, "single-child-chain")
    assert (finding.severity, finding.line, finding.labels) == ("warning", 1, ("a", "b", "c"))
    assert finding.message == "'a' > 'b' > 'c': each has only one child; merge them unless documents end in between"


def test_a_single_only_child_is_but_a_note():
    given = draft(("a", ""), ("b", ["a"]), ("c", ["b"]), ("d", ["b"]))
    finding = only(given, "single-child-chain")
    assert (finding.severity, finding.labels) == ("note", ("a", "b"))


def test_an_only_child_with_another_parent_makes_no_chain():
    given = draft(("a", ""), ("b", ""), ("c", ["a", "b"]))
    assert found(given, "single-child-chain") == []


def test_two_chains_are_two_findings():
    given = draft(("a", ""), ("b", ["a"]), ("c", ["b"]), ("x", ""), ("y", ["x"]), ("z", ["y"]))
    assert [f.labels for f in found(given, "single-child-chain")] == [("a", "b", "c"), ("x", "y", "z")]


def test_a_redundant_edge_names_the_way_that_makes_it_so():
    given = draft(("a", ""), ("b", ["a"]), ("c", ["a", "b"]), ("d", ["b"]))
    finding = only(given, "redundant-edge")
    assert (finding.severity, finding.line, finding.labels) == ("warning", 3, ("c", "a", "b"))
    assert finding.message == "parent 'a' of label 'c' is redundant, as it is above parent 'b' anyway; remove it"


def test_a_diamond_has_no_redundant_edge():
    assert found(draft(("a", ""), ("b", ["a"]), ("c", ["a"]), ("d", ["b", "c"])), "redundant-edge") == []


def test_a_parent_given_twice():
    finding = only(draft(("a", ""), ("b", ["a", "a"])), "redundant-edge")
    assert (finding.severity, finding.line) == ("warning", 2)
    assert finding.message == "parent 'a' of label 'b' is given twice; once is enough"


def test_where_the_closure_is_too_large_a_note_says_what_was_not_done(monkeypatch):
    monkeypatch.setattr("hilap.taxonomy.graph.MOST_CLOSURE_ENTRIES", 3)
    finding = only(draft(("a", ""), ("b", ["a"]), ("c", ["a", "b"])), "redundant-edge")
    assert finding.severity == "note"
    assert finding.message.startswith("redundant edges were not looked for: the taxonomy is too deep to list all")


@pytest.mark.parametrize("other", ["Food", " food", "food\t", "FOOD "])
def test_ids_that_differ_only_in_case_or_blanks(other):
    finding = only(draft(("food", ""), ("bars", ["food"]), (other, ["food"])), "similar-id")
    assert (finding.severity, finding.line, finding.labels) == ("warning", 3, ("food", other))
    assert finding.message.startswith(f"ids 'food' and {other!r} differ only in case, blanks or Unicode form; ")


def test_ids_that_look_the_same():
    assert only(draft(("caf\u00e9", ""), ("cafe\u0301", "")), "similar-id").line == 2


# -- notes -------------------------------------------------------------------------------------------------------------


def test_several_top_labels_are_but_noted():
    given = draft(("a", ""), ("b", ["a"]), ("c", ""), ("d", ["c"]))
    finding = only(given, "several-roots")
    assert (finding.severity, finding.line, finding.labels) == ("note", 1, ("a", "c"))
    assert finding.message.startswith("there are 2 top labels, and the root above them is understood; ")


def test_a_few_labels_beside_a_giant_are_suspicious():
    below = [(f"x{i}", ["root"]) for i in range(30)]
    finding = only(draft(("root", ""), *below, ("stray", "")), "several-roots")
    assert (finding.severity, finding.line, finding.labels) == ("warning", 32, ("stray",))
    assert finding.message == (
        "nearly all labels are below 'root', but 'stray' is beside it; put 'root' among the parents there"
    )


def test_a_giant_is_known_in_a_dag_too():
    below = [(f"x{i}", ["root", f"x{i - 1}"] if i else ["root"]) for i in range(30)]
    assert only(draft(("root", ""), *below, ("stray", "")), "several-roots").severity == "warning"


def test_two_giants_over_the_same_labels_are_but_noted():
    below = [(f"x{i}", ["one", "two"]) for i in range(60)]
    assert only(draft(("one", ""), ("two", ""), *below), "several-roots").severity == "note"


def test_remarks_of_the_reader_become_notes():
    finding = only(draft(("a", ""), remarks=[(7, "3 obsolete terms were left out")]), "remark")
    assert finding == Finding("note", "remark", "3 obsolete terms were left out", "file.jsonl:7", 7, ())


# -- together ----------------------------------------------------------------------------------------------------------


def test_errors_come_first_and_each_kind_by_line():
    given = draft(
        ("a", ""), ("alone", ""), ("b", ["a"]), ("c", ["gone"]), ("b", ["a"]), ("A", ["a"]), remarks=[(1, "a remark")]
    )
    assert [(f.severity, f.line) for f in lint(given)] == [
        ("error", 4),
        ("error", 5),
        ("warning", 2),
        ("warning", 6),
        ("note", 1),
        ("note", 1),
    ]


def test_findings_as_json_and_as_a_line():
    finding = only(draft(("a", ""), ("b", ["a"]), ("alone", "")), "orphan")
    assert json.loads(json.dumps(finding.to_json())) == {
        "severity": "warning",
        "code": "orphan",
        "message": "label 'alone' has neither parents nor children; give it a parent if it was forgotten",
        "where": "file.jsonl:3",
        "line": 3,
        "labels": ["alone"],
    }
    assert str(finding).startswith("file.jsonl:3: warning: label 'alone' has neither")


def test_control_characters_and_whole_pages_do_not_reach_messages():
    said = only(draft(("\x1b[31mred", ["x" * 5000])), "unknown-parent").message
    assert "\x1b" not in said
    assert len(said) < 500


@pytest.mark.parametrize("kind", ["sound", "unknown parents", "two-cycles", "chain"])
def test_a_hundred_thousand_labels_take_seconds(kind):
    n = 100_000
    rows = {
        "sound": lambda i: (f"L{i}", [f"L{(i - 1) // 5}", "L0"] if i else []),
        "unknown parents": lambda i: (f"L{i}", [f"M{i}"]),
        "two-cycles": lambda i: (f"L{i}", [f"L{i ^ 1}"]),
        "chain": lambda i: (f"L{i}", [f"L{i - 1}"] if i else []),
    }[kind]
    given = draft(*map(rows, range(n)))
    began = time.perf_counter()
    lint(given)
    assert time.perf_counter() - began < 15  # about a second each on an ordinary day
