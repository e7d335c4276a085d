"""The reasons why a statement is not rewritten: a closed list, with one sentence for each."""

from __future__ import annotations

from airflow_hive_opt.statement.text_enum import StrEnum


class Refusal(StrEnum):
    """A reason code; :attr:`sentence` explains it."""

    OFF = "OFF"
    FORM_NOT_KNOWN = "FORM_NOT_KNOWN"
    NOT_DETERMINISTIC = "NOT_DETERMINISTIC"
    NO_SHARED_KEY = "NO_SHARED_KEY"
    FLOATING_POINT = "FLOATING_POINT"
    ORDER_OF_ROWS = "ORDER_OF_ROWS"
    KEY_TYPE = "KEY_TYPE"
    EXPRESSION_NOT_KNOWN = "EXPRESSION_NOT_KNOWN"
    MAY_FAIL = "MAY_FAIL"
    NULL_SUPPLYING_SIDE = "NULL_SUPPLYING_SIDE"
    SELECT_STAR = "SELECT_STAR"
    OTHER_FILTERS = "OTHER_FILTERS"
    OTHER_USES = "OTHER_USES"
    SIZE_NOT_KNOWN = "SIZE_NOT_KNOWN"
    TABLE_SMALL = "TABLE_SMALL"
    NOT_EXPECTED_TO_WIN = "NOT_EXPECTED_TO_WIN"
    PRUNING_WOULD_BE_LOST = "PRUNING_WOULD_BE_LOST"
    SPARK_DISAGREES = "SPARK_DISAGREES"

    @property
    def sentence(self) -> str:
        """The meaning of the code, for logs and reports."""
        return _SENTENCES[self]


class Refused(Exception):
    """A rewriting found its shape, but must not or should not be applied to it."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason.sentence)
        self.reason = reason


_SENTENCES = {
    Refusal.OFF: "hive.optimize.correlation is false",
    Refusal.FORM_NOT_KNOWN: (
        "this rewriting does not support the form of this part of the statement"
    ),
    Refusal.NOT_DETERMINISTIC: (
        "the statement may return other rows each time it runs (rand, current_date, first, "
        "LIMIT without ORDER BY and similar)"
    ),
    Refusal.NO_SHARED_KEY: "the two uses of the table are not joined by an equality of one key",
    Refusal.FLOATING_POINT: (
        "a sum or an average of floating-point numbers depends on the order of addition, so "
        "another plan could return other digits"
    ),
    Refusal.ORDER_OF_ROWS: (
        "a function may depend on the order of rows (row_number, lag, stddev and similar), so "
        "another plan could return other values"
    ),
    Refusal.KEY_TYPE: (
        "grouping and equality may differ for the key's type, or its two sides have different types"
    ),
    Refusal.EXPRESSION_NOT_KNOWN: (
        "the rewriting would move an expression that has a function it does not know"
    ),
    Refusal.MAY_FAIL: (
        "an expression could fail (overflow, or a cast of text to a number) on rows for which "
        "the original statement does not evaluate it"
    ),
    Refusal.NULL_SUPPLYING_SIDE: "an outer join may put NULLs in place of the table's rows",
    Refusal.SELECT_STAR: "SELECT * would return the columns that the rewriting adds or removes",
    Refusal.OTHER_FILTERS: "the two uses of the table have different filters",
    Refusal.OTHER_USES: (
        "the statement uses the table in a way that the rewriting does not support: it supports "
        "lookups by key and aggregates by key"
    ),
    Refusal.SIZE_NOT_KNOWN: "the table's size is not known, so the gain can't be estimated",
    Refusal.TABLE_SMALL: (
        "the table is smaller than hive.auto.convert.join.noconditionaltask.size, so Spark "
        "broadcasts it and shuffles nothing"
    ),
    Refusal.NOT_EXPECTED_TO_WIN: "the estimated gain is below 10 %",
    Refusal.PRUNING_WOULD_BE_LOST: (
        "small tables' keys prune the table's partitions, and the rewriting would prevent that"
    ),
    Refusal.SPARK_DISAGREES: "Spark returns other columns for the rewritten statement",
}
