"""Random star joins whose keys depend on the session that reads them.

The tables are there twice, with other rows: in the databases :data:`DATABASES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

DATABASES = ("fuzz_east", "fuzz_west")
DATABASE = "the current database"
ZONE, ANSI, CASE = "spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive"
PATH = "spark.sql.defaultPath"
AT_HOURS = "id, hour(CAST(p * 7200 AS TIMESTAMP)) % 8 AS p, ds, day"
# A view keeps the settings of the session that made it.
OF_VIEWS = {ZONE: "America/New_York", ANSI: "false"}
TABLES = (
    "CREATE TABLE {db}.fact (id INT) PARTITIONED BY (p INT, day DATE, ds STRING) STORED AS PARQUET",
    "INSERT INTO {db}.fact SELECT id + {shift}, (id + {shift}) % 8, "
    "date_add(DATE'2026-01-01', (id + {shift}) % 5), texts[id % size(texts)] "
    "FROM (SELECT CAST(id AS INT) AS id FROM range(36)) CROSS JOIN (SELECT array("
    "'2026-01-03', '2026-01-03 20:00:00', '2026-01-04 01:30:00', '1', '08', '{1, a}', '[1, a]', "
    "'xy', 'xy    ', 'a\\tb', NULL, 'ds') AS texts)",
    "CREATE TABLE {db}.keys (id INT, p INT, at TIMESTAMP, day DATE, text STRING, moment STRING, "
    "n DECIMAL(38,10), list ARRAY<INT>, pair STRUCT<a: INT, b: STRING>, c CHAR(6), b BINARY) "
    "USING parquet",
    "SET spark.sql.legacy.charVarcharAsString=true",
    "INSERT INTO {db}.keys SELECT col1 + {shift}, pmod(col2 + {shift}, 8), "
    "timestamp_seconds(unix_seconds(TIMESTAMP'2026-01-03 00:00:00Z') + 1800 * col3), "
    "date_add(DATE'2026-01-03', {shift}), col4, col5, col6, col7, "
    "IF(col2 > 5, NULL, named_struct('a', 1, 'b', 'a')), col8, CAST(col4 AS BINARY) FROM VALUES "
    "(0, 1, 0, '1', '2026-01-03 20:00:00Z', 1.5, array(1, 2), 'xy'), "
    "(1, 3, 10, '08', '2026-01-03 23:30:00+00:00', 10.0000000001, array(7, NULL), 'a'), "
    "(2, 5, 22, '2026-1-3', '2026-01-02 20:00:00', 1e27, NULL, 'xy'), "
    "(3, 6, 40, '2026-01-03x', '2026-01-04', -0.5, array(), ''), "
    "(4, 3, 37, NULL, NULL, NULL, NULL, NULL), (5, 7, 47, 'ß', '20:00', 99, array(3), 'xy')",
    "SET spark.sql.legacy.charVarcharAsString=false",
    f"CREATE VIEW {{db}}.seen_fact AS SELECT {AT_HOURS} FROM {{db}}.fact",
    "CREATE VIEW {db}.seen_keys AS SELECT id, TRY_CAST(text AS INT) AS p, "
    "CAST(to_date(at) AS TIMESTAMP) AS at, to_date(at) AS day, CAST(at AS STRING) AS text, moment, "
    "n / 3 AS n, list, pair, c, b FROM {db}.keys",
)


# Settings that have other values than these two, and what some of them have no effect without.
ON_OFF = ("true", "false")
VALUES = {
    ZONE: ("UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia"),
    DATABASE: DATABASES,
    "spark.sql.timestampType": ("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"),
    "spark.sql.legacy.timeParserPolicy": ("LEGACY", "CORRECTED", "EXCEPTION"),
    "spark.sql.mapKeyDedupPolicy": ("EXCEPTION", "LAST_WIN"),
    "spark.sql.columnNameOfCorruptRecord": ("bad", "worse"),
    PATH: tuple(f"system.builtin, spark_catalog.{name}, current_schema" for name in DATABASES),
    "fuzz.day": ("1", "3"),
}
BESIDES = {
    PATH: {"spark.sql.path.enabled": "true"},
    "spark.sql.timestampType": {ANSI: "false", ZONE: "Asia/Kolkata"},
    "spark.sql.legacy.timeParserPolicy": {ANSI: "false"},
    "spark.sql.decimalOperations.allowPrecisionLoss": {ANSI: "false"},
    "spark.sql.legacy.sizeOfNull": {ANSI: "false"},
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": {ANSI: "false"},
}
# What a setting changes: conditions on f and k,
CONDITIONS = {
    ZONE: (
        "f.day = to_date(k.at)",
        "f.day = CAST(k.at AS DATE)",
        "f.day = k.at",
        "f.day = date_trunc('DAY', k.at)",
        "f.day BETWEEN k.at - INTERVAL 1 DAY AND k.at",
        "f.ds = CAST(k.at AS STRING)",
        "f.ds = date_format(k.at, 'yyyy-MM-dd')",
        "f.p = hour(k.at) % 8",
        "f.p = k.p AND f.day = CAST(TIMESTAMP'2026-01-03 20:00:00Z' AS DATE)",
        "f.p < k.p AND f.day > TIMESTAMP'2026-01-03 02:00:00Z'",
    ),
    DATABASE: (
        "f.p = k.p",
        "f.day = k.day",
        "f.p IN (SELECT z.p FROM keys z) AND k.id = 1",
        "f.p = (SELECT max(z.p) FROM keys z) AND k.id = 2",
    ),
    PATH: ("f.p = k.p", "f.day = k.day", "f.ds <=> k.text"),
    ANSI: (
        "f.p = CAST(k.text AS INT)",
        "f.ds = k.p",
        "f.p = size(k.list)",
        "f.p <=> element_at(k.list, k.p)",
        "f.p = 8 / (k.p - 3)",
    ),
    CASE: ("F.P = k.p", "f.p = k.P", "f.p = k.p"),
    "spark.sql.timestampType": (
        "f.day = CAST(CAST(k.moment AS TIMESTAMP) AS DATE)",
        "f.day = to_date(to_timestamp(k.moment))",
    ),
    "spark.sql.legacy.timeParserPolicy": (
        "f.day = to_date(k.text, 'yyyy-MM-dd')",
        "f.day = to_date(k.text, 'yyyy-MM-d')",
    ),
    "spark.sql.mapKeyDedupPolicy": (
        "f.p = element_at(map_from_arrays(array(3, k.p), array(1, 5)), 3)",
    ),
    "spark.sql.decimalOperations.allowPrecisionLoss": ("f.p = length(k.n * 1.5) % 8",),
    "spark.sql.legacy.castComplexTypesToString.enabled": ("f.ds = CAST(k.pair AS STRING)",),
    "spark.sql.legacy.charVarcharAsString": ("f.ds = k.c", "f.p = length(k.c)"),
    "spark.sql.readSideCharPadding": ("f.ds = k.c", "f.p = length(k.c)"),
    "spark.sql.legacy.sizeOfNull": ("f.p - 1 = size(k.list)", "f.p = size(k.list) + 2"),
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": (
        "f.day >= k.text",
        "f.day = k.moment",
    ),
    "spark.sql.parser.escapedStringLiterals": (r"f.ds = 'a\tb' AND f.p < k.p",),
    "spark.sql.ansi.doubleQuotedIdentifiers": ('f.ds = "ds" AND f.p >= k.p',),
    "spark.sql.legacy.consecutiveStringLiterals.enabled": ("f.ds = '0''8'",),
    "spark.sql.groupByOrdinal": (
        "f.p IN (SELECT z.p FROM (SELECT p, count(*) FROM keys GROUP BY 1) z)",
    ),
    "spark.sql.legacy.setopsPrecedence.enabled": (
        "f.p IN (SELECT p FROM keys WHERE p < 4 UNION SELECT p FROM keys "
        "INTERSECT SELECT p FROM keys WHERE p > 5)",
    ),
    "fuzz.day": ("f.p = ${fuzz.day}", "f.p = k.p AND k.p < ${fuzz.day}"),
}
# and values of k, whose hash is to be a partition's p.
KEYS = {
    ZONE: (
        "current_timezone()",
        "TIMESTAMP'2026-01-03 20:00:00'",
        "CAST(k.at AS STRING)",
        "make_timestamp(2026, 1, k.p, 1, 1, 1)",
    ),
    DATABASE: ("upper(current_database())", "(SELECT max(z.p) FROM keys z)"),
    ANSI: ("CAST(k.n * 1000000000000 AS INT)", "k.n / (k.p - 3)", "TRY_CAST(k.text AS BOOLEAN)"),
    "spark.sql.timestampType": ("CAST(k.moment AS TIMESTAMP)",),
    "spark.sql.decimalOperations.allowPrecisionLoss": ("k.n * k.n",),
    "spark.sql.legacy.castComplexTypesToString.enabled": ("CAST(k.list AS STRING)",),
    "spark.sql.legacy.followThreeValuedLogicInArrayExists": ("exists(k.list, x -> x > 8)",),
    "spark.sql.legacy.negativeIndexInArrayInsert": ("array_insert(k.list, -1, 9)",),
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": ("k.p * 1e0",),
    "spark.sql.legacy.literal.pickMinimumPrecision": ("typeof(k.n * 3)",),
    "spark.sql.legacy.lpadRpadAlwaysReturnString": ("typeof(lpad(k.b, 5))",),
    "spark.sql.legacy.codingErrorAction": ("encode(k.text, 'US-ASCII')",),
    "spark.sql.legacy.javaCharsets": ("encode(k.text, 'IBM437')",),
    "spark.sql.legacy.allowHashOnMapType": ("map(1, k.p)",),
    "spark.sql.legacy.disableMapKeyNormalization": ("to_json(map(-0.0D, 1))",),
    "spark.sql.legacy.createEmptyCollectionUsingStringType": ("typeof(array())",),
    "spark.sql.function.concatBinaryAsString": ("typeof(k.b || k.b)",),
    "spark.sql.function.eltOutputAsString": ("typeof(elt(1, k.b, k.b))",),
    "spark.sql.jsonGenerator.ignoreNullFields": ("to_json(struct(k.text))",),
    "spark.sql.chunkBase64String.enabled": ("base64(repeat(k.text, 60))",),
    "spark.sql.icu.caseMappings.enabled": ("initcap(k.text || 'ŉ ǆ')",),
    "spark.sql.json.enablePartialResults": (
        """from_json('{"a": {"b": "x", "c": 2}}', 'a STRUCT<b: INT, c: INT>').a""",
    ),
    "spark.sql.columnNameOfCorruptRecord": ("from_json('{', 'a INT, bad STRING').bad",),
    "spark.sql.variant.allowDuplicateKeys": ("""CAST(parse_json('{"a": 1, "a": 2}') AS STRING)""",),
}
# Those that most people have apart come as often as all others.
COMMON = (ZONE, DATABASE, ANSI)
SETTINGS = tuple(dict.fromkeys((*CONDITIONS, *KEYS)))


@dataclass(frozen=True)
class Case:
    """A statement, and the settings of the sessions of the local task and of the map join.

    ``head`` has its SET lines. ``into`` is the text before its query, where ``{db}`` is the
    database of the written table. ``scans`` says that the rows name their partitions, and that
    only conditions on partition columns select them.
    """

    head: str
    into: str
    query: str
    there: dict[str, str]
    here: dict[str, str]
    scans: bool

    @property
    def differing(self) -> list[str]:
        """The settings that the two sessions have apart."""
        if self.head:
            return []
        return [name for name in self.here if self.there[name] != self.here[name]]


def case(rng: Random) -> Case:
    """A statement for one or two sessions: equal, different, or made equal by SET lines."""
    chosen = [rng.choice(rng.choice((COMMON, SETTINGS))) for _ in range(rng.choice((1, 1, 1, 2)))]
    here = {DATABASE: rng.choice(DATABASES)}
    for setting in chosen:
        here |= BESIDES.get(setting, {})
    for setting in chosen:
        here[setting] = rng.choice(VALUES.get(setting, ON_OFF))
    there = dict(here)
    if rng.random() < 0.6:
        setting = rng.choice(chosen)
        there[setting] = rng.choice(VALUES.get(setting, ON_OFF))
    head = ""
    if rng.random() < 0.15:  # a statement that sets what it needs, whatever its session has
        there[DATABASE] = here[DATABASE]
        head = "".join(f"SET {name}={here[name]};\n" for name in here if name != DATABASE)
    query, scans = _query(rng, chosen)
    return Case(head, _into(rng), query, there, here, scans)


def _into(rng: Random) -> str:
    """The text before the query of a statement that writes; empty for a SELECT."""
    if rng.random() < 0.8:
        return ""
    return rng.choice(
        (
            "INSERT INTO {db}.t ",
            "INSERT OVERWRITE TABLE {db}.t PARTITION (day) ",
            "CREATE TABLE {db}.made USING parquet PARTITIONED BY (day) AS ",
        )
    )


def _query(rng: Random, settings: list[str]) -> tuple[str, bool]:
    """Its columns are the fact's; and whether the rows are all of their partitions."""
    fact = rng.choice((*["fact"] * 6, "seen_fact", f"(SELECT {AT_HOURS} FROM fact)"))
    keys = rng.choice((*["keys"] * 6, "seen_keys", "(SELECT * FROM keys WHERE id < 4)"))
    conditions = []
    for number, setting in enumerate(settings):
        values = KEYS.get(setting, ())
        chosen = rng.choice((*CONDITIONS.get(setting, ()), *values))
        if chosen in values:
            keys = f"(SELECT *, pmod(hash({chosen}), 8) AS v{number} FROM {keys} k)"
            chosen = f"f.p = k.v{number}"
        conditions.append(chosen)
    if rng.random() < 0.5:
        conditions.append(f"k.id {rng.choice(('<', '>=', '<>'))} {rng.randint(0, 5)}")
    scans = fact == "fact" and len(settings) == 1
    if rng.random() < 0.15:
        conditions.append("f.id % 3 = 0")
        scans = False
    rng.shuffle(conditions)
    condition = " AND ".join(conditions)
    shape = rng.choice(
        (
            f"{fact} f JOIN {keys} k ON {condition}",
            f"{keys} k JOIN {fact} f ON {condition}",
            f"{fact} f, {keys} k WHERE {condition}",
            f"{fact} f LEFT SEMI JOIN {keys} k ON {condition}",
            f"{fact} f WHERE EXISTS (SELECT 1 FROM {keys} k WHERE {condition})",
            f"{keys} k LEFT JOIN {fact} f ON {condition}",
        )
    )
    return f"SELECT f.id, f.p, f.ds, f.day FROM {shape}", scans
