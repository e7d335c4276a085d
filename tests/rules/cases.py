"""The cases of the fixture files: read, and written again.

``README.md`` explains the format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
_SECTION = re.compile(r"^-- (sql|before|after)\n", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """``sections`` has the texts below ``-- sql``, ``-- before`` and ``-- after``."""

    title: str
    sections: dict[str, str]

    @property
    def statement(self) -> str:
        """The statement, with its ``SET`` lines."""
        return self.sections.get("sql") or self.sections["before"]


def files() -> dict[str, Path]:
    """The fixture files, by optimizer and rule."""
    return {
        f"{path.parent.name}/{path.stem}": path
        for path in sorted(HERE.glob("*/*.sql"), key=lambda path: path.parts[-2:])
    }


def read(path: Path) -> tuple[str, list[Case]]:
    """What the file says of the rule, and its cases."""
    head, *paragraphs = path.read_text().rstrip("\n").split("\n\n")
    return head, [Case(*_parts(paragraph)) for paragraph in paragraphs]


def write(path: Path, head: str, cases: list[Case]) -> None:
    path.write_text("\n\n".join([head, *map("".join, map(_lines, cases))]) + "\n")


def _parts(paragraph: str) -> tuple[str, dict[str, str]]:
    title, *rest = _SECTION.split(paragraph)
    return title, {
        name: text.rstrip("\n") for name, text in zip(rest[::2], rest[1::2], strict=True)
    }


def _lines(case: Case) -> Iterator[str]:
    yield case.title
    yield "\n".join(f"-- {name}\n{text}" for name, text in case.sections.items())
