-- A sort-merge join without a hint may run as a map join.
-- Each case has the stages without and with the rule.

-- a reducer above the join: a Conditional of map joins, with the sort-merge join as backup
-- sql
SET hive.auto.convert.sortmerge.join=true;
SET hive.optimize.bucketmapjoin.sortedmerge=true;
SET hive.auto.convert.sortmerge.join.to.mapjoin=true;
SELECT a.key, count(1) FROM b4 a JOIN b4 b ON a.key = b.key GROUP BY a.key
-- before
MapReduce, Fetch
-- after
Conditional, LocalWork, MapReduce, LocalWork, MapReduce, MapReduce, Fetch

-- of a left join, only the right table can be small
-- sql
SET hive.auto.convert.sortmerge.join=true;
SET hive.optimize.bucketmapjoin.sortedmerge=true;
SET hive.auto.convert.sortmerge.join.to.mapjoin=true;
SELECT a.key, count(1) FROM b4 a LEFT JOIN b4 b ON a.key = b.key GROUP BY a.key
-- before
MapReduce, Fetch
-- after
Conditional, LocalWork, MapReduce, MapReduce, Fetch

-- no reducer above the join
-- sql
SET hive.auto.convert.sortmerge.join=true;
SET hive.optimize.bucketmapjoin.sortedmerge=true;
SET hive.auto.convert.sortmerge.join.to.mapjoin=true;
SELECT a.key FROM b4 a JOIN b4 b ON a.key = b.key
-- before
MapReduce, Fetch
-- after
(unchanged)

-- off, as by default
-- sql
SET hive.auto.convert.sortmerge.join=true;
SET hive.optimize.bucketmapjoin.sortedmerge=true;
SELECT a.key, count(1) FROM b4 a JOIN b4 b ON a.key = b.key GROUP BY a.key
-- before
MapReduce, Fetch
-- after
(unchanged)
