"""Random key queries, with more than the worker evaluates."""

from __future__ import annotations

import random

from tests.worker.fuzzed_tables import DAYS, INTEGERS, TEXTS

NUMBERS = ("tinyint", "smallint", "int", "bigint")


def kind_of(type_: str) -> str:
    if type_ in NUMBERS:
        return "integer"
    if type_.startswith("decimal"):
        return "decimal"
    return "string" if type_.startswith("varchar") else type_


class Generator:
    """``scope`` has pairs of an alias and the columns with their types."""

    def __init__(self, rng: random.Random, tables: dict[str, dict[str, str]]) -> None:
        self.rng = rng
        self.tables = tables
        self.taken = 0

    def pick(self, *choices):
        return self.rng.choice(choices)

    def alias(self) -> str:
        self.taken += 1
        return f"x{self.taken}"

    def column(self, scope, kind: str) -> str | None:
        found = [
            f"{alias}.{name}"
            for alias, columns in scope
            for name, type_ in columns.items()
            if kind_of(type_) == kind
        ]
        return self.rng.choice(found) if found else None

    def literal(self, kind: str) -> str:
        rng = self.rng
        if kind == "integer":
            number = str(rng.choice(INTEGERS))
            return rng.choice(
                [number] * 6
                + [
                    f"{rng.choice(INTEGERS)}L",
                    "300",
                    "99999999999",
                    f"'{number}'",
                    "NULL",
                    f"'0{abs(int(number))}'",
                    "2147483648",
                    "-2147483648",
                ]
            )
        if kind == "decimal":
            return self.pick(
                "1.5",
                "0.25",
                "7.00",
                "1",
                "100",
                "8.500",
                "-1.0",
                ".5",
                "1e1",
                "3",
                "12345678901234567890",
            )
        if kind == "string":
            text = rng.choice(TEXTS)
            return self.pick(
                f"'{text}'",
                f"'{text}'",
                f'"{text}"',
                f"'{text}'",
                "NULL",
                "'it\\'s'",
                "'a' 'b'",
                "8",
            )
        if kind == "date":
            day = rng.choice(DAYS)
            return self.pick(
                *(f"DATE '{day}'", f"'{day}'", f"'{day}'", f"CAST('{day}' AS DATE)"),
                *("'2020-1-3'", "'2020-02-30'", "NULL", "'2020'", f"to_date('{day}')"),
            )
        if kind == "boolean":
            return self.pick("true", "false", "NULL")
        if kind == "double":
            return self.pick("1.5D", "0.0D", "2")
        if kind == "timestamp":
            return "TIMESTAMP '2020-01-02 00:00:00'"
        return "'a'"

    def value(self, scope, kind: str, depth: int = 2) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.55:
            column = self.column(scope, kind)
            if column is None or rng.random() < 0.25:
                return self.literal(kind)
            return column
        v = lambda k: self.value(scope, k, depth - 1)  # noqa: E731
        if rng.random() < 0.25:
            return self.pick(
                lambda: f"coalesce({v(kind)}, {v(kind)})",
                lambda: f"if({self.condition(scope, depth - 1)}, {v(kind)}, {v(kind)})",
                lambda: (
                    f"CASE WHEN {self.condition(scope, depth - 1)} "
                    f"THEN {v(kind)} ELSE {v(kind)} END"
                ),
                lambda: f"CASE {v('integer')} WHEN 1 THEN {v(kind)} WHEN 8 THEN {v(kind)} END",
                lambda: f"nvl({v(kind)}, {v(kind)})",
                lambda: f"nullif({v(kind)}, {v(kind)})",
                lambda: self.scalar(scope, kind),
            )()
        if kind == "integer":
            return self.pick(
                *(f"({v(kind)} {op} {v(kind)})" for op in "+-*"),
                f"({v(kind)} % {self.pick(2, 3, 7, 0)})",
                f"-{v(kind)}",
                *(
                    f"{f}({v('date')})"
                    for f in (
                        "year",
                        "month",
                        "day",
                        "quarter",
                        "dayofweek",
                        "weekofyear",
                        "dayofyear",
                        "weekday",
                        "dayofmonth",
                    )
                ),
                f"length({v('string')})",
                f"datediff({v('date')}, {v('date')})",
                f"CAST({v('string')} AS INT)",
                f"CAST({v('integer')} AS {self.pick('BIGINT', 'INT', 'TINYINT')})",
                f"abs({v(kind)})",
            )
        if kind == "decimal":
            return self.pick(
                f"({v(kind)} + {v(kind)})", f"CAST({v('integer')} AS DECIMAL(10,2))", v("integer")
            )
        if kind == "string":
            return self.pick(
                f"substr({v(kind)}, {self.pick(1, 1, 2, 3, 0, -1)}, {self.pick(0, 1, 2, 4)})",
                f"substring({v(kind)}, {self.pick(1, 2)})",
                f"concat({v(kind)}, {v(kind)})",
                f"({v(kind)} || {v(kind)})",
                f"upper({v(kind)})",
                f"trim({v(kind)})",
                f"CAST({v(self.pick('integer', 'date', 'decimal', 'boolean'))} AS STRING)",
                f"date_format({v('date')}, 'yyyyMM')",
            )
        if kind == "date":
            return self.pick(
                f"date_add({v(kind)}, {self.pick(1, 30, -1, 366)})",
                f"date_sub({v(kind)}, {self.pick(1, 30)})",
                f"({v(kind)} + INTERVAL {self.pick(1, 3)} "
                f"{self.pick('DAY', 'DAYS', 'MONTH', 'YEAR', 'WEEK')})",
                f"({v(kind)} - INTERVAL '{self.pick(1, 3)}' {self.pick('DAY', 'MONTH')})",
                f"add_months({v(kind)}, {self.pick(1, -1, 12)})",
                f"last_day({v(kind)})",
                f"trunc({v(kind)}, '{self.pick('MM', 'YEAR', 'QUARTER', 'WEEK', 'month', 'DD')}')",
                f"({v(kind)} + {self.pick(1, 2)})",
                f"to_date({v('string')})",
            )
        return self.literal(kind)

    def scalar(self, scope, kind: str) -> str:
        if not self.tables:
            return self.literal(kind)
        name, columns = self.rng.choice(list(self.tables.items()))
        alias = self.alias()
        inner = [(alias, columns)]
        column = self.column(inner, kind)
        if column is None:
            return self.literal(kind)
        where = f" WHERE {self.condition(inner, 1)}" if self.rng.random() < 0.5 else ""
        return f"(SELECT {self.pick('max', 'min')}({column}) FROM {name} AS {alias}{where})"

    def subquery(self, scope, depth: int) -> str:
        name, columns = self.rng.choice(list(self.tables.items()))
        alias = self.alias()
        inner = [(alias, columns)]
        kind = self.pick("integer", "string", "date", "decimal")
        column, mine = self.column(inner, kind), self.column(scope, kind)
        if column is None or mine is None:
            return "1 = 1"
        where = self.condition(inner, depth - 1)
        having = f"SELECT {column} FROM {name} AS {alias} GROUP BY {column} HAVING count(*) > 1"
        counted = f"SELECT max({column}) FROM {name} AS {alias} WHERE {where}"
        return self.pick(
            f"{mine} IN (SELECT {column} FROM {name} AS {alias} WHERE {where})",
            f"{mine} IN (SELECT {column} FROM {name} AS {alias})",
            f"{mine} NOT IN (SELECT {column} FROM {name} AS {alias} WHERE {where})",
            f"EXISTS (SELECT 1 FROM {name} AS {alias} WHERE {column} = {mine} AND {where})",
            f"NOT EXISTS (SELECT 1 FROM {name} AS {alias} WHERE {column} = {mine} AND {where})",
            f"EXISTS (SELECT {column} FROM {name} AS {alias} WHERE {column} < {mine})",
            f"({mine}, 1) IN (SELECT {column}, 1 FROM {name} AS {alias} WHERE {where})",
            f"{mine} IN ({having})",
            *(
                f"({mine} IN (SELECT {column} FROM {name} AS {alias})) {told}"
                for told in ("IS NOT NULL", "= false", "<=> true")
            ),
            f"{mine} IN ({counted})",
            f"{mine} = ({counted})",
            f"{mine} IN (SELECT {column} FROM {name} AS {alias} WHERE {where} "
            f"UNION ALL SELECT {column} FROM {name} AS {alias})",
        )

    def condition(self, scope, depth: int = 3) -> str:
        rng = self.rng
        if depth > 0 and rng.random() < 0.4:
            parts = [self.condition(scope, depth - 1) for _ in range(2)]
            return self.pick(
                f"({parts[0]} AND {parts[1]})",
                f"({parts[0]} OR {parts[1]})",
                f"NOT ({parts[0]})",
                f"({parts[0]}) IS NULL" if rng.random() < 0.3 else parts[0],
            )
        if self.tables and depth > 1 and rng.random() < 0.15:
            return self.subquery(scope, depth - 1)
        kind = self.pick(
            *(
                ["integer"] * 4
                + ["string"] * 3
                + ["date"] * 3
                + ["decimal", "boolean", "double", "timestamp", "char(3)", "nested"]
            )
        )
        if kind == "nested":
            return self.nested(scope)
        a = self.value(scope, kind, 2)
        b = (
            self.value(scope, kind, 1)
            if rng.random() < 0.9
            else self.literal(self.pick("integer", "string", "date", "decimal"))
        )
        forms = [
            *(f"{a} {op} {b}" for op in ("=", "=", "<>", "!=", "<", "<=", ">", ">=", "<=>", "==")),
            f"{a} IN ({b}, {self.literal(kind)})",
            f"{a} NOT IN ({b}, {self.literal(kind)})",
            f"{a} BETWEEN {b} AND {self.literal(kind)}",
            f"{a} NOT BETWEEN {b} AND {self.literal(kind)}",
            f"{a} IS NULL",
            f"{a} IS NOT NULL",
            f"isnull({a})",
        ]
        if kind == "string":
            forms += [
                f"{a} LIKE '{p}'" for p in ("a%", "%", "_", "%b", "a_", "A%", "\\\\%", "é", "__")
            ]
            forms += [
                f"{a} NOT LIKE 'a%'",
                f"{a} RLIKE 'a'",
                f"startswith({a}, 'a')",
                f"{a} LIKE {b}",
            ]
        if kind == "boolean":
            forms += [a, f"NOT {a}", f"{a} IS TRUE", f"{a} IS NOT FALSE"]
        return rng.choice(forms)

    def nested(self, scope) -> str:
        """A condition on a part of a column."""
        struct, array, map_ = (
            self.column(scope, type_)
            for type_ in ("struct<a:int,b:string>", "array<int>", "map<string,int>")
        )
        forms = ["1 = 1"]
        if struct:
            forms = [f"{struct}.a = {self.literal('integer')}", f"{struct}.b > 'a'"]
        if array:
            forms += [f"size({array}) = 1", f"array_contains({array}, 1)", f"{array} IS NULL"]
        if map_:
            forms += [f"{map_}['a'] IS NULL", f"map_keys({map_}) IS NOT NULL"]
        return self.rng.choice(forms)

    def relation(self):
        """A table or a query in FROM, and its columns."""
        name, columns = self.rng.choice(list(self.tables.items()))
        alias = self.alias()
        if self.rng.random() < 0.6:
            return f"{name} AS {alias}", (alias, columns)
        inner = self.alias()
        own = [(inner, columns)]
        listed = self.rng.sample(list(columns), min(len(columns), 4))
        plain = {name: columns[name] for name in listed}
        where = f" WHERE {self.condition(own, 2)}" if self.rng.random() < 0.7 else ""
        texts = ", ".join(f"{inner}.{each}" for each in listed)
        kind = self.pick("integer", "string", "date")
        made = {"integer": "int", "string": "string", "date": "date"}[kind]
        number = self.column(own, "integer")
        forms = [
            (f"SELECT {texts} FROM {name} {inner}{where}", plain),
            (f"SELECT * FROM {name} {inner}{where}", columns),
            (f"SELECT DISTINCT {texts} FROM {name} {inner}{where}", plain),
            (
                f"SELECT {texts}, {self.value(own, kind, 2)} AS w FROM {name} {inner}{where}",
                {**plain, "w": made},
            ),
            (
                f"SELECT {texts}, count(*) AS w FROM {name} {inner}{where} GROUP BY {texts}",
                {**plain, "w": "bigint"},
            ),
            (
                f"SELECT {texts} FROM {name} {inner}{where} UNION ALL "
                f"SELECT {texts} FROM {name} {inner}",
                plain,
            ),
            (
                f"SELECT {texts} FROM {name} {inner}{where} UNION "
                f"SELECT {texts} FROM {name} {inner}",
                plain,
            ),
            (f"WITH cte AS (SELECT * FROM {name} {inner}{where}) SELECT * FROM cte", columns),
        ]
        if number:
            forms.append(
                (
                    f"SELECT max({number}) AS w, sum({number}) AS y FROM {name} {inner}{where}",
                    {"w": "bigint", "y": "bigint"},
                )
            )
        other = self.alias()
        second, others = self.rng.choice(list(self.tables.items()))
        link = self.condition([(inner, columns), (other, others)], 1)
        mine, theirs = self.column(own, kind), self.column([(other, others)], kind)
        if mine and theirs and self.rng.random() < 0.8:
            link = f"{mine} = {theirs}" + (f" AND {link}" if self.rng.random() < 0.3 else "")
        join = self.pick(
            "JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "RIGHT JOIN", "FULL JOIN"
        )
        forms.append(
            (f"SELECT {texts} FROM {name} {inner} {join} {second} {other} ON {link}{where}", plain)
        )
        text, found = self.rng.choice(forms)
        return f"({text}) AS {alias}", (alias, found)

    def layer(self, scope):
        """Columns of a query around ``scope``, and their types."""
        ((alias, columns),) = scope
        found, types = [], {}
        for at, (name, type_) in enumerate(columns.items()):
            found.append((f"k{at}", f"`{alias}`.`{name}`"))
            types[f"k{at}"] = type_
            if self.rng.random() < 0.5:
                kind = self.pick("integer", "string", "date")
                found.append((f"w{at}", self.value(scope, kind, 2)))
                types[f"w{at}"] = {"integer": "int"}.get(kind, kind)
        return tuple(found), types

    def query(self) -> tuple[str, list[str]]:
        """SQL of a key source, and its columns."""
        relations = [self.relation() for _ in range(self.pick(1, 1, 1, 2))]
        scope = [found for _, found in relations]
        where = [f"({self.condition(scope)})" for _ in range(self.pick(1, 1, 2, 3))]
        if len(relations) > 1:
            kind = self.pick("integer", "string", "date")
            sides = [self.column([each], kind) for each in scope]
            if all(sides):
                where.append(f"({sides[0]} = {sides[1]})")
        usable = [
            f"{alias}.{name}"
            for alias, columns in scope
            for name, type_ in columns.items()
            if kind_of(type_) in ("integer", "string", "date", "decimal", "boolean")
            or self.rng.random() < 0.05
        ]
        if not usable:
            return self.query()
        columns = self.rng.sample(usable, min(len(usable), self.pick(1, 1, 2)))
        keys = ", ".join(f"`{c.split('.')[0]}`.`{c.split('.')[1]}`" for c in columns)
        where += [f"{key} IS NOT NULL" for key in keys.split(", ") if self.rng.random() < 0.3]
        from_ = ", ".join(text for text, _ in relations)
        return f"SELECT DISTINCT {keys} FROM {from_} WHERE {' AND '.join(where)}", columns
