"""Small wrong edits of the worker's rule: keys may be too many, never too few."""

from __future__ import annotations

from tests.mutants.wrong_edits import WrongEdit

TRANSLATION = "worker/translation"

WORKER_EDITS = (
    WrongEdit(
        "worker/database.py",
        '("expression_rewriter", "sum_rewriter")',
        '("sum_rewriter",)',
        "a comparison that is solved for the column has no overflow",
    ),
    WrongEdit(
        "worker/tables.py",
        "        if not table.partitions_in_metastore:",
        "        if not table.columns:",
        "Spark finds the folders of partitions that the metastore does not have",
    ),
    WrongEdit(
        "worker/files/orc.py",
        "        if wanted[name] == STRING and pc.any",
        "        if not count and pc.any",
        "Spark removes the padding of a CHAR in an ORC file",
    ),
    WrongEdit(
        f"{TRANSLATION}/conditions.py",
        "        found = self._to.condition(node)\n        self._count(node)",
        "        found = self._weakened(node) or 'true'\n        self._count(node)",
        "a left-out conjunct adds rows, of which an aggregate or an outer join makes others",
    ),
    WrongEdit(
        f"{TRANSLATION}/conditions.py",
        "            if None in parts:\n                work.restricting = before\n"
        "                return None\n",
        "",
        "of OR, the branches that are understood are fewer rows than the whole",
    ),
    WrongEdit(
        f"{TRANSLATION}/conditions.py",
        "            if isinstance(inner, exp.And):\n                return _joined",
        "            if isinstance(inner, exp.Or):\n                return _joined",
        "the branches that are left of OR don't all hold",
    ),
    WrongEdit(
        f"{TRANSLATION}/expressions.py",
        '            query = self._subqueries.single_column(node.args["query"], '
        "self.scope, monotone=False)",
        '            query = self._subqueries.single_column(node.args["query"], '
        "self.scope, monotone=True)",
        "below NOT IN, a row too many of the query leaves out a key",
    ),
    WrongEdit(
        f"{TRANSLATION}/expressions.py",
        "self._subqueries.query(node.this, self.scope, monotone=False)",
        "self._subqueries.query(node.this, self.scope, monotone=True)",
        "below NOT EXISTS, a row too many of the query leaves out a key",
    ),
    WrongEdit(
        f"{TRANSLATION}/expressions.py",
        "        query = self._subqueries.single_column(node, None, monotone=False)",
        "        query = self._subqueries.single_column(node, None, monotone=True)",
        "a scalar subquery has another value with a row too many",
    ),
    WrongEdit(
        f"{TRANSLATION}/expressions.py",
        "            if not is_condition(node):",
        "            if False:",
        "as a value, IN with a query is false for Spark where it is NULL in standard SQL",
    ),
    WrongEdit(
        f"{TRANSLATION}/queries.py",
        "        rows_monotone = monotone and not aggregates",
        "        rows_monotone = monotone",
        "a row too many changes an aggregate",
    ),
    WrongEdit(
        f"{TRANSLATION}/from_clause.py",
        "        self._monotone = monotone and not {_RIGHT, _FULL}.intersection(kinds)",
        "        self._monotone = monotone",
        "a row too many on the left replaces a row with NULLs of a right join",
    ),
    WrongEdit(
        f"{TRANSLATION}/from_clause.py",
        "        return self._monotone and kind in (_INNER, _SEMI)",
        "        return self._monotone",
        "a row too many on the right of a left or anti join replaces or removes a row",
    ),
    WrongEdit(
        f"{TRANSLATION}/translate.py",
        "    if work.left_out and not work.restricting:",
        "    if False:",
        "what is left says nothing, and Spark would find fewer keys",
    ),
    WrongEdit(
        f"{TRANSLATION}/expressions.py",
        "        if isinstance(node, _PREDICATES):",
        "        if False:",
        "the parsers disagree on which of two comparisons binds closer",
    ),
    WrongEdit(
        f"{TRANSLATION}/expressions.py",
        "        if node.this in self.work.doubtful:",
        "        if False:",
        "Spark's settings decide what a backslash means",
    ),
    WrongEdit(
        f"{TRANSLATION}/typed.py",
        "    if value < FIRST_DATE:",
        "    if False:",
        "calendars differ before 1582-10-15",
    ),
    WrongEdit(
        f"{TRANSLATION}/typed.py",
        '    canonical = _INTEGER.fullmatch(value.text) and value.text != "-0"',
        "    canonical = value.text.lstrip('-').isdigit()",
        "a text with a leading zero may be compared as a text",
    ),
    WrongEdit(
        "worker/casts.py",
        '        form = "0|-?[1-9][0-9]{0,18}"',
        '        form = "-?[0-9]{1,19}"',
        "readers take a text with a leading zero for different values",
    ),
    WrongEdit(
        "worker/casts.py",
        '    within = f"{column} IS NULL OR {column} BETWEEN {FIRST} AND {LAST}"',
        '    within = "true"',
        "a file's dates before 1582-10-15 are in a calendar of its writer",
    ),
    WrongEdit(
        "worker/partition_names.py",
        'sql = f"SELECT __row FROM {skeleton} WHERE {staying} OR ({condition})"',
        'sql = f"SELECT __row FROM {skeleton} WHERE ({condition})"',
        "a partition with an odd name may have rows that fulfil the condition",
    ),
    WrongEdit(
        "worker/partition_names.py",
        'f"UNION SELECT __row FROM {skeleton} WHERE {staying}"',
        'f""',
        "a partition with an odd name may have rows that match a key",
    ),
    WrongEdit(
        "worker/tables.py",
        '        known = "true" if table.by_serde else f"t{at} IS NOT NULL"',
        '        known = f"t{at} IS NOT NULL"',
        "the NULL partition of a table that a serde reads has another value",
    ),
    WrongEdit(
        "worker/files/parquet.py",
        '        return not (stored == "bigint" and type_.name != "bigint")',
        "        return True",
        "Spark reads other numbers from a file of longer integers, or fails",
    ),
    WrongEdit(
        "worker/files/parquet.py",
        "        same = (leaf.precision, leaf.scale) == (type_.precision, type_.scale)",
        "        same = True",
        "a decimal of another scale is rounded",
    ),
    WrongEdit(
        "worker/files/folder.py",
        '        if name.startswith(("_", ".")):\n            continue\n',
        "",
        "Spark reads no hidden files",
    ),
    WrongEdit(
        "worker/files/folder.py",
        '            raise Unanswered(f"the worker does not read {what}")',
        "            continue",
        "Spark may read the rows of a folder inside",
    ),
    WrongEdit(
        "worker/files/rows.py",
        "        if missing and has_defaults(storage.parameters):",
        "        if False:",
        "a column that a file does not have may have a default value",
    ),
    WrongEdit(
        "worker/keys.py",
        "        return self.exact and all(number == 1 for number in self.numbers)",
        "        return all(number == 1 for number in self.numbers)",
        "a key too many would drop a join that leaves out rows",
    ),
    WrongEdit(
        "worker/key_query.py",
        "    if not is_stable(source.sql):",
        "    if False:",
        "a query that returns other rows at the map join",
    ),
    WrongEdit(
        "worker/engine.py",
        "        if found is None or found.left_out:",
        "        if found is None:",
        "nothing tells whether a condition that is left out is deterministic",
    ),
    WrongEdit(
        "worker/planning.py",
        "    return any(t and t.total_bytes is None and not t.partition_columns for t in tables)",
        "    return False",
        "Spark may measure the table, and rewrite the statement",
    ),
    WrongEdit(
        "worker/lakes/iceberg.py",
        "            if number in constants:",
        "            if False:",
        "Iceberg on Spark takes the value of the partition, whatever the file has",
    ),
    WrongEdit(
        "worker/lakes/iceberg.py",
        "    for at in range(version, version + len(listed) + 1):",
        "    for at in range(version, version + 1):",
        "the hint of a version may be an older one",
    ),
    WrongEdit(
        "worker/lakes/delta.py",
        '    if configuration.get("delta.columnMapping.mode", "none") != "none":',
        "    if False:",
        "the files have other names of columns, so that all values would be NULL",
    ),
    WrongEdit(
        "worker/lakes/delta.py",
        "        return True\n\n\ndef _path",
        "        return False\n\n\ndef _path",
        "rows that are deleted are no keys",
    ),
    WrongEdit(
        "worker/lakes/delta.py",
        '            _path(each["path"]),',
        '            each["path"],',
        "a log has paths as URIs",
    ),
    WrongEdit(
        "worker/lakes/catalog.py",
        "        if setting != _IN_SESSION[format_]:",
        "        if False:",
        "a session without the format's catalog reads the entry otherwise",
    ),
    WrongEdit(
        "worker/lakes/catalog.py",
        '        return properties.keys() <= {"uri", "warehouse"} and uri == '
        "self.settings.get(_METASTORES)",
        "        return True",
        "a catalog may be in another metastore than the session's",
    ),
)
