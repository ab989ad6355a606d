"""Hypothesis strategies that several test files share."""

from __future__ import annotations

from hypothesis import strategies as st

from hilap.taxonomy.graph import Taxonomy

# Letters, digits, signs that mean something in some format, blanks inside, and characters beyond ASCII and the BMP.
_ALPHABET = st.one_of(
    st.sampled_from("abcXYZ019 .,;:/\\|<>-_#!\"'{}[]()&%@*?~="),
    st.characters(exclude_categories=["Cc", "Cs"]),
)


def texts(max_size: int = 12) -> st.SearchStrategy[str]:
    """Ids and names that any line of text can hold: not empty, no control characters, no blanks around them."""
    return st.text(_ALPHABET, min_size=1, max_size=max_size).map(str.strip).filter(bool)


def prose(max_size: int = 24) -> st.SearchStrategy[str]:
    """Definitions: texts with blanks and line ends anywhere, and often nothing at all."""
    signs = st.one_of(_ALPHABET, st.sampled_from(' \n\t"\\'))
    return st.one_of(st.just(""), st.text(signs, max_size=max_size))


def words(max_size: int = 8) -> st.SearchStrategy[str]:
    """Ids without any character that means something to a format."""
    return st.text(st.sampled_from("abcdefgXYZ0123456789éß漢"), min_size=1, max_size=max_size)


@st.composite
def taxonomies(
    draw: st.DrawFn,
    max_labels: int = 10,
    dag: bool = True,
    labels: st.SearchStrategy[str] | None = None,
    names: st.SearchStrategy[str] | None = None,
    aliases: bool = False,
    definitions: st.SearchStrategy[str] | None = None,
) -> Taxonomy:
    """A random tree or DAG whose labels stand in any order.

    Parameters
    ----------
    draw
        Given by Hypothesis.
    max_labels
        The most labels there are; there is at least one.
    dag
        Whether labels may have several parents.
    labels, names
        What ids and names look like; without `names`, a label's name is its id.
    aliases
        Whether labels may have other ids.
    definitions
        What definitions look like; without them, no label has one.
    """
    labels = words() if labels is None else labels
    ids = draw(st.lists(labels, min_size=1, max_size=max_labels, unique=True))
    most = 3 if dag else 1
    parents: dict[str, list[str]] = {}
    for i, label in enumerate(ids):
        parents[label] = draw(st.lists(st.sampled_from(ids[:i]), max_size=most, unique=True)) if i else []
    order = draw(st.permutations(ids))
    called = {label: draw(names) for label in ids} if names is not None else None
    others: dict[str, str] = {}
    if aliases:
        new = draw(st.lists(labels.filter(lambda text: text not in parents), max_size=3, unique=True))
        others = {alias: draw(st.sampled_from(ids)) for alias in new}
    meant = {label: draw(definitions) for label in ids} if definitions is not None else None
    return Taxonomy.of({label: parents[label] for label in order}, called, others, meant)


@st.composite
def path_trees(
    draw: st.DrawFn,
    max_labels: int = 10,
    separator: str = " > ",
    names: st.SearchStrategy[str] | None = None,
    definitions: st.SearchStrategy[str] | None = None,
) -> Taxonomy:
    """A random tree whose ids are the paths of names, the same name often standing in several branches."""
    names = st.sampled_from(["A", "B", "C", "d e", "漢"]) if names is None else names
    paths: list[tuple[str, ...]] = []
    for _ in range(draw(st.integers(1, max_labels))):
        above = draw(st.sampled_from([(), *paths]))
        path = (*above, draw(names))
        if path not in paths:
            paths.append(path)
    order = draw(st.permutations(paths))
    joined = separator.join
    return Taxonomy.of(
        {joined(path): [joined(path[:-1])] if len(path) > 1 else [] for path in order},
        {joined(path): path[-1] for path in order},
        definitions=None if definitions is None else {joined(path): draw(definitions) for path in order},
    )
