"""Random statements over small integer tables: joins inside subqueries, conditions outside them.

They use only SQL that Spark and DuckDB read alike.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

# By table: its data columns, and its partition columns.
TABLES = {
    "sales": (("item", "store"), ("ds",)),
    "rets": (("item",), ("ds", "hr")),
    "days": (("ds", "day", "year"), ()),
    "items": (("item", "cat"), ()),
}
_KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
_COMPARISONS = ("=", "=", "=", "=", "<", ">=", "<>", "IS NOT DISTINCT FROM")
_SETS = ("UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT")


@dataclass(frozen=True)
class Source:
    """Something to select from: ``text`` without an alias, and its columns."""

    text: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Named:
    """A relation in FROM."""

    alias: str
    columns: tuple[str, ...]

    def column(self, rng: random.Random) -> str:
        return f"{self.alias}.{rng.choice(self.columns)}"


@dataclass
class Statements:
    """Makes statements; each call of :meth:`statement` makes one."""

    rng: random.Random
    _aliases: int = 0
    _ctes: list[Source] = field(default_factory=list)

    def statement(self) -> str:
        """A statement whose outer block joins and filters subqueries that join."""
        self._aliases, self._ctes = 0, []
        parts = []
        for number in range(self.rng.choice([0, 1, 1, 2])):
            made = self._subquery(1)
            text = made.text if made.text.startswith("(") else f"(SELECT * FROM {made.text})"
            parts.append(f"c{number} AS {text}")
            self._ctes.append(Source(f"c{number}", made.columns))
        relations: list[Named] = []
        text = ""
        for number in range(self.rng.choice([1, 1, 2, 2, 3])):
            source = self._subquery(1) if number == 0 or self.rng.random() < 0.5 else self._table()
            right = self._named(source)
            if number:
                left = self.rng.choice(relations)
                on = f"{left.column(self.rng)} = {right.column(self.rng)}"
                if self.rng.random() < 0.4:
                    on += f" AND {self._filter([*relations, right])}"
                kind = self.rng.choices(_KINDS, [5, 3, 3, 1])[0]
                text += f" {kind} {source.text} {right.alias} ON {on}"
            else:
                text = f"{source.text} {right.alias}"
            relations.append(right)
        where = [self._filter(relations) for _ in range(self.rng.choice([0, 1, 1, 2]))]
        if self.rng.random() < 0.3:
            where.append(self._with_subquery(relations))
        listed = ", ".join(f"{one.alias}.{name}" for one in relations for name in one.columns)
        head = f"WITH {', '.join(parts)} " if parts else ""
        tail = f" WHERE {' AND '.join(where)}" if where else ""
        return f"{head}SELECT {listed} FROM {text}{tail}"

    def _named(self, source: Source) -> Named:
        self._aliases += 1
        return Named(f"a{self._aliases}", source.columns)

    def _table(self) -> Source:
        name = self.rng.choice(["days", "days", "items", "sales", "rets"])
        return Source(name, sum(TABLES[name], ()))

    def _subquery(self, depth: int) -> Source:
        """A query in parentheses, or a CTE, that returns columns of a join of fact and days."""
        if self._ctes and self.rng.random() < 0.4:
            return self.rng.choice(self._ctes)
        if depth and self.rng.random() < 0.25:
            below = self._subquery(depth - 1)
            named = self._named(below)
            items = [
                f"{named.alias}.{name}" if self.rng.random() < 0.8 else self._value([named])
                for name in below.columns
            ]
            where = f" WHERE {self._condition([named], 1)}" if self.rng.random() < 0.3 else ""
            names = tuple(f"w{number}" for number, _ in enumerate(items))
            listed = ", ".join(f"{item} AS {name}" for item, name in zip(items, names, strict=True))
            text = f"(SELECT {listed} FROM {below.text} {named.alias}{where})"
            return Source(text, names)
        width = self.rng.randint(2, 3)
        names = tuple(f"y{number}" for number in range(width))
        if self.rng.random() < 0.25:
            sides = self._block(names), self._block(names)
            return Source(f"({f' {self.rng.choice(_SETS)} '.join(sides)})", names)
        return Source(f"({self._block(names)})", names)

    def _block(self, names: tuple[str, ...]) -> str:
        """A SELECT over fact and days, plain, grouped, aggregated or with window functions."""
        rng = self.rng
        fact = rng.choice(["sales", "rets"])
        big = self._named(Source(fact, sum(TABLES[fact], ())))
        small = self._named(Source("days", TABLES["days"][0]))
        sides = [f"{fact} {big.alias}", f"days {small.alias}"]
        if rng.random() < 0.4:
            sides.reverse()
        kind = rng.choices(_KINDS, [6, 2, 2, 1])[0]
        both = [big, small]
        on = f"{big.alias}.ds = {small.alias}.ds"
        if rng.random() < 0.2:
            on += f" AND {self._condition(both, 1)}"
        where = f" WHERE {self._condition(both, 2)}" if rng.random() < 0.25 else ""
        columns = [f"{small.alias}.{name}" for name in small.columns]
        columns += [f"{big.alias}.ds", f"{big.alias}.item"]
        items, tail = self._select_list(columns, len(names))
        distinct = "DISTINCT " if rng.random() < 0.1 else ""
        listed = ", ".join(f"{item} AS {name}" for item, name in zip(items, names, strict=True))
        return f"SELECT {distinct}{listed} FROM {sides[0]} {kind} {sides[1]} ON {on}{where}{tail}"

    def _select_list(self, columns: list[str], width: int) -> tuple[list[str], str]:
        rng = self.rng
        form = rng.choices(["plain", "group", "all", "window", "filled"], [5, 4, 1, 5, 2])[0]
        aggregate = rng.choice(["count", "max", "sum"])
        if form == "group":
            keys = rng.sample(columns, rng.randint(1, 2))
            items = [
                rng.choice(keys) if rng.random() < 0.7 else f"{aggregate}({rng.choice(columns)})"
                for _ in range(width)
            ]
            return items, f" GROUP BY {', '.join(keys)}"
        if form == "all":
            return [f"{aggregate}({rng.choice(columns)})" for _ in range(width)], ""
        items = [rng.choice(columns) for _ in range(width)]
        if form == "window":
            *others, days, _ = columns
            if rng.random() < 0.6:  # windows that span partitions
                keys, items[0] = [rng.choice(others)], days
            else:
                keys = rng.sample(columns, rng.randint(1, 2))
                items[0] = rng.choice([items[0], keys[0]])
            over = f"OVER (PARTITION BY {', '.join(keys)})"
            items[-1] = f"{aggregate}({rng.choice(columns)}) {over}"
        elif form == "filled":
            items[0] = f"coalesce({items[0]}, {rng.randint(0, 3)})"
        return items, ""

    def _value(self, scope: list[Named]) -> str:
        rng = self.rng
        column = rng.choice(scope).column(rng)
        forms = [column, column, column, f"{column} + {rng.randint(0, 1)}", str(rng.randint(0, 3))]
        forms += [f"coalesce({column}, {rng.randint(0, 3)})"]
        forms += [f"CASE WHEN {column} > 1 THEN {column} ELSE {rng.randint(0, 3)} END"]
        return rng.choice(forms)

    def _filter(self, scope: list[Named]) -> str:
        """A condition, mostly a column that equals a number."""
        if self.rng.random() < 0.6:
            return f"{self.rng.choice(scope).column(self.rng)} = {self.rng.randint(0, 3)}"
        return self._condition(scope, 2)

    def _condition(self, scope: list[Named], depth: int) -> str:
        rng, value = self.rng, self._value(scope)
        form = rng.random()
        if form < 0.1:
            return f"{value} IS {rng.choice(['', 'NOT '])}NULL"
        if form < 0.2:
            return f"{value} IN ({rng.randint(0, 3)}, {self._value(scope)})"
        if form < 0.3:
            return f"{value} BETWEEN {rng.randint(0, 2)} AND {self._value(scope)}"
        if form < 0.5 and depth:
            sides = (
                " AND ".join(self._condition(scope, depth - 1) for _ in range(rng.randint(1, 2)))
                for _ in range(2)
            )
            return f"({' OR '.join(f'({side})' for side in sides)})"
        if form < 0.55 and depth:
            return f"NOT ({self._condition(scope, depth - 1)})"
        other = self._value(scope) if rng.random() < 0.5 else str(rng.randint(0, 3))
        return f"{value} {rng.choice(_COMPARISONS)} {other}"

    def _with_subquery(self, scope: list[Named]) -> str:
        """IN, EXISTS or a scalar subquery."""
        rng = self.rng
        source = self._subquery(1) if rng.random() < 0.7 else self._table()
        inner, outer = self._named(source), rng.choice(scope).column(rng)
        from_ = f"FROM {source.text} {inner.alias}"
        form = rng.random()
        if form < 0.35:
            where = f" WHERE {self._filter([inner])}" if rng.random() < 0.5 else ""
            negated = rng.choice(["", "", "NOT "])
            return f"{outer} {negated}IN (SELECT {inner.column(rng)} {from_}{where})"
        if form < 0.8:
            on = f"{inner.column(rng)} {rng.choice(['=', '=', '>='])} {outer}"
            if rng.random() < 0.6:
                on += f" AND {self._filter([inner])}"
            return f"{rng.choice(['', 'NOT '])}EXISTS (SELECT 1 {from_} WHERE {on})"
        where = f" WHERE {self._filter([inner])}" if rng.random() < 0.5 else ""
        query = f"(SELECT {rng.choice(['max', 'min'])}({inner.column(rng)}) {from_}{where})"
        if rng.random() < 0.3:
            return f"{outer} BETWEEN {query} AND {rng.randint(1, 3)}"
        return f"{outer} {rng.choice(['=', '<=', 'IS NOT DISTINCT FROM'])} {query}"
