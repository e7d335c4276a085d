-- A join with a MAPJOIN hint becomes a map join.

-- the hint names the small table
-- sql
SET hive.ignore.mapjoin.hint=false;
SELECT /*+ MAPJOIN(b) */ a.key FROM src a JOIN src1 b ON a.key = b.key
-- before
TS a
  FIL key is not null
    RS key
      JOIN INNER
        SEL
          FS
TS b
  FIL key is not null
    RS key
      JOIN INNER
-- after
TS a
  FIL key is not null
    MAPJOIN INNER big a
      SEL
        FS
TS b
  FIL key is not null
    MAPJOIN INNER big a

-- the preserved side is streamed
-- sql
SET hive.ignore.mapjoin.hint=false;
SELECT /*+ MAPJOIN(b) */ a.key FROM src a LEFT JOIN src1 b ON a.key = b.key
-- before
TS a
  RS key
    JOIN LEFT OUTER
      SEL
        FS
TS b
  RS key
    JOIN LEFT OUTER
-- after
TS a
  MAPJOIN LEFT OUTER big a
    SEL
      FS
TS b
  MAPJOIN LEFT OUTER big a

-- by default, Hive ignores the hint
-- sql
SELECT /*+ MAPJOIN(b) */ a.key FROM src a JOIN src1 b ON a.key = b.key
-- before
TS a
  FIL key is not null
    RS key
      JOIN INNER
        SEL
          FS
TS b
  FIL key is not null
    RS key
      JOIN INNER
-- after
(unchanged)

-- Hive rejects a hint for the preserved side
-- sql
SET hive.ignore.mapjoin.hint=false;
SELECT /*+ MAPJOIN(a) */ a.key FROM src a LEFT JOIN src1 b ON a.key = b.key
-- after
(rejected) line 1, column 8: MAPJOIN(a) would keep a preserved table of an outer join in memory: hint the other side

-- Hive rejects a hint for all tables
-- sql
SET hive.ignore.mapjoin.hint=false;
SELECT /*+ MAPJOIN(a, b) */ a.key FROM src a JOIN src1 b ON a.key = b.key
-- after
(rejected) line 1, column 8: MAPJOIN(a, b) names every table: leave one to stream
