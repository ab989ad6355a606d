"""The corpus: documents with labels, read lazily from any format, closed upward, and written again."""

from hilap.corpus.examples import Example, Examples
from hilap.corpus.readers import read
from hilap.corpus.report import ReadReport
from hilap.corpus.source import Corpus
from hilap.corpus.writers import write

__all__ = ["Corpus", "Example", "Examples", "ReadReport", "read", "write"]
