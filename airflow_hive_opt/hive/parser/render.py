"""Writes resolved expressions as SQL."""

from __future__ import annotations

from airflow_hive_opt.hive.parser.syntax import Call, Column, Constant, Expression

_INFIX_WORDS = """
= <=> <> < <= > >= + - * / % & | ^ || div and or like rlike
"""
_INFIX = frozenset(_INFIX_WORDS.split())


def render(expression: Expression) -> str:
    """Returns the expression as SQL, with the internal names of its columns.

    >>> render(Call(">", (Column("key"), Constant("'5'", "string"))))
    "key > '5'"
    """
    if isinstance(expression, Column):
        return expression.name
    if isinstance(expression, Constant):
        return expression.text
    if not isinstance(expression, Call):
        return "?"
    name, parts = expression.name, [_operand(part) for part in expression.arguments]
    if name in _INFIX:
        return f" {name.upper()} ".join(parts)
    if name == "not":
        return f"NOT {parts[0]}"
    if name in ("isnull", "isnotnull"):
        return f"{parts[0]} IS {'NOT ' if name == 'isnotnull' else ''}NULL"
    if name == "between":
        return f"{parts[0]} BETWEEN {parts[1]} AND {parts[2]}"
    plain = [render(part) for part in expression.arguments]
    if name == "in":
        return f"{parts[0]} IN ({', '.join(plain[1:])})"
    if name == "cast":
        return f"CAST({plain[0]} AS {expression.note.upper()})"
    if name in ("case", "when"):
        return _case(name, plain)
    if name == "field":
        return f"{parts[0]}.{expression.note}"
    if name == "index":
        return f"{parts[0]}[{plain[1]}]"
    if name.startswith("unary "):
        return f"{name[-1]}{parts[0]}"
    if name == "struct()":
        return f"({', '.join(plain)})"
    return f"{name}({'DISTINCT ' if expression.distinct else ''}{', '.join(plain)})"


def _operand(expression: Expression) -> str:
    text = render(expression)
    compound = isinstance(expression, Call) and (
        expression.name in _INFIX
        or expression.name in ("not", "isnull", "isnotnull", "between", "in")
    )
    return f"({text})" if compound else text


def _case(name: str, parts: list[str]) -> str:
    head = "CASE"
    if name == "case":
        head, parts = f"CASE {parts[0]}", parts[1:]
    pairs = zip(parts[0::2], parts[1::2])
    whens = " ".join(f"WHEN {when} THEN {then}" for when, then in pairs)
    other = f" ELSE {parts[-1]}" if len(parts) % 2 else ""
    return f"{head} {whens}{other} END"
