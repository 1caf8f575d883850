"""Runs the golden cases of the original implementations on this build."""

from unmask.conformance.report import Outcome, Report
from unmask.conformance.run import run, run_file

__all__ = ["Outcome", "Report", "run", "run_file"]
