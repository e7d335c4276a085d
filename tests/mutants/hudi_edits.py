"""Wrong edits of what is known of Hudi tables, each with the tests that must notice it.

They need Hudi's jar: ``pytest -s -m mutants tests/lakes/hudi`` runs them in the environment of
``make test-hudi-3.5``.
"""

from __future__ import annotations

from tests.mutants.wrong_edits import WrongEdit, edits

_HUDI, _RULES = "spark/catalog/lakes/hudi.py", "statement/lake_formats.py"
READS, CHANGES = (f"tests/lakes/hudi/test_{name}.py" for name in ("reads", "changes"))


def _noticed_by(
    tests: str, words: str, file: str, text: str, instead: str, why: str
) -> tuple[WrongEdit, str, str]:
    (edit,) = edits(file, (text, instead, why))
    return edit, tests, words


HUDI_EDITS = (
    _noticed_by(
        READS,
        "key_generator",
        _HUDI,
        "if fields and generator not in _KEY_GENERATORS:",
        "if False:",
        "a folder's name is not the column's value",
    ),
    _noticed_by(
        READS,
        "types_of_partition_columns",
        _HUDI,
        "types.get(each) not in (None, TIMESTAMP)",
        "types.get(each) is not None",
        "a folder's name has no microseconds",
    ),
    _noticed_by(
        READS,
        "test_statements",
        _HUDI,
        'return " AND ".join(',
        'return " OR ".join(',
        "all conditions hold together",
    ),
    _noticed_by(
        READS,
        "test_statements",
        _HUDI,
        "or dict.fromkeys(_COUNTS, 0)",
        "or whole",
        "a condition that is never true leaves no scan",
    ),
    _noticed_by(
        READS,
        "rows_and_files",
        _HUDI,
        "_scanned(frame.where(found.expression))",
        "_scanned(frame)",
        "the condition skips files",
    ),
    _noticed_by(
        READS,
        "log_files or data_column",
        _HUDI,
        "if index.isPresent() else ()",
        "if index.isEmpty() else ()",
        "the columns are those that the index has",
    ),
    _noticed_by(
        CHANGES,
        "merge_passes_through",
        _RULES,
        '            "MERGE": "Hudi',
        '            "MERGER": "Hudi',
        "Hudi refuses a list in ON",
    ),
)
