"""The commands and the environment of ``docker/compose.yaml``, with this machine's values.

What the containers run is what the tests start: both read it there.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

DOCKER = Path(__file__).parents[2] / "docker"
COMPOSE = DOCKER / "compose.yaml"
_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


@cache
def services() -> dict[str, Any]:
    """The services as the file has them, variables and all."""
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


def command(service: str, **variables: object) -> list[str]:
    """A service's command; its program is first looked up next to this interpreter."""
    program, *arguments = (filled(word, **variables) for word in services()[service]["command"])
    found = shutil.which(program, path=_path())
    assert found is not None, f"{program} is not installed"
    return [found, *arguments]


def environment(service: str, **variables: object) -> dict[str, str]:
    """What a service's container adds to the environment, and where it finds programs."""
    found = services()[service].get("environment", {})
    return {"PATH": _path(), **{name: filled(value, **variables) for name, value in found.items()}}


def filled(text: str, **variables: object) -> str:
    """A text with its variables filled in, as compose does it.

    >>> filled("spark://${HOST:-master}:${PORT:-7077}", PORT=1234)
    'spark://master:1234'
    """
    return _VARIABLE.sub(lambda found: str(variables.get(found[1], found[2])), text)


def _path() -> str:
    """This interpreter's programs first, which in the image are the only ones."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
