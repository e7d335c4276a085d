-- Broadcast hints where Hive's size settings allow larger map joins than Spark's threshold (1 MB here).
-- The table items has 10 MB, sales has 1 GB.

-- the small table is within Hive's size
-- before
SET hive.auto.convert.join.noconditionaltask.size=20000000;
SELECT i.kind FROM sales s JOIN items i ON i.item = s.item
-- after
SELECT /*+ BROADCAST(`i`) */ i.kind FROM sales s JOIN items i ON i.item = s.item

-- a left join with the small table on its right
-- before
SET hive.auto.convert.join.noconditionaltask.size=20000000;
SELECT i.kind FROM sales s LEFT JOIN items i ON i.item = s.item
-- after
SELECT /*+ BROADCAST(`i`) */ i.kind FROM sales s LEFT JOIN items i ON i.item = s.item

-- the small table is on the preserved side
-- before
SET hive.auto.convert.join.noconditionaltask.size=20000000;
SELECT i.kind FROM items i LEFT JOIN sales s ON i.item = s.item
-- after
(unchanged)

-- together, the small tables are larger than the size
-- before
SET hive.auto.convert.join.noconditionaltask.size=20000000;
SELECT i.kind FROM sales s JOIN items i ON i.item = s.item JOIN items j ON j.item = s.store JOIN items k ON k.item = s.store
-- after
(unchanged)

-- the SELECT has hints of its own
-- before
SET hive.auto.convert.join.noconditionaltask.size=20000000;
SELECT /*+ REPARTITION(3) */ i.kind FROM sales s JOIN items i ON i.item = s.item
-- after
(unchanged)

-- the table is larger than the size
-- before
SET hive.auto.convert.join.noconditionaltask.size=5000000;
SELECT i.kind FROM sales s JOIN items i ON i.item = s.item
-- after
(unchanged)

-- hive.auto.convert.join is off
-- before
SET hive.auto.convert.join.noconditionaltask.size=20000000;
SET hive.auto.convert.join=false;
SELECT i.kind FROM sales s JOIN items i ON i.item = s.item
-- after
(unchanged)
