"""Resolves names in expressions to columns of an operator (Hive's type check)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_hive_opt.hive.graph.operator_graph import ColumnInfo
from airflow_hive_opt.hive.parser import syntax
from airflow_hive_opt.statement.errors import PlanError, position

# ``SHOW FUNCTIONS`` of Hive 2.3.
_FUNCTIONS_WORDS = """
abs acos add_months aes_decrypt aes_encrypt and array array_contains ascii asin assert_true atan
avg base64 between bin bloom_filter bround cardinality_violation case cbrt ceil ceiling
char_length character_length chr coalesce collect_list collect_set compute_stats concat
concat_ws context_ngrams conv corr cos count covar_pop covar_samp crc32 create_union cume_dist
current_database current_date current_timestamp current_user date_add date_format date_sub
datediff day dayofmonth dayofweek decode degrees dense_rank div e elt encode ewah_bitmap
ewah_bitmap_and ewah_bitmap_empty ewah_bitmap_or exp explode extract_union factorial field
find_in_set first_value floor floor_day floor_hour floor_minute floor_month floor_quarter
floor_second floor_week floor_year format_number from_unixtime from_utc_timestamp
get_json_object get_splits greatest grouping hash hex histogram_numeric hour if in
in_bloom_filter in_file index initcap inline instr internal_interval isnotnull isnull
java_method json_tuple lag last_day last_value lcase lead least length levenshtein like ln
locate log log10 log2 logged_in_user lower lpad ltrim map map_keys map_values mask mask_first_n
mask_hash mask_last_n mask_show_first_n mask_show_last_n matchpath max md5 min minute mod month
months_between named_struct negative next_day ngrams noop noopstreaming noopwithmap
noopwithmapstreaming not ntile nullif nvl octet_length or parse_url parse_url_tuple percent_rank
percentile percentile_approx pi pmod posexplode positive pow power printf quarter radians rand
rank reflect reflect2 regexp regexp_extract regexp_replace regr_avgx regr_avgy regr_count
regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat replace replicate_rows
reverse rlike round row_number rpad rtrim second sentences sha sha1 sha2 shiftleft shiftright
shiftrightunsigned sign sin size sort_array sort_array_by soundex space split sq_count_check
sqrt stack std stddev stddev_pop stddev_samp str_to_map struct substr substring substring_index
sum tan to_date to_unix_timestamp to_utc_timestamp translate trim trunc ucase unbase64 unhex
unix_timestamp upper uuid var_pop var_samp variance version weekofyear when
windowingtablefunction xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long
xpath_number xpath_short xpath_string year
"""
_FUNCTIONS = frozenset(_FUNCTIONS_WORDS.split())
_AGGREGATES_WORDS = """
count sum min max avg variance var_pop var_samp stddev stddev_pop stddev_samp std corr covar_pop
covar_samp percentile percentile_approx histogram_numeric collect_set collect_list
context_ngrams ngrams compute_stats bloom_filter regr_slope regr_count approx_distinct max_n
min_n example_avg test_max udaf_max estddev
"""
_AGGREGATES = frozenset(_AGGREGATES_WORDS.split())
_TABLE_FUNCTIONS_WORDS = """
explode posexplode inline stack json_tuple parse_url_tuple explode2 explode3 count2 get_splits
replicate_rows
"""
TABLE_FUNCTIONS = frozenset(_TABLE_FUNCTIONS_WORDS.split())
_NOT_DETERMINISTIC = ("rand", "uuid", "reflect", "reflect2", "java_method", "unix_timestamp")
_COMPARISONS = ("=", "<=>", "<>", "<", "<=", ">", ">=", "like", "rlike", "between", "in")
# Calls that are not functions: casts, and operators that are words.
_FORMS_WORDS = """
cast array named_struct uniontype exists interval string int bigint double float boolean tinyint
smallint date timestamp binary decimal varchar char field index current_date current_timestamp
"""
_FORMS = frozenset(_FORMS_WORDS.split()) | {"unary ~", "struct()"}
_TEXT_WORDS = """
concat upper lower ucase lcase substr substring trim ltrim rtrim concat_ws regexp_replace
regexp_extract lpad rpad repeat reverse from_unixtime get_json_object hex
"""
_TEXT = frozenset(_TEXT_WORDS.split())
_COUNTS = ("count", "row_number", "rank", "floor", "ceil", "ceiling", "unix_timestamp")
_NEGATIONS = (("=", "<>"), ("<", ">="), (">", "<="), ("isnull", "isnotnull"))
_OPPOSITES = {**dict(_NEGATIONS), **{other: name for name, other in _NEGATIONS}}
NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")


def error(sql: str, number: int, message: str, at: int | None = None) -> PlanError:
    """Returns a semantic error with Hive's error number, positioned at offset ``at``."""
    where = position(sql, at) if at is not None else (None, None)
    return PlanError("SEMANTIC", message, *where, number=number)


