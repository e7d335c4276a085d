-- Conjuncts that constants decide are removed, and constants move upwards.

-- a conjunct that is always true is removed
-- sql
SELECT key FROM src WHERE 1 = 1 AND key > '5'
-- before
TS src
  FIL 1 = 1 AND key > '5'
    SEL
      FS
-- after
TS src
  FIL key > '5'
    SEL
      FS

-- a conjunct that is never true makes the whole condition false
-- sql
SELECT key FROM src WHERE 1 = 2 AND key > '5'
-- before
TS src
  FIL 1 = 2 AND key > '5'
    SEL
      FS
-- after
TS src
  FIL false
    SEL
      FS

-- the constant of a filter replaces the column in a filter above it
-- sql
SELECT key FROM (SELECT key FROM src WHERE key = '66') t WHERE key > '77'
-- before
TS src
  FIL key = '66'
    SEL
      FIL _col0 > '77'
        SEL
          FS
-- after
TS src
  FIL key = '66'
    SEL
      FIL false
        SEL
          FS

-- conjuncts of one filter do not fold each other
-- sql
SELECT key FROM src WHERE key = '66' AND key > '77'
-- before
TS src
  FIL key = '66' AND key > '77'
    SEL
      FS
-- after
(unchanged)

-- an inner join propagates the constant
-- sql
SELECT t.key FROM src a JOIN (SELECT key FROM src1 WHERE key = '66') t ON a.key = t.key WHERE t.key > '77'
-- before
TS src1
  FIL key = '66'
    SEL
      FIL _col0 is not null
        RS _col0
          JOIN INNER
            FIL _col4 > '77'
              SEL
                FS
TS a
  FIL key is not null
    RS key
      JOIN INNER
-- after
TS src1
  FIL key = '66'
    SEL
      RS '66'
        JOIN INNER
          FIL false
            SEL
              FS
TS a
  FIL key is not null
    RS key
      JOIN INNER

-- a left join does not propagate the constant of its null-supplying side
-- sql
SELECT t.key FROM src a LEFT JOIN (SELECT key FROM src1 WHERE key = '66') t ON a.key = t.key WHERE t.key > '77'
-- before
TS src1
  FIL key = '66'
    SEL
      RS _col0
        JOIN LEFT OUTER
          FIL _col4 > '77'
            SEL
              FS
TS a
  RS key
    JOIN LEFT OUTER
-- after
(unchanged)
