-- The keys of a small table become a condition on a data column of a large table.
-- Each line is such a column, and below it its key query.
-- The examples run with key_predicate=True.

-- an equality with a column of a small table
-- before
SELECT amount FROM sales s JOIN src ON s.item = src.key AND src.value = 1
-- after
s.item
  by SELECT DISTINCT `src`.`key` FROM src AS `src` WHERE (src.value = 1) AND `src`.`key` IS NOT NULL

-- IN is a join too
-- before
SELECT amount FROM sales s WHERE s.item IN (SELECT key FROM src WHERE value = 1)
-- after
s.item
  by SELECT DISTINCT `src`.`key` FROM src AS `src` WHERE (`src`.value = 1) AND `src`.`key` IS NOT NULL

-- two columns, two small tables
-- before
SELECT s.ds FROM sales s JOIN src x ON s.item = x.key JOIN src1 y ON s.amount = y.key
-- after
s.item
  by SELECT DISTINCT `x`.`key` FROM src AS `x` WHERE `x`.`key` IS NOT NULL
s.amount
  by SELECT DISTINCT `y`.`key` FROM src1 AS `y` WHERE `y`.`key` IS NOT NULL

-- a left join preserves the large table's rows
-- before
SELECT amount FROM sales s LEFT JOIN src ON s.item = src.key AND src.value = 1
-- after
(none)

-- an expression of the column: the keys are not values of the column
-- before
SELECT amount FROM sales s JOIN src ON upper(s.item) = src.key
-- after
(none)

-- a partition column: partition pruning uses these keys
-- before
SELECT amount FROM sales s JOIN days d ON s.ds = d.ds
-- after
(none)

-- the scanned table is small
-- before
SELECT a.value FROM src a JOIN src1 b ON a.key = b.key
-- after
(none)
