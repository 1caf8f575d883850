"""An HTML page that plays traces: one file that contains its style, script and traces."""

from pathlib import Path

FOLDER = Path(__file__).parent  # the scripts and styles; a server can serve this folder
