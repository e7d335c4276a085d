-- A join whose small table only pruned partitions is eliminated.
-- In these examples, the local task has read all keys, each key occurs once, and the keys select all partitions.

-- the small table is read only in its condition and the join's
-- before
SELECT f.item, f.day FROM facts f JOIN days d ON f.day = d.day
WHERE d.year = 2000 AND f.amount > 1
-- after
SELECT f.item, f.day FROM facts f WHERE (f.amount > 1)

-- a comma join
-- before
SELECT f.item FROM facts f, days d WHERE f.day = d.day AND d.year = 2000
-- after
SELECT f.item FROM facts f

-- two small tables
-- before
SELECT f.item FROM facts f JOIN days d ON f.day = d.day AND d.year = 2000
JOIN days e ON f.day = e.day
-- after
SELECT f.item FROM facts f

-- another column of the small table is selected
-- before
SELECT f.item, d.year FROM facts f JOIN days d ON f.day = d.day WHERE d.year = 2000
-- after
(unchanged)

-- SELECT * shows the small table's columns
-- before
SELECT * FROM facts f JOIN days d ON f.day = d.day WHERE d.year = 2000
-- after
(unchanged)

-- the keys did not evaluate a condition on both tables
-- before
SELECT f.item FROM facts f JOIN days d ON f.day = d.day AND f.amount > d.year
-- after
(unchanged)

-- a left join keeps all rows, and nothing is pruned
-- before
SELECT f.item FROM facts f LEFT JOIN days d ON f.day = d.day
-- after
(unchanged)

-- the statement may return other rows each time
-- before
SELECT f.item FROM facts f JOIN days d ON f.day = d.day WHERE d.year = 2000 AND rand() < 0.5
-- after
(unchanged)
