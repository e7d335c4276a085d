-- A filter below a join is copied to the join's other inputs, through equal keys.

-- an inner join copies a filter on the key to the other input
-- sql
SELECT a.key FROM src a JOIN src1 b ON a.key = b.key AND a.key > '5'
-- before
TS a
  FIL key > '5' AND key is not null
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
  FIL key > '5' AND key is not null
    RS key
      JOIN INNER
        SEL
          FS
TS b
  FIL key is not null
    FIL key > '5'
      RS key
        JOIN INNER

-- the preserved side of a left join copies its filter to the other side
-- sql
SELECT a.key FROM src a JOIN src b ON a.key = b.key AND a.key > '5' LEFT JOIN src1 c ON a.key = c.key
-- before
TS a
  FIL key > '5'
    RS key
      JOIN INNER, LEFT OUTER
        SEL
          FS
TS b
  RS key
    JOIN INNER, LEFT OUTER
TS c
  RS key
    JOIN INNER, LEFT OUTER
-- after
TS a
  FIL key > '5'
    RS key
      JOIN INNER, LEFT OUTER
        SEL
          FS
TS b
  FIL key > '5'
    RS key
      JOIN INNER, LEFT OUTER
TS c
  FIL key > '5'
    RS key
      JOIN INNER, LEFT OUTER

-- the null-supplying side of a left join does not copy its filter: rows of the other side stay without a match
-- sql
SELECT a.key FROM src a LEFT JOIN src1 b ON a.key = b.key AND b.key > '5'
-- before
TS a
  RS key
    JOIN LEFT OUTER
      SEL
        FS
TS b
  FIL key > '5'
    RS key
      JOIN LEFT OUTER
-- after
(unchanged)

-- a full outer join copies no filter: only the inner join does
-- sql
SELECT a.key FROM src a JOIN src b ON a.key = b.key AND a.key > '5' FULL OUTER JOIN src1 c ON a.key = c.key
-- before
TS a
  FIL key > '5'
    RS key
      JOIN INNER, FULL OUTER
        SEL
          FS
TS b
  RS key
    JOIN INNER, FULL OUTER
TS c
  RS key
    JOIN INNER, FULL OUTER
-- after
TS a
  FIL key > '5'
    RS key
      JOIN INNER, FULL OUTER
        SEL
          FS
TS b
  FIL key > '5'
    RS key
      JOIN INNER, FULL OUTER
TS c
  RS key
    JOIN INNER, FULL OUTER

-- a filter on another column than the key is not copied
-- sql
SELECT a.key FROM src a JOIN src1 b ON a.key = b.key AND a.value > '5'
-- before
TS a
  FIL value > '5' AND key is not null
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
