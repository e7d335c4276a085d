-- Which small tables supply keys, and the queries that read the keys.
-- Shown by the decisions of partition pruning.

-- a small table with a condition of its own
-- before
SELECT s.item FROM sales s JOIN days d ON s.ds = d.ds WHERE d.year = 2000
-- after
s: PRUNED, fast
  by SELECT DISTINCT `d`.`ds` FROM days AS `d` WHERE (d.year = 2000) AND `d`.`ds` IS NOT NULL

-- two tables that are joined by an equality: one query, so the second filters the keys of the first
-- before
SELECT s.item FROM sales s JOIN days d ON s.ds = d.ds JOIN src x ON d.year = x.key WHERE x.value = 'a'
-- after
s: PRUNED, fast
  by SELECT DISTINCT `d`.`ds` FROM days AS `d`, src AS `x` WHERE (x.value = 'a') AND (d.year = x.key) AND `d`.`ds` IS NOT NULL

-- two tables without a join between them: a query for each
-- before
SELECT s.item FROM sales s JOIN days d ON s.ds = d.ds JOIN src x ON s.ds = x.key
-- after
s: PRUNED, fast
  by SELECT DISTINCT `d`.`ds` FROM days AS `d` WHERE `d`.`ds` IS NOT NULL
  by SELECT DISTINCT `x`.`key` FROM src AS `x` WHERE `x`.`key` IS NOT NULL

-- a subquery
-- before
SELECT s.item FROM sales s JOIN (SELECT max(ds) AS ds FROM days) d ON s.ds = d.ds
-- after
s: PRUNED, fast
  by SELECT DISTINCT `d`.`ds` FROM (SELECT max(ds) AS ds FROM days) AS `d` WHERE `d`.`ds` IS NOT NULL

-- a scalar subquery has one row, so any condition connects it
-- before
SELECT s.item FROM sales s WHERE s.ds > (SELECT max(ds) FROM days)
-- after
s: PRUNED, skeleton
  by SELECT DISTINCT `__unnamed_1`.`c0` FROM (SELECT max(ds) FROM days) AS `__unnamed_1` (`c0`) WHERE `__unnamed_1`.`c0` IS NOT NULL

-- <=> also matches NULL, so NULL keys stay
-- before
SELECT s.item FROM sales s JOIN days d ON s.ds <=> d.ds
-- after
s: PRUNED, skeleton
  by SELECT DISTINCT `d`.`ds` FROM days AS `d`

-- the rows may differ each time
-- before
SELECT s.item FROM sales s JOIN (SELECT ds FROM days WHERE rand() > 0.5) d ON s.ds = d.ds
-- after
s: KEY_SOURCE_NOT_DETERMINISTIC

-- the other table is not small
-- before
SELECT p.key FROM srcpart p JOIN sales s ON p.ds = s.item
-- after
p: KEY_SOURCE_NOT_SMALL
s: NO_CONDITION_ON_PARTITION_COLUMN
