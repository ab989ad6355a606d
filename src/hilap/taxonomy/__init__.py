"""The taxonomy: an immutable tree or DAG of labels, its readers, its linter and its pictures."""

from hilap.taxonomy.graph import Taxonomy

__all__ = ["Taxonomy"]