@dataclass(frozen=True)
class Scope:
    """The columns that an expression may use.

    ``known`` maps whole expressions (GROUP BY keys, aggregates) to the columns that hold them.
    ``grouped`` marks the scope of a group-by: a column outside ``known`` is error 10025.
    """

    sql: str
    columns: Sequence[ColumnInfo]
    known: Mapping[syntax.Expression, syntax.Column] = field(default_factory=dict)
    grouped: bool = False

    def resolve(self, expression: syntax.Expression) -> syntax.Expression:
        """Returns the expression over internal columns; raises :class:`PlanError`."""
        found = self.known.get(expression)
        if found is not None:
            return found
        if isinstance(expression, syntax.Name):
            return self._name(expression)
        if isinstance(expression, syntax.Call):
            return self._call(expression)
        if isinstance(expression, syntax.Star):
            raise error(self.sql, 10010, "* can't stand inside an expression", expression.at)
        if isinstance(expression, syntax.Subquery):
            message = "a subquery can only stand in WHERE or HAVING, as IN or EXISTS"
            raise error(self.sql, 10249, message, expression.at)
        return expression

    def arguments(self, call: syntax.Call) -> tuple[syntax.Expression, ...]:
        """Returns the resolved arguments of a call; ``*`` counts as a constant."""
        one = syntax.Constant("1", "int")
        return tuple(
            one if isinstance(argument, syntax.Star) else self.resolve(argument)
            for argument in call.arguments
        )

    def _call(self, call: syntax.Call) -> syntax.Expression:
        if any(isinstance(argument, syntax.Subquery) for argument in call.arguments):
            message = "a subquery can only stand in WHERE or HAVING, as IN or EXISTS"
            raise error(self.sql, 10249, message, call.at)
        if call.over is None and is_aggregate(call):
            number = 10025 if self.grouped else 10128
            raise error(self.sql, number, f"{call.name}() can't stand here", call.at)
        if call.name[0].isalpha() and call.name not in _FUNCTIONS and call.name not in _FORMS:
            raise error(self.sql, 10011, f"Hive has no function {call.name}", call.at)
        arguments = self.arguments(call)
        inner = arguments[0] if call.name == "not" else None
        if isinstance(inner, syntax.Call):
            return _negated(inner, call)
        return syntax.Call(call.name, arguments, call.at, call.distinct, None, call.note)

    def _name(self, name: syntax.Name) -> syntax.Expression:
        if len(name.parts) > 1:
            alias, column = name.parts[:2]
            if any(info.table == alias for info in self.columns):
                infos = [
                    info for info in self.columns if (info.table, info.name) == (alias, column)
                ]
                if infos:
                    return _with_fields(infos[0].column, name.parts[2:])
                message = f"there is no column {column} in {alias}"
                raise error(self.sql, 10025 if self.grouped else 10002, message, name.at)
        first = name.parts[0]
        infos = [info for info in self.columns if info.name == first]
        if len({info.table for info in infos if info.table}) > 1:
            message = f"column {first} is ambiguous: put the table's alias before it"
            raise error(self.sql, 40000, message, name.at)
        if infos:
            return _with_fields(infos[0].column, name.parts[1:])
        if self.grouped:
            message = f"{'.'.join(name.parts)} is no key of the GROUP BY"
            raise error(self.sql, 10025, message, name.at)
        message = f"there is no table or column {'.'.join(name.parts)} here"
        raise error(self.sql, 10004, message, name.at)


