"""What a format can hold: writers refuse a taxonomy that would come back from the file as another one."""

from __future__ import annotations

from collections.abc import Iterable

from hilap.errors import TaxonomyError
from hilap.taxonomy.formats.building import MOST_LEVELS, check_ids
from hilap.taxonomy.formats.content import shown
from hilap.taxonomy.graph import Taxonomy


def refuse(kind: str, reason: str, instead: str) -> TaxonomyError:
    """The error of a writer whose format cannot hold the taxonomy."""
    return TaxonomyError(f"the format {kind!r} cannot hold this taxonomy: {reason}; {instead}")


def check_holds(
    taxonomy: Taxonomy,
    kind: str,
    *,
    dag: bool = True,
    names: bool = True,
    aliases: bool = False,
    definitions: bool = False,
    plain: bool = True,
) -> None:
    """Refuse a taxonomy whose content the format would lose: a DAG's edges, names, aliases, definitions, odd signs."""
    instead = "write it as jsonl"
    if not dag and not taxonomy.is_tree:
        label = next(label for label in taxonomy.labels if len(taxonomy.parents(label)) > 1)
        raise refuse(kind, f"it holds trees only, and label {shown(label)} has several parents", instead)
    if not dag and taxonomy.depth > MOST_LEVELS:
        raise refuse(kind, f"it has {taxonomy.depth:,} levels, and more than {MOST_LEVELS} are not read", instead)
    if not aliases and taxonomy.aliases:
        alias, label = next(iter(taxonomy.aliases.items()))
        raise refuse(kind, f"it has no aliases, and {shown(alias)} is one of {shown(label)}", instead)
    if not definitions and any(taxonomy.definitions):
        label = next(label for label, text in zip(taxonomy.labels, taxonomy.definitions, strict=True) if text)
        reason = f"it has no definitions, and label {shown(label)} has one"
        raise refuse(kind, reason, f"{instead}, or leave them out with definitions=False")
    for label, name in zip(taxonomy.labels, taxonomy.names, strict=True):
        if not names and name != label:
            raise refuse(kind, f"it has ids only, and label {shown(label)} is called {shown(name)}", instead)
        if plain:
            check_plain(kind, label)
            check_plain(kind, name)


def check_plain(kind: str, text: str) -> None:
    """Refuse a text that would not come back from a line of plain text as it is."""
    if not text or text != text.strip():
        raise refuse(kind, f"{shown(text)} is empty or has blanks around it", "write it as jsonl, or rename it")


def check_no_root(taxonomy: Taxonomy, kind: str, *, lonely: bool = False) -> None:
    """Refuse a top label that would be taken for the root when the file is read again."""
    tops = taxonomy.top_labels
    for label in tops if not lonely or len(tops) == 1 else ():
        if "root" in (label.casefold(), taxonomy.name(label).casefold()):
            raise refuse(kind, f"top label {shown(label)} would be taken for the root", "write it as jsonl")


def depth_first(taxonomy: Taxonomy) -> Iterable[tuple[str, int]]:
    """The labels of a tree with their depth from 0, each followed by everything below it."""
    waiting = [(label, 0) for label in reversed(taxonomy.top_labels)]
    while waiting:
        label, depth = waiting.pop()
        yield label, depth
        waiting.extend((child, depth + 1) for child in reversed(taxonomy.children(label)))


def named_paths(
    taxonomy: Taxonomy, kind: str, ids: str, separator: str, *, numbered: bool, definitions: bool = False
) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Every label of a tree with its path of names, where the label can be told from that path, or has a number."""
    check_ids(ids)
    check_holds(taxonomy, kind, dag=False, definitions=definitions)
    check_no_root(taxonomy, kind, lonely=True)
    stack: list[str] = []
    seen: set[tuple[str, ...]] = set()
    for label, depth in depth_first(taxonomy):
        del stack[depth:]
        stack.append(taxonomy.name(label))
        path = tuple(stack)
        again = separator.join(path) if ids == "path" else path[-1]
        if not numbered and again != label:
            instead = 'write and read it with ids="name", or write it as jsonl'
            raise refuse(kind, f"label {shown(label)} would come back as {shown(again)}", instead)
        if path in seen:
            reason = f"two labels have the path {shown(separator.join(path))}"
            raise refuse(kind, reason, "rename one, or write it as jsonl")
        seen.add(path)
        yield label, path
