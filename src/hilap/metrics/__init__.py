"""Metrics of label sets and scores: flat, hierarchical, ranking, calibration, significance, and one report of all.

Gold is closed upward, the root is never counted, and every convention is said in the report's notes.
"""

from hilap.metrics.comparison import Comparison, compare
from hilap.metrics.flat import example, f1_from_counts, macro, micro
from hilap.metrics.report import Report, report

__all__ = ["Comparison", "Report", "compare", "example", "f1_from_counts", "macro", "micro", "report"]