def _negated(inner: syntax.Call, outer: syntax.Call) -> syntax.Expression:
    """Negates a comparison or applies De Morgan: NOT of AND becomes OR of NOTs."""
    if inner.name in _OPPOSITES:
        return syntax.Call(_OPPOSITES[inner.name], inner.arguments, outer.at)
    if inner.name in ("and", "or"):
        parts = tuple(
            _negated(part, outer)
            if isinstance(part, syntax.Call)
            else syntax.Call("not", (part,), outer.at)
            for part in inner.arguments
        )
        return syntax.Call("or" if inner.name == "and" else "and", parts, outer.at)
    return syntax.Call("not", (inner,), outer.at)


def _with_fields(column: syntax.Column, fields: Sequence[str]) -> syntax.Expression:
    found: syntax.Expression = column
    for name in fields:
        found = syntax.Call("field", (found,), note=name)
    return found


def is_aggregate(expression: syntax.Expression) -> bool:
    """Tells whether the expression itself is a call of an aggregate function."""
    return (
        isinstance(expression, syntax.Call)
        and expression.name in _AGGREGATES
        and expression.over is None
    )


def aggregates_in(expression: syntax.Expression) -> list[syntax.Call]:
    """Returns the outermost aggregate calls, left to right.

    A call with OVER is not one, but its arguments and keys may contain some.
    """
    if isinstance(expression, syntax.Call):
        if is_aggregate(expression):
            return [expression]
        found = [call for part in expression.arguments for call in aggregates_in(part)]
        if expression.over:
            for key in expression.over.partition_by:
                found += aggregates_in(key)
            for key, _ in expression.over.order_by:
                found += aggregates_in(key)
        return found
    return []


def windows_in(expression: syntax.Expression) -> list[syntax.Call]:
    """Returns the calls with OVER."""
    return [part for part in syntax.walk(expression) if isinstance(part, syntax.Call) and part.over]


def is_deterministic(expression: syntax.Expression) -> bool:
    """Tells whether every evaluation gives the same value.

    >>> is_deterministic(syntax.Call("round", (syntax.Call("rand", ()),)))
    False
    """
    return not any(
        isinstance(part, syntax.Call) and part.name in _NOT_DETERMINISTIC and not part.arguments[1:]
        for part in syntax.walk(expression)
    )


def type_of(expression: syntax.Expression) -> str:
    """Returns Hive's type of a resolved expression, or ``unknown``.

    The type is only as exact as join keys need.
    """
    if isinstance(expression, (syntax.Column, syntax.Constant)):
        return expression.type
    if not isinstance(expression, syntax.Call):
        return "string"
    name, arguments = expression.name, expression.arguments
    if name == "cast":
        return expression.note
    if name in _COMPARISONS or name in ("and", "or", "not", "isnull", "isnotnull"):
        return "boolean"
    if name in _COUNTS:
        return "bigint"
    if name in ("length", "year", "month", "day", "hour", "hash", "size", "datediff", "instr"):
        return "int"
    if name in ("sum", "+", "-", "*", "%", "max", "min", "coalesce", "nvl", "unary -"):
        return _arithmetic(name, [type_of(argument) for argument in arguments])
    if name in ("/", "avg", "rand", "pow", "sqrt", "exp", "ln", "log"):
        return "double"
    if name in ("if", "when", "case"):
        return type_of(arguments[-1])
    return "string" if name in _TEXT else "unknown"


def _arithmetic(name: str, types: list[str]) -> str:
    if name in ("max", "min", "coalesce", "nvl"):
        return next((found for found in types if found != "void"), "string")
    bases = [found.partition("(")[0] for found in types]
    if name == "sum" and bases[0] == "unknown":
        return "unknown"
    if name == "sum":
        return "bigint" if bases[0] in NUMBERS[:4] else bases[0].replace("string", "double")
    if "unknown" in bases:
        return "unknown"
    if any(base not in NUMBERS for base in bases):
        return "double"
    return max(bases, key=NUMBERS.index, default="int")
