-- Joins with small inputs become map joins.
-- Each case has the stages without and with the rule. A LocalWork reads the small tables before its job.

-- the small tables fit into the limit: a map join
-- sql
SELECT a.key FROM src a JOIN src1 b ON a.key = b.key
-- before
MapReduce, Fetch
-- after
LocalWork, MapReduce, Fetch

-- two map joins share one job
-- sql
SELECT a.key FROM src a JOIN src1 b ON a.key = b.key JOIN b2 c ON a.value = c.value
-- before
MapReduce, MapReduce, Fetch
-- after
LocalWork, MapReduce, Fetch

-- without this limit: a Conditional with a branch for each big table, and the common join as backup
-- sql
SET hive.auto.convert.join.noconditionaltask=false;
SELECT a.key FROM src a JOIN src1 b ON a.key = b.key
-- before
MapReduce, Fetch
-- after
Conditional, LocalWork, MapReduce, LocalWork, MapReduce, MapReduce, Fetch

-- of a left join, only the right table can be small: one branch, and the backup
-- sql
SET hive.auto.convert.join.noconditionaltask=false;
SELECT a.key FROM src a LEFT JOIN src1 b ON a.key = b.key
-- before
MapReduce, Fetch
-- after
Conditional, LocalWork, MapReduce, MapReduce, Fetch

-- a full outer join stays a common join
-- sql
SELECT a.key FROM src a FULL OUTER JOIN src1 b ON a.key = b.key
-- before
MapReduce, Fetch
-- after
(unchanged)

-- both tables are too large
-- sql
SET hive.auto.convert.join.noconditionaltask.size=100;
SET hive.mapjoin.smalltable.filesize=100;
SELECT a.key FROM src a JOIN src1 b ON a.key = b.key
-- before
MapReduce, Fetch
-- after
(unchanged)

-- off
-- sql
SET hive.auto.convert.join=false;
SELECT a.key FROM src a JOIN src1 b ON a.key = b.key
-- before
MapReduce, Fetch
-- after
(unchanged)
