"""One run as an HTML file that needs no server: the page's script, styles and data are in it."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal

from airflow_hive_opt.pages.models import Instance, PartitionPage
from airflow_hive_opt.pages.static_files import STATIC

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data: blob:; \
script-src {script_hash}; style-src {style_hash}; base-uri 'none'; form-action 'none'">
<title>Partition pruning</title>
<style>{style}</style>
</head>
<body>
<div id="root"></div>
<script type="application/json" id="data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


class NotBuiltError(Exception):
    """The script of the pages is missing: the package was installed from unbuilt sources."""


def html_file(
    instance: Instance, partitions: Sequence[PartitionPage], kind: Literal["instance", "plan"]
) -> str:
    """The file's text. A browser runs only the script with the known hash, so no value can run.

    ``kind`` says whether the statement has run. Raises :class:`NotBuiltError`.
    """
    script = _static("pages.js").replace("</script", r"<\/script")
    style = _static("pages.css").replace("</style", r"<\/style")
    data: dict[str, Any] = {
        "kind": kind,
        "data": instance.model_dump(mode="json"),
        "partitions": [page.model_dump(mode="json") for page in partitions],
    }
    parts = {
        "script_hash": _hash(script),
        "style_hash": _hash(style),
        "style": style,
        "script": script,
        "data": json.dumps(data).replace("<", r"\u003c"),
    }
    text = _PAGE
    for name, value in parts.items():
        text = text.replace(f"{{{name}}}", value, 1)
    return text


def _static(name: str) -> str:
    path = STATIC / name
    if not path.exists():
        raise NotBuiltError(
            f"{name} is missing, the script of the pages: install the wheel, or run `make pages`"
        )
    return path.read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
