-- Every conjunct of a filter moves down as far as possible.
-- ON and WHERE differ at outer joins: the cases are those of Hive's outer join document.

-- inner join: a conjunct of WHERE moves to its scan
-- sql
SELECT a.key FROM src a JOIN src1 b ON a.key = b.key WHERE a.value > '5'
-- before
TS a
  FIL key is not null
    RS key
      JOIN INNER
        FIL _col1 > '5'
          SEL
            FS
TS b
  FIL key is not null
    RS key
      JOIN INNER
-- after
TS a
  FIL key is not null AND value > '5'
    RS key
      JOIN INNER
        SEL
          FS
TS b
  FIL key is not null
    RS key
      JOIN INNER

-- W1: WHERE moves to the preserved side, and through the equal keys to the other side
-- sql
SELECT a.key FROM src a LEFT OUTER JOIN src1 b ON a.key = b.key WHERE a.key > '5'
-- before
TS a
  RS key
    JOIN LEFT OUTER
      FIL _col0 > '5'
        SEL
          FS
TS b
  RS key
    JOIN LEFT OUTER
-- after
TS a
  FIL key > '5'
    RS key
      JOIN LEFT OUTER
        SEL
          FS
TS b
  FIL key > '5'
    RS key
      JOIN LEFT OUTER

-- W2: WHERE stays above the null-supplying side
-- sql
SELECT a.key FROM src a LEFT OUTER JOIN src1 b ON a.key = b.key WHERE b.value IS NULL
-- before
TS a
  RS key
    JOIN LEFT OUTER
      FIL _col5 IS NULL
        SEL
          FS
TS b
  RS key
    JOIN LEFT OUTER
-- after
(unchanged)

-- J2: ON moves to the null-supplying side (the join tree has put it there already)
-- sql
SELECT a.key FROM src a LEFT OUTER JOIN src1 b ON a.key = b.key AND b.value > '5'
-- before
TS a
  RS key
    JOIN LEFT OUTER
      SEL
        FS
TS b
  FIL value > '5'
    RS key
      JOIN LEFT OUTER
-- after
(unchanged)

-- a condition on an aggregate stays above it, one on a group key moves below it
-- sql
SELECT key FROM (SELECT key, count(1) AS n FROM src GROUP BY key) t WHERE n > 1 AND key > '5'
-- before
TS src
  SEL
    GBY hash key
      RS _col0
        GBY mergepartial _col0
          SEL
            FIL _col1 > 1 AND _col0 > '5'
              SEL
                FS
-- after
TS src
  FIL key > '5'
    SEL
      GBY hash key
        RS _col0
          GBY mergepartial _col0
            FIL _col1 > 1
              SEL
                SEL
                  FS

-- a condition that is not deterministic stays
-- sql
SELECT a.key FROM src a JOIN src1 b ON a.key = b.key WHERE rand() > 0.5
-- before
TS a
  FIL key is not null
    RS key
      JOIN INNER
        FIL rand() > 0.5
          SEL
            FS
TS b
  FIL key is not null
    RS key
      JOIN INNER
-- after
(unchanged)

-- SET hive.optimize.ppd=false turns the rule off
-- sql
SET hive.optimize.ppd=false;
SELECT a.key FROM src a JOIN src1 b ON a.key = b.key WHERE a.value > '5'
-- before
TS a
  FIL key is not null
    RS key
      JOIN INNER
        FIL _col1 > '5'
          SEL
            FS
TS b
  FIL key is not null
    RS key
      JOIN INNER
-- after
(unchanged)
