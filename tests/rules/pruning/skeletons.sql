-- A subquery, a CTE or UNION passes partition columns on, so that conditions above it select partitions.
-- Shown by the decisions of partition pruning.

-- a renamed column
-- before
SELECT * FROM (SELECT ds AS d, item FROM sales) t JOIN days ON t.d = days.ds
-- after
sales: PRUNED, fast
  by SELECT DISTINCT `days`.`ds` FROM days AS `days` WHERE `days`.`ds` IS NOT NULL

-- a deterministic expression
-- before
SELECT * FROM (SELECT substr(ds, 1, 4) AS y FROM sales) t JOIN days d ON t.y = d.year
-- after
sales: PRUNED, skeleton
  by SELECT DISTINCT `d`.`year` FROM days AS `d` WHERE `d`.`year` IS NOT NULL

-- a group key
-- before
SELECT * FROM (SELECT ds, count(*) AS n FROM sales GROUP BY ds) t JOIN days d ON t.ds = d.ds
-- after
sales: PRUNED, fast
  by SELECT DISTINCT `d`.`ds` FROM days AS `d` WHERE `d`.`ds` IS NOT NULL

-- the column by which all window functions partition
-- before
SELECT * FROM (SELECT ds, rank() OVER (PARTITION BY ds ORDER BY item) AS r FROM sales) t
JOIN days d ON t.ds = d.ds
-- after
sales: PRUNED, fast
  by SELECT DISTINCT `d`.`ds` FROM days AS `d` WHERE `d`.`ds` IS NOT NULL

-- UNION of two tables
-- before
SELECT * FROM (SELECT ds FROM sales UNION ALL SELECT ds FROM srcpart) t JOIN days d ON t.ds = d.ds
-- after
sales: PRUNED, fast
  by SELECT DISTINCT `d`.`ds` FROM days AS `d` WHERE `d`.`ds` IS NOT NULL
srcpart: PRUNED, fast
  by SELECT DISTINCT `d`.`ds` FROM days AS `d` WHERE `d`.`ds` IS NOT NULL

-- an aggregate of the partition column
-- before
SELECT * FROM (SELECT item, max(ds) AS ds FROM sales GROUP BY item) t JOIN days d ON t.ds = d.ds
-- after
sales: VALUE_CHANGED

-- a window function over other rows
-- before
SELECT * FROM (SELECT ds, rank() OVER (ORDER BY item) AS r FROM sales) t JOIN days d ON t.ds = d.ds
-- after
sales: VALUE_CHANGED

-- LIMIT
-- before
SELECT * FROM (SELECT ds FROM sales LIMIT 10) t JOIN days d ON t.ds = d.ds
-- after
sales: VALUE_CHANGED
