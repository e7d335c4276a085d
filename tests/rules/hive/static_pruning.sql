-- The statement's own conditions select partitions, and are then removed.

-- an equality selects the partitions of a day and is removed
-- sql
SELECT * FROM srcpart WHERE ds = '2008-04-08' AND key > '5'
-- before
TS srcpart
  FIL ds = '2008-04-08' AND key > '5'
    SEL
      FS
partitions of srcpart: all
-- after
TS srcpart
  FIL key > '5'
    SEL
      FS
partitions of srcpart: 2008-04-08/11, 2008-04-08/12

-- no partition is left
-- sql
SELECT * FROM srcpart WHERE ds = '2020-01-01'
-- before
TS srcpart
  FIL ds = '2020-01-01'
    SEL
      FS
partitions of srcpart: all
-- after
TS srcpart
  FIL ds = '2020-01-01'
    SEL
      FS
partitions of srcpart: none

-- an OR of two partition columns
-- sql
SELECT * FROM srcpart WHERE ds = '2008-04-08' OR hr = '12'
-- before
TS srcpart
  FIL (ds = '2008-04-08') OR (hr = '12')
    SEL
      FS
partitions of srcpart: all
-- after
TS srcpart
  SEL
    FS
partitions of srcpart: 2008-04-08/11, 2008-04-08/12, 2008-04-09/12

-- an OR with a data column decides nothing
-- sql
SELECT * FROM srcpart WHERE ds = '2008-04-08' OR key > '5'
-- before
TS srcpart
  FIL (ds = '2008-04-08') OR (key > '5')
    SEL
      FS
partitions of srcpart: all
-- after
(unchanged)

-- a condition that is not deterministic selects no partitions
-- sql
SELECT * FROM srcpart WHERE ds > rand()
-- before
TS srcpart
  FIL ds > rand()
    SEL
      FS
partitions of srcpart: all
-- after
(unchanged)

-- a join condition selects no partitions: Hive does not read the other table while it compiles
-- sql
SELECT p.key FROM srcpart p JOIN src s ON p.ds = s.key
-- before
TS p
  RS ds
    JOIN INNER
      SEL
        FS
TS s
  FIL key is not null
    RS key
      JOIN INNER
partitions of p: all
-- after
(unchanged)
