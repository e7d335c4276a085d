-- The keys of small tables select the partitions of a scan, or a reason says why not.
-- Each line is a scan with the decision, and below it its key queries.
-- fast: keys are compared with partition values. skeleton: Spark evaluates conditions on partition names.
-- static: no table is read.

-- an equality of the partition column with a column of a small table
-- before
SELECT s.amount FROM sales s JOIN days d ON s.ds = d.ds AND d.year = 2000
-- after
s: PRUNED, fast
  by SELECT DISTINCT `d`.`ds` FROM days AS `d` WHERE (d.year = 2000) AND `d`.`ds` IS NOT NULL

-- IN is a join too
-- before
SELECT amount FROM sales s WHERE s.ds IN (SELECT ds FROM days WHERE year = 2000)
-- after
s: PRUNED, fast
  by SELECT DISTINCT `days`.`ds` FROM days AS `days` WHERE (`days`.year = 2000) AND `days`.`ds` IS NOT NULL

-- an expression of the partition column
-- before
SELECT s.amount FROM sales s JOIN days d ON substr(s.ds, 1, 4) = d.year
-- after
s: PRUNED, skeleton
  by SELECT DISTINCT `d`.`year` FROM days AS `d` WHERE `d`.`year` IS NOT NULL

-- the names of another table's partitions: no table is read
-- before
SELECT s.amount FROM sales s JOIN srcpart p ON s.ds = p.ds AND p.hr = 11
-- after
s: PRUNED, static
  by SELECT DISTINCT `p`.`ds` FROM `__partitions_of_p` AS `p` WHERE (p.hr = 11) AND `p`.`ds` IS NOT NULL
p: PRUNED, static
  by SELECT DISTINCT `s`.`ds` FROM `__partitions_of_s` AS `s` WHERE `s`.`ds` IS NOT NULL

-- a CTE that is read twice: the scan reads what either reader needs
-- before
WITH t AS (SELECT s.item, d.year FROM sales s JOIN days d ON s.ds = d.ds)
SELECT * FROM t a JOIN t b ON a.item = b.item AND a.year = 2000 AND b.year = 2001
-- after
s: PRUNED, fast
  by SELECT DISTINCT `d`.`ds` FROM days AS `d` WHERE (d.year = 2000) AND `d`.`ds` IS NOT NULL
  by SELECT DISTINCT `d`.`ds` FROM days AS `d` WHERE (d.year = 2001) AND `d`.`ds` IS NOT NULL

-- a left join preserves all rows of the scan
-- before
SELECT s.amount FROM sales s LEFT JOIN days d ON s.ds = d.ds
-- after
s: PRESERVED_SIDE

-- the condition also reads a data column of the scan
-- before
SELECT s.amount FROM sales s JOIN days d ON s.ds = d.ds OR s.item = d.year
-- after
s: MIXED_WITH_DATA_COLUMNS

-- the condition is not on a partition column
-- before
SELECT s.amount FROM sales s JOIN days d ON s.item = d.year
-- after
s: NO_CONDITION_ON_PARTITION_COLUMN

-- the condition is not deterministic
-- before
SELECT s.amount FROM sales s JOIN days d ON concat(s.ds, rand()) = d.ds
-- after
s: CONDITION_NOT_DETERMINISTIC
