"""Counts the goldens for which the planner gives the answer of Hive 2.3.

``python tests/hive/goldens/score.py [FILE]`` prints every difference with both answers, then a
line for each feature. ``cases.jsonl.gz`` has the statements with which the planner was developed,
``more.jsonl.gz`` statements of other forms that Hive was asked later. ``subqueries.jsonl.gz`` has
statements with IN, EXISTS and HAVING, of which only verdicts and numbers of jobs are known.
``bucket_files.jsonl.gz`` has joins of bucketed tables with fewer or more files than buckets, with
no file or with no partition.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from airflow_hive_opt.explain.plan_text import error_to_json, explain, explanation_to_json
from airflow_hive_opt.hive.parser.expression_parser import ExpressionParser
from airflow_hive_opt.hive.parser.syntax import Call, Name, walk
from airflow_hive_opt.statement.catalog import JsonCatalog
from airflow_hive_opt.statement.errors import PlanError

HERE = Path(__file__).parent
FEATURES = (
    "verdict",
    "map_reduce",
    "local_work",
    "conditional",
    "joins",
    "scan filters",
    "after join",
)
_COMPARES = {"=", "<=>", "<>", "<", "<=", ">", ">=", "like", "rlike", "in", "between"}
_COMPARES |= {"isnull", "or", "not"}
_SILENT = {"isnotnull", "cast", "and"}


def load(name: str) -> list[dict]:
    """The cases of a file: settings and tables are spelled out again."""
    with gzip.open(HERE / name, "rt") as lines:
        head, *cases = map(json.loads, lines)
    tables = {table["name"]: table for table in head["tables"]}
    for case in cases:
        case["set"] = {**head["set"], **case["set"]}
        case["tables"] = [tables[table] for table in case["tables"]]
    return cases


def answer(case: dict) -> dict:
    """The planner's object for a case."""
    catalog = JsonCatalog.of_documents(case["tables"])
    settings = {name: value for name, value in case["set"].items() if value is not None}
    try:
        return explanation_to_json(explain(case["sql"], catalog, settings))
    except PlanError as error:
        return error_to_json(error)


def misses(case: dict, got: dict) -> Iterator[tuple[str, object, object]]:
    """Feature, Hive's value and the planner's, wherever they differ."""
    want = case["expected"]
    if want["verdict"] != got["verdict"]:
        yield "verdict", want.get("error", "ok"), got.get("message", "ok")
        return
    if want["verdict"] == "error":
        return
    for feature in ("map_reduce", "local_work", "conditional"):
        if want[feature] != got[feature]:
            yield feature, want[feature], got[feature]
    if "joins" not in want:
        return
    joins = [_joins(each["joins"], want) for each in (want, got)]
    if joins[0] != joins[1]:
        yield "joins", joins[0], joins[1]
    scans = [_wanted_filters(want), _own_filters(got)]
    if scans[0] is not None and scans[0] != scans[1]:
        yield "scan filters", scans[0], scans[1]
    after = [each for each in got["filters"] if each["at"] == "after_join"]
    if want.get("bare"):
        after = [each for each in after if _kept([("", *_parts(each["predicate"]))])]
    if bool(want["filters_after_join"]) != bool(after):
        yield "after join", want["filters_after_join"], after


def _joins(joins: list[dict], want: dict) -> list[tuple]:
    bare = want.get("bare", False)  # EXPLAIN without EXTENDED tells less
    found = []
    for join in joins:
        kind = "MapJoin" if bare and join["kind"] == "BucketMapJoin" else join["kind"]
        big = None if bare else join["big_alias"]
        found.append((join["phase"], kind, str(join["conditions"]), str(big)))
    return sorted(set(found) if bare else found)


def _wanted_filters(want: dict) -> list[tuple] | None:
    if want["scan_filters"] is None:
        return None
    found = [
        (alias.split(":")[-1], tuple(sorted(columns)), tuple(sorted(map(str.lower, names))))
        for alias, conjuncts in want["scan_filters"].items()
        for columns, names in conjuncts
    ]
    return _kept(found)


def _own_filters(got: dict) -> list[tuple]:
    return _kept(
        [
            (each["alias"], *_parts(each["predicate"]))
            for each in got["filters"]
            if each["at"] == "scan"
        ]
    )


def _parts(predicate: str) -> tuple[tuple, tuple]:
    """The columns of a predicate, and the operators and functions that it calls."""
    parts = list(walk(ExpressionParser(predicate).expression()))
    columns = {part.parts[-1] for part in parts if isinstance(part, Name)}
    names = [part.name for part in parts if isinstance(part, Call) and part.name not in _SILENT]
    return tuple(sorted(columns)), tuple(sorted(names))


def _kept(found: list[tuple]) -> list[tuple]:
    """Filters that compare something; the not-null filters that Hive adds do not count."""
    kept = [each for each in found if set(each[2]) & _COMPARES or each[1:] == ((), ())]
    return sorted(set(kept))


def main(name: str = "cases.jsonl.gz") -> float:
    """Prints misses and scores; gives the share of cases with all features equal."""
    cases = load(name)
    missed: Counter[str] = Counter()
    equal = 0
    for case in cases:
        found = list(misses(case, answer(case)))
        equal += not found
        if found:
            print(f"{case['id']}: {case['sql']}")
        for feature, want, got in found:
            missed[feature] += 1
            print(f"    {feature}: Hive {want}, planner {got}")
    for feature in FEATURES:
        print(f"{feature:>14}: {len(cases) - missed[feature]} of {len(cases)}")
    print(f"{'all':>14}: {equal} of {len(cases)}, {100 * equal / len(cases):.1f} %")
    return equal / len(cases)


if __name__ == "__main__":
    main(*sys.argv[1:])
