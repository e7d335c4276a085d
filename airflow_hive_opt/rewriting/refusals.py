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
    Refusal.FORM_NOT_KNOWN: "this part of the statement has a form not known here",
    Refusal.NOT_DETERMINISTIC: (
        "the statement may give other rows each time it is run (rand, current_date, first, "
        "LIMIT without ORDER BY and the like)"
    ),
    Refusal.NO_SHARED_KEY: "the table's two uses are not joined by equality of one key",
    Refusal.FLOATING_POINT: (
        "a sum or an average of floating-point numbers depends on the order in which they are "
        "added, so another plan could give other digits"
    ),
    Refusal.ORDER_OF_ROWS: (
        "a function of the statement may depend on the order of rows (row_number, lag, stddev and "
        "the like), so another plan could give other values"
    ),
    Refusal.KEY_TYPE: (
        "the key has a type for which grouping and equality may differ, or its two sides have "
        "different types"
    ),
    Refusal.EXPRESSION_NOT_KNOWN: "an expression to be moved has a function not known here",
    Refusal.MAY_FAIL: (
        "an expression could overflow, or fail to turn text into a number, on rows that the "
        "statement as written never asks it of"
    ),
    Refusal.NULL_SUPPLYING_SIDE: "an outer join may put NULLs in place of the table's rows",
    Refusal.SELECT_STAR: "SELECT * would show the columns that the rewriting adds or removes",
    Refusal.OTHER_FILTERS: "the table's two uses are filtered differently",
    Refusal.OTHER_USES: "the table's rows are used in other ways than by key and aggregate",
    Refusal.SIZE_NOT_KNOWN: "the table's size is not known, so no gain can be expected",
    Refusal.TABLE_SMALL: (
        "the table is within hive.auto.convert.join.noconditionaltask.size: Spark broadcasts it "
        "and shuffles nothing"
    ),
    Refusal.NOT_EXPECTED_TO_WIN: "the rewriting is not expected to be faster by 10 %",
    Refusal.PRUNING_WOULD_BE_LOST: (
        "small tables' keys prune the table's partitions, which the rewriting would hide from them"
    ),
    Refusal.SPARK_DISAGREES: "Spark does not give the rewritten statement the same columns",
}
