# ruff: noqa: E501 - the texts stand as they do in the code
"""Small wrong edits of the soundness rules: plausible mistakes, and why they are wrong.

Each text occurs once in its file. A test checks this.
"""

from __future__ import annotations

from dataclasses import dataclass

RULES, REWRITING = "pruning/rules", "rewriting"


@dataclass(frozen=True)
class WrongEdit:
    """``text`` of ``file``, below the package, becomes ``instead``."""

    file: str
    text: str
    instead: str
    why: str


def edits(file: str, *found: tuple[str, str, str]) -> tuple[WrongEdit, ...]:
    """Edits of one file: their texts, what comes instead, and why that is wrong."""
    return tuple(WrongEdit(file, *each) for each in found)


WRONG_EDITS = (
    *edits(
        "pruning/conditions.py",
        (
            "bool(node.expressions) and constant and is_strict(node.this)",
            "bool(node.expressions) and is_strict(node.this)",
            "an IN list may be true although an item is NULL",
        ),
    ),
    *edits(
        "pruning/scope.py",
        (
            "        return self.nearest.isdisjoint(self._owners(name))",
            "        return True",
            "a subquery's struct column hides the outer table of the same name",
        ),
        (
            "        if self._may_be_generated(name):\n            return []",
            "        if False:\n            return []",
            "a column that Spark calls by its expression hides the outer column of that name",
        ),
    ),
    *edits(
        "pruning/resolve.py",
        (
            "        if self.relations.is_pivoted(select):",
            "        if False:",
            "PIVOT replaces the columns of all relations in FROM",
        ),
    ),
    *edits(
        f"{RULES}/row_level_keys.py",
        (
            "        if not row_level.reads_whole_target:",
            "        if True:",
            "WHEN NOT MATCHED BY SOURCE changes rows that no key matches",
        ),
        (
            "    if not any(row_level.target_alias in source.aliases for source in decision.sources):",
            "    if True:",
            "a row that another run adds to the target would find no match in the other table",
        ),
    ),
    *edits(
        f"{RULES}/listed_partitions.py",
        (
            "or not fields.keys() >= set(names)",
            "or not fields.keys() & set(names)",
            "the list of partitions does not have data columns",
        ),
    ),
    *edits(
        "pruning/output_columns.py",
        (
            "    if isinstance(inner, _SEVERAL_COLUMNS):",
            "    if isinstance(inner, exp.Star):",
            "a table function may return several columns",
        ),
        (
            "    if names.count(name) != 1 or",
            "    if name not in names or",
            "of several columns of one name, USING takes the first",
        ),
        (
            "        if kind is JoinKind.FULL_OUTER:",
            "        if False:",
            "after a full join, USING's column may have either side's value",
        ),
        (
            "            keys.append(other if kind is JoinKind.RIGHT_OUTER else mine)",
            "            keys.append(mine)",
            "after a right join, USING's column has the right side's value",
        ),
        (
            "    return (*keys, *others)",
            "    return (*others, *keys)",
            "USING's columns come first in *",
        ),
    ),
    *edits(
        f"{RULES}/disjunctions.py",
        (
            "if not all(kept) or not all(",
            "if not any(kept) or not all(",
            "a branch without a condition on the relation allows all its rows",
        ),
        (
            "        null_rejecting=one_relation\n        and all(",
            "        null_rejecting=all(",
            "a branch that does not read a relation may be true of its NULLs",
        ),
    ),
    *edits(
        "pruning/relations.py",
        (
            " or name in self._not_expanded:",
            ":",
            "a reader whose query is not known needs every key",
        ),
        (
            "return self._expanded[name] == self._ctes.readers(name)",
            "return bool(self._expanded[name])",
            "a reader that is in no relation needs every key",
        ),
    ),
    *edits(
        f"{RULES}/partition_pruning.py",
        (
            "for decision in decided for each in decision.alternatives)",
            "for decision in decided[:1] for each in decision.alternatives)",
            "each reader of a CTE needs its own partitions",
        ),
        (
            "    if whole is not None:\n",
            "    if whole is not None and len(decided) == 1:\n",
            "a reader that needs every partition needs the scan whole",
        ),
        (
            "    elif table.transactional:\n        reason = Reason.TRANSACTIONAL_TABLE\n",
            "",
            "which files count is not for partitions to say",
        ),
    ),
    *edits(
        f"{RULES}/key_predicates.py",
        (
            "        if all(predicate in other for other in others)\n",
            "",
            "another reader of the CTE needs other rows",
        ),
    ),
    *edits(
        f"{RULES}/into_subqueries.py",
        (
            "if names.count(name) == 1 and same_for_group(select, projection):",
            "if names.count(name) == 1:",
            "an aggregate or a window function reads the rows that the condition drops",
        ),
    ),
    *edits(
        "pruning/substitution.py",
        (
            " and not condition.implied and strict",
            " and not condition.implied",
            "an expression may have a value where its columns are NULL",
        ),
        (
            " and not condition.implied and strict",
            " and strict",
            "a branch of an OR may be true of the NULLs that another one reads",
        ),
    ),
    *edits(
        f"{RULES}/transitive_conditions.py",
        (
            "    return len(types) == 1 and family(types.pop()) is not None",
            "    return True",
            "Spark converts one side, so that the text compares otherwise",
        ),
    ),
    *edits(
        f"{RULES}/predicate_pushdown.py",
        (
            "_MATCHED_RIGHT = (JoinKind.INNER, JoinKind.LEFT_OUTER, JoinKind.LEFT_SEMI)",
            "_MATCHED_RIGHT = tuple(JoinKind)",
            "rows of the right side are needed without a match",
        ),
        (
            "_MATCHED_LEFT = (JoinKind.INNER, JoinKind.RIGHT_OUTER, JoinKind.LEFT_SEMI)",
            "_MATCHED_LEFT = tuple(JoinKind)",
            "rows of the left side are needed without a match",
        ),
    ),
    *edits(
        "pruning/subquery_joins.py",
        (
            "or not is_null_rejecting(values_for(part, nodes).unnest())",
            "or not part",
            "the condition may be true although the subquery returns NULL",
        ),
    ),
    *edits(
        f"{RULES}/weakening.py",
        (
            "_BOTH = (JoinKind.INNER, JoinKind.LEFT_SEMI)",
            "_BOTH = (JoinKind.INNER, JoinKind.LEFT_SEMI, JoinKind.LEFT_OUTER)",
            "a left join's right need not be there",
        ),
        (
            "_LEFT_ALWAYS = (JoinKind.LEFT_OUTER, JoinKind.LEFT_ANTI)",
            "_LEFT_ALWAYS = (JoinKind.LEFT_OUTER, JoinKind.LEFT_ANTI, JoinKind.FULL_OUTER)",
            "a full join's left need not be there",
        ),
        (
            "null_made = condition.aliases & supplied.get(id(operator), frozenset())",
            "null_made = frozenset[str]()",
            "a condition above may be fulfilled by the NULLs",
        ),
        (
            "(null_made and not condition.null_rejecting)",
            "(null_made and condition.null_rejecting)",
            "the wrong conditions are dropped",
        ),
        (
            "            if not _holds(operator, real):\n                dropped",
            "            if not condition.aliases:\n                dropped",
            "an outer join's ON does not hold for preserved rows",
        ),
        (
            "elif not condition.aliases <= aliases or",
            "elif not condition.aliases & aliases or",
            "a relation that is not real fulfils by NULLs",
        ),
        (
            "                    if condition.null_rejecting:\n",
            "                    if True:\n",
            "NULLs may fulfil it, so that it makes nothing real",
        ),
        (
            "return (operator.right,) if operator.kind is JoinKind.RIGHT_OUTER else ()",
            "return (operator.right,)",
            "an anti or full join's right is not there",
        ),
        (
            "or all(id(input_) in real for input_ in operator.inputs)",
            "or any(id(input_) in real for input_ in operator.inputs)",
            "one side alone does not fulfil an outer join's ON",
        ),
        (
            "return kind.supplies_nulls_left if operator.left is input_ else kind.supplies_nulls_right",
            "return kind.supplies_nulls_right if operator.left is input_ else kind.supplies_nulls_left",
            "the sides are swapped",
        ),
        (
            "            supplied |= frozenset(relations(below))",
            "            supplied = frozenset()",
            "NULLs from further below are forgotten",
        ),
        (
            "_supplied(operators, relation, first if supplied_within else frozenset())",
            "_supplied(operators, relation, frozenset())",
            "NULLs from inside a subquery are forgotten",
        ),
    ),
    *edits(
        f"{RULES}/skeletons.py",
        (
            '            yield scan, found, dict.fromkeys(outputs, VisibleColumn(""))',
            "            yield scan, found, outputs",
            "LIMIT picks its rows before the condition",
        ),
        (
            "    if select.windows is not None and not projection.columns <= select.windows:",
            "    if False:",
            "a window reads rows that the condition drops",
        ),
        (
            "if None in followed or not same_for_group(select, projection):",
            "if None in followed:",
            "an aggregate reads rows that the condition drops",
        ),
        (
            "    return all(map(is_exact, types))",
            "    return True",
            "equal numbers of a group may be written in two ways",
        ),
        (
            "if None in followed or not",
            "if not",
            "a value that is not followed is taken for one",
        ),
        (
            "    if place.supplied_outside:  #",
            "    if False:  #",
            "an expression turns an outer join's NULLs into a value",
        ),
        (
            "        inside = found[-1].supplied_outside\n",
            "        inside = False\n",
            "an outer join inside a subquery is forgotten",
        ),
        (
            "        return self.supplied or null_supplied(self.tree, self.relation)",
            "        return self.supplied",
            "an outer join of the block is forgotten",
        ),
        (
            "if column.alias == self.alias else None\n        return seen",
            "if column.alias else None\n        return seen",
            "another relation's column of that name",
        ),
        (
            "if not projection.columns or not projection.columns <= keys:",
            "if not projection.columns & keys:",
            "a column beside the group keys is in it",
        ),
        (
            'outputs[name] = seen if alike else VisibleColumn("")',
            "outputs[name] = seen",
            "UNION's types differ, so that the value changes",
        ),
        (
            "alike = select is branch and column_type(union, name)",
            "alike = column_type(union, name)",
            "a branch's LIMIT is forgotten",
        ),
        (
            "        if not mixed and not found[-1].supplied_outside:",
            "        if not found[-1].supplied_outside:",
            "a UNION puts other rows beside",
        ),
        (
            "        if not mixed and not found[-1].supplied_outside:",
            "        if not mixed:",
            "an outer join replaces the rows",
        ),
    ),
    *edits(
        f"{RULES}/key_sources.py",
        (
            "        return not self.names or mine <= _partition_columns(self.operator)",
            "        return True",
            "names do not tell data columns",
        ),
        (
            "        if condition.usable\n        and condition.aliases\n",
            "        if condition.aliases\n",
            "a condition that can't be asked again",
        ),
        (
            "        and condition.aliases <= small.keys()\n",
            "        and condition.aliases & small.keys()\n",
            "a condition reads what gives no keys",
        ),
        (
            "            group_of.update(dict.fromkeys(met, met))",
            "            group_of.update(dict.fromkeys(condition.aliases, met))",
            "a third relation's keys lose their connection",
        ),
        (
            "        if any(link.null_rejecting and column in link.columns for link in links)",
            "        if True",
            "NULL keys match by <=>",
        ),
        (
            '    if link.comparison != "=" or link.operands is None:',
            "    if link.operands is None:",
            "a comparison that is no equality, by equality",
        ),
        (
            "(not theirs or family(theirs) == ours)",
            "True",
            "types of other families do not compare as they are",
        ),
        (
            "    if isinstance(relation, SubqueryRelation) and not relation.self_contained:\n        return Reason.KEY_SOURCE_NOT_PLANNED\n",
            "",
            "a correlated subquery can't run alone",
        ),
        (
            "    if not relation.stable:\n        return Reason.KEY_SOURCE_NOT_DETERMINISTIC\n",
            "",
            "it may give other keys to the join",
        ),
        (
            "    if any(table.scanned.transactional for table in tables):\n        return Reason.KEY_SOURCE_TRANSACTIONAL\n",
            "",
            "its files do not say which rows count",
        ),
        (
            "        tuple(partition_columns) if fast else (),",
            "        tuple(partition_columns),",
            "a condition that the metastore does not answer",
        ),
    ),
    *edits(
        f"{REWRITING}/join_elimination.py",
        (
            "    if not answered or not is_deterministic(text.sql) or",
            "    if not answered or",
            "other rows each time",
        ),
        (
            "    if not (block.known and block.inner_only) or block.shows_all:",
            "    if not (block.known and block.inner_only):",
            "* shows the columns",
        ),
        (
            "            _require_unread(block, mentions, table, answers)\n",
            "",
            "the statement reads it elsewhere",
        ),
        (
            "        if small is None or small.location is None:",
            "        if small is None:",
            "a view may read what is written",
        ),
        (
            "            if block.text.of(conjunct) not in join.asked:\n                raise Refused(Refusal.OTHER_FILTERS)\n",
            "",
            "a condition that the keys were not asked",
        ),
        (
            "    if compared != pairs:\n        raise Refused(Refusal.OTHER_FILTERS)\n",
            "",
            "a key of two is not compared",
        ),
        (
            "            if qualifiers and first in self.of:\n",
            "            if qualifiers:\n                self.of.setdefault(first, set())\n",
            "a struct's field, or a subquery's alias",
        ),
        (
            "    for name in columns:\n        places += mentions.first.get(name, ())\n",
            "",
            "a name without a qualifier",
        ),
    ),
    *edits(
        f"{REWRITING}/self_join_window.py",
        (
            '        guard = "" if anchor.not_null else anchor.present',
            '        guard = ""',
            "a NULL key has no rows in the lookup",
        ),
        (
            '            otherwise = " ELSE 0" if isinstance(aggregate, exp.Count) else ""',
            '            otherwise = ""',
            "a count of nothing is 0",
        ),
        (
            "        return Edit(span, f\"NOT coalesce({' AND '.join(conditions)}, false)\")",
            "        return Edit(span, f\"NOT ({' AND '.join(conditions)})\")",
            "NOT of NULL is not true",
        ),
        (
            '    names = {"<>": ("min", "max"), "<": ("min",),',
            '    names = {"<>": ("min",), "<": ("min",),',
            "the greatest may differ where the least does not",
        ),
        (
            '">": ("max",), ">=": ("max",)}',
            '">": ("min",), ">=": ("max",)}',
            "some row is greater if the greatest is",
        ),
        (
            '" AND ".join([anchor.present, *_passing(lookup, windows)])',
            "anchor.present",
            "the join needs a row that passes",
        ),
        (
            "aggregate_of(text, aggregate, lookup.condition)",
            "aggregate_of(text, aggregate)",
            "the lookup's filters are forgotten",
        ),
    ),
    *edits(
        f"{REWRITING}/anchors.py",
        (
            "        if type_ is None or type_ != block.type_of(right):\n            continue\n",
            "",
            "equal by a cast is not the same value",
        ),
        (
            "        if block.supplied_with_nulls(factor.alias):\n            supplied = True\n            continue\n",
            "",
            "NULLs in place of the anchor",
        ),
    ),
    *edits(
        f"{REWRITING}/aggregate_once.py",
        (
            "    if not block.inner_only:\n        raise Refused(Refusal.NULL_SUPPLYING_SIDE)\n",
            "",
            "an outer join keeps keys without rows",
        ),
        (
            '_OUTER = {"sum": "sum", "count": "sum",',
            '_OUTER = {"sum": "sum", "count": "count",',
            "a count is the sum of the counts",
        ),
        (
            "        elif owner.alias == anchor.factor.alias and owner not in keys:\n            raise Refused(Refusal.OTHER_USES)",
            "        elif False:\n            raise Refused(Refusal.OTHER_USES)",
            "a column beside key and aggregate",
        ),
        (
            "    if not same_conditions(block.text, filters, lookup.filters):\n        raise Refused(Refusal.OTHER_FILTERS)\n",
            "",
            "the two read other rows",
        ),
        (
            "        if isinstance(node, (exp.Min, exp.Max)) and anchor",
            "        if isinstance(node, (exp.Min, exp.Max, exp.Sum)) and anchor",
            "a sum counts each row",
        ),
    ),
    *edits(
        f"{REWRITING}/merged_aggregates.py",
        (
            "    whole = [pair for pair in joined if not pair[0].filters or _same_filters(*pair)]",
            "    whole = joined",
            "the first lacks rows of the second",
        ),
        (
            '        conditions.append(f"{present} IS NOT NULL")\n',
            "",
            "a key without rows in the second joined nothing",
        ),
        (
            '    conditions = [f"{alias}.{quote(ref.name)} IS NOT NULL" for ref in kept.outer]',
            "    conditions: list[str] = []",
            "a NULL key joins nothing",
        ),
    ),
    *edits(
        f"{REWRITING}/windowed_read.py",
        (
            '    if "" in asked:\n        return ""\n',
            '    asked.pop("", None)\n',
            "somebody asks for all rows",
        ),
        (
            'either = " OR ".join(',
            'either = " AND ".join(',
            "rows that one of them needs",
        ),
        (
            "        if not may_fail((block, conjunct)):\n            found.append(conjunct)",
            "        found.append(conjunct)",
            "it fails for rows that it was not asked of",
        ),
    ),
    *edits(
        f"{REWRITING}/join_below.py",
        (
            '    repeatable = all(window.startswith(("min(", "max(")) for window in windows)',
            "    repeatable = True",
            "rows that come several times are added several times",
        ),
    ),
    *edits(
        f"{REWRITING}/lookups.py",
        (
            '_TURNED = {"<>": "<>", "<": ">", ">": "<",',
            '_TURNED = {"<>": "<>", "<": "<", ">": ">",',
            "the sides change places",
        ),
    ),
    *edits(
        "restriction/row_changes.py",
        (
            '    yield Edit(Span(start, start), "(")\n    yield Edit(Span(stop, stop), f"){added}")',
            "    yield Edit(Span(stop, stop), added)",
            "AND binds more than the OR of the statement's condition",
        ),
    ),
)
