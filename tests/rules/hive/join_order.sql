-- The table that STREAMTABLE names is sent last, so that the reducer streams it.
-- A line has the joins by the numbers of their inputs, and the order of the inputs.

-- the hint names the first table
-- sql
SELECT /*+ STREAMTABLE(a) */ a.key FROM src a JOIN src1 b ON a.key = b.key
-- before
INNER 0 1, order 0 1
-- after
INNER 0 1, order 1 0

-- the hint names the second of three tables
-- sql
SELECT /*+ STREAMTABLE(b) */ a.key FROM src a JOIN src1 b ON a.key = b.key JOIN src c ON a.key = c.key
-- before
INNER 0 1, INNER 0 2, order 0 1 2
-- after
INNER 0 1, INNER 0 2, order 0 2 1

-- the last table is streamed anyway
-- sql
SELECT /*+ STREAMTABLE(b) */ a.key FROM src a JOIN src1 b ON a.key = b.key
-- before
INNER 0 1, order 0 1
-- after
(unchanged)

-- no hint
-- sql
SELECT a.key FROM src a JOIN src1 b ON a.key = b.key
-- before
INNER 0 1, order 0 1
-- after
(unchanged)
