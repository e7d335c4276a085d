-- Conditions move towards their scans, as far as outer joins allow.
-- J1 and J2 are conditions in ON, W1 and W2 conditions in WHERE.

-- inner join: a condition in WHERE moves to its scan
-- sql
SELECT a.key FROM src a JOIN src b ON a.key = b.key WHERE b.value > '2'
-- before
FS
  SEL
    FIL b.value > '2'
      JOIN INNER ON a.key = b.key
        TS src a
        TS src b
-- after
FS
  SEL
    JOIN INNER ON a.key = b.key
      TS src a
      FIL b.value > '2'
        TS src b

-- J1: ON does not move to the preserved side
-- sql
SELECT a.key FROM src a LEFT JOIN src b ON a.key = b.key AND a.value > '2'
-- before
FS
  SEL
    JOIN LEFT OUTER ON a.key = b.key AND a.value > '2'
      TS src a
      TS src b
-- after
(unchanged)

-- J2: ON moves to the null-supplying side
-- sql
SELECT a.key FROM src a LEFT JOIN src b ON a.key = b.key AND b.value > '2'
-- before
FS
  SEL
    JOIN LEFT OUTER ON a.key = b.key AND b.value > '2'
      TS src a
      TS src b
-- after
FS
  SEL
    JOIN LEFT OUTER ON a.key = b.key
      TS src a
      FIL b.value > '2'
        TS src b

-- W1: WHERE moves to the preserved side
-- sql
SELECT a.key FROM src a LEFT JOIN src b ON a.key = b.key WHERE a.value > '2'
-- before
FS
  SEL
    FIL a.value > '2'
      JOIN LEFT OUTER ON a.key = b.key
        TS src a
        TS src b
-- after
FS
  SEL
    JOIN LEFT OUTER ON a.key = b.key
      FIL a.value > '2'
        TS src a
      TS src b

-- W2: WHERE does not move to the null-supplying side
-- sql
SELECT a.key FROM src a LEFT JOIN src b ON a.key = b.key WHERE b.value > '2'
-- before
FS
  SEL
    FIL b.value > '2'
      JOIN LEFT OUTER ON a.key = b.key
        TS src a
        TS src b
-- after
(unchanged)

-- a full join preserves both sides: nothing moves
-- sql
SELECT a.key FROM src a FULL JOIN src b ON a.key = b.key AND a.value > '2' WHERE b.value > '2'
-- before
FS
  SEL
    FIL b.value > '2'
      JOIN FULL OUTER ON a.key = b.key AND a.value > '2'
        TS src a
        TS src b
-- after
(unchanged)

-- a condition that is not deterministic does not move
-- sql
SELECT a.key FROM src a JOIN src b ON a.key = b.key WHERE rand() > 0.5
-- before
FS
  SEL
    FIL rand() > 0.5
      JOIN INNER ON a.key = b.key
        TS src a
        TS src b
-- after
(unchanged)
