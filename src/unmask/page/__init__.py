"""The page that plays a trace: one HTML file with style, script and traces inside."""

from pathlib import Path

FOLDER = Path(__file__).parent  # the parts, which a server can serve as they lie there

__all__ = ["FOLDER"]
