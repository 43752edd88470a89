"""The run report: one HTML file of what a run did, that opens anywhere and asks for nothing."""

from penstock.observe.report.page import page
from penstock.observe.report.run import Run

__all__ = ["Run", "page"]
