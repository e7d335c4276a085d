"""The folder with the script and the styles of the pages."""

from pathlib import Path

STATIC = Path(__file__).parent / "static"
