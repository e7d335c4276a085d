-- Queries that need no job: Hive's client reads the table itself.
-- Each case has the stages without and with the rule.

-- LIMIT without a condition
-- sql
SELECT * FROM src LIMIT 5
-- before
MapReduce, Fetch
-- after
Fetch

-- a condition on a small table
-- sql
SELECT upper(key) FROM src WHERE value > '5'
-- before
MapReduce, Fetch
-- after
Fetch

-- only partitions are selected
-- sql
SELECT * FROM srcpart WHERE ds = '2008-04-08'
-- before
MapReduce, Fetch
-- after
Fetch

-- LIMIT 0 returns nothing, whatever is below it
-- sql
SELECT key, count(1) FROM src GROUP BY key LIMIT 0
-- before
MapReduce, Fetch
-- after
Fetch

-- the table is larger than the threshold, which is 1 GB by default
-- sql
SET hive.fetch.task.conversion.threshold=1000;
SELECT upper(key) FROM src WHERE value > '5'
-- before
MapReduce, Fetch
-- after
(unchanged)

-- an aggregate needs a job
-- sql
SELECT count(1) FROM src
-- before
MapReduce, Fetch
-- after
(unchanged)

-- a join needs a job
-- sql
SELECT a.key FROM src a JOIN src1 b ON a.key = b.key
-- before
LocalWork, MapReduce, Fetch
-- after
(unchanged)

-- minimal: only plain columns
-- sql
SET hive.fetch.task.conversion=minimal;
SELECT upper(key) FROM src
-- before
MapReduce, Fetch
-- after
(unchanged)

-- off
-- sql
SET hive.fetch.task.conversion=none;
SELECT * FROM src LIMIT 5
-- before
MapReduce, Fetch
-- after
(unchanged)
