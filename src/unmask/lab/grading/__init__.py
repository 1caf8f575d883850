"""Grading: answers extracted from texts and compared with references."""

from unmask.lab.grading.response import Response
from unmask.lab.grading.scorer import Grade, Mark, Ruling, Scorer, score, selftest
from unmask.lab.grading.tools import Judge, Tools
from unmask.lab.grading.verify import Verified, Verifier
from unmask.lab.sandbox import Program, Verdict

__all__ = [
    "Grade", "Judge", "Mark", "Program", "Response", "Ruling", "Scorer", "Tools", "Verdict",
    "Verified", "Verifier", "score", "selftest",
]  # fmt: skip
