# One partition column, equality

-- join, filter on the small table | fast | 7 | s
SELECT s.id FROM sales s JOIN days d ON s.ds = d.ds WHERE d.week = 1

-- comma join | fast | 7 | s
SELECT s.id FROM sales s , days d WHERE d.ds = s.ds AND d.week = 1

-- USING | fast | 7 | s
SELECT s.id FROM sales s JOIN days d USING (ds) WHERE d.week = 1

-- USING, with a condition on the unqualified column | fast | 2 | s
SELECT s.id FROM sales s JOIN days d USING (ds) WHERE d.week = 1 AND ds > '2020-01-12'

-- small table without a filter | fast | 3 | s
SELECT s.id FROM sales s JOIN three t ON s.ds = t.ds

-- filter on a boolean column only | fast | 10 | s
SELECT s.id FROM sales s JOIN days d ON s.ds = d.ds WHERE d.open

-- IS NOT NULL only | fast | 2 | s
SELECT s.id FROM sales s JOIN three t ON s.ds = t.ds WHERE t.note IS NOT NULL

-- empty key set | fast | 0 | s
SELECT s.id FROM sales s JOIN days d ON s.ds = d.ds WHERE d.week = 99

-- duplicates among the keys | fast | 3 | s
SELECT s.id FROM sales s JOIN (SELECT ds FROM three UNION ALL SELECT ds FROM three) t ON s.ds = t.ds

-- with the statement's own predicate on the partition column | fast | 2 | s
SELECT s.id FROM sales s JOIN days d ON s.ds = d.ds WHERE d.week = 1 AND s.ds > '2020-01-12'

-- two small tables | fast | 2 | s
SELECT s.id FROM sales s JOIN days d ON s.ds = d.ds JOIN three t ON s.ds = t.ds WHERE d.week = 0

-- one condition written twice | fast | 7 | s
SELECT s.id FROM sales s JOIN days d ON s.ds = d.ds WHERE d.week = 1 AND s.ds = d.ds

-- every partition matches | ALL_PARTITIONS_MATCH | 21 | s
SELECT s.id FROM sales s JOIN days d ON s.ds <=> d.ds

# Several partition columns

-- tuples of one small table | fast | 3 | h
SELECT h.id FROM hours h JOIN slots t ON h.ds = t.ds AND h.hr = t.hr

-- two small tables, one column each | fast | 4 | h
SELECT h.id FROM hours h JOIN slots t ON h.ds = t.ds JOIN numbers n ON h.hr = n.n WHERE n.n < 2

-- one of two partition columns | fast | 5 | h
SELECT h.id FROM hours h JOIN numbers n ON h.hr = n.n WHERE n.n = 1

-- row comparison | skeleton | 3 | h
SELECT h.id FROM hours h JOIN slots t ON (h.ds, h.hr) = (t.ds, t.hr)

-- expression over both | skeleton | 7 | h
SELECT h.id FROM hours h JOIN numbers n ON h.ds * 10 + h.hr = n.n

# Other conditions

-- function of the partition column | skeleton | 7 | s
SELECT s.id FROM sales s JOIN days d ON substr(s.ds, 9) = d.dd WHERE d.week = 1

-- function of the small table's key | skeleton | 2 | s
SELECT s.id FROM sales s JOIN dates d ON s.ds = date_format(d.day, 'yyyy-MM-dd')

-- cast | skeleton | 2 | s
SELECT s.id FROM sales s JOIN dates d ON CAST(s.ds AS DATE) = d.day

-- different types | skeleton | 2 | s
SELECT s.id FROM sales s JOIN dates d ON s.ds = d.day

-- BETWEEN | skeleton | 4 | s
SELECT s.id FROM sales s JOIN spans p ON s.ds BETWEEN p.low AND p.high

-- inequality | skeleton | 15 | s
SELECT s.id FROM sales s JOIN dates d ON s.ds > d.day WHERE d.day > DATE'2020-01-04'

-- <=> finds the NULL partition | skeleton | 4 | s
SELECT s.id FROM sales s JOIN three t ON s.ds <=> t.ds

-- OR of equalities | skeleton | 2 | s
SELECT s.id FROM sales s JOIN spans p ON s.ds = p.low OR s.ds = p.high

-- LIKE | skeleton | 9 | s
SELECT s.id FROM sales s JOIN spans p ON s.ds LIKE concat(substr(p.low, 1, 9), '%')

-- partition column compared with a literal | static | 2 | s
SELECT s.id FROM sales s WHERE s.ds >= '2020-01-19'

-- function of the partition column compared with a literal | static | 1 | s
SELECT s.id FROM sales s WHERE day(CAST(s.ds AS DATE)) = 3

-- partition column and data column in one expression | MIXED_WITH_DATA_COLUMNS | 21 | s
SELECT s.id FROM sales s JOIN days d ON concat(s.ds, s.item) = d.ds

-- OR with a data column | MIXED_WITH_DATA_COLUMNS | 21 | s
SELECT s.id FROM sales s JOIN days d ON s.ds = d.ds OR s.item = d.week

-- no condition on the partition column | NO_CONDITION_ON_PARTITION_COLUMN | 21 | s
SELECT s.id FROM sales s JOIN numbers n ON s.item = n.n

-- rand() in the condition | fast | 20 | s
SELECT s.id FROM sales s JOIN days d ON s.ds = d.ds WHERE concat(s.ds, rand()) > d.ds

-- rand() with the partition column | CONDITION_NOT_DETERMINISTIC | 21 | s
SELECT s.id FROM sales s, days d WHERE concat(s.ds, rand() < 2) = concat(d.ds, 'true')

# Outer, semi and anti joins

-- big LEFT JOIN small | PRESERVED_SIDE | 21 | s
SELECT s.id FROM sales s LEFT JOIN days d ON s.ds = d.ds AND d.week = 1

-- LEFT JOIN, an IN list in WHERE that NULLs may fulfil | PRESERVED_SIDE | 21 | s
SELECT s.id FROM sales s LEFT JOIN days d ON s.ds = d.ds AND d.week = 1 WHERE s.item IN (d.week, s.item)

-- small LEFT JOIN big | fast | 7 | s
SELECT d.ds, s.id FROM days d LEFT JOIN sales s ON s.ds = d.ds WHERE d.week = 1

-- big RIGHT JOIN small | fast | 7 | s
SELECT s.id, d.ds FROM sales s RIGHT JOIN days d ON s.ds = d.ds AND d.week = 1

-- big FULL JOIN small | PRESERVED_SIDE | 21 | s
SELECT s.id, d.ds FROM sales s FULL JOIN days d ON s.ds = d.ds AND d.week = 1

-- FULL JOIN, then an equality in WHERE | fast | 7 | s
SELECT s.id FROM sales s FULL JOIN numbers n ON s.item = n.n, days d WHERE s.ds = d.ds AND d.week = 1

-- LEFT JOIN ON true, equality in WHERE | fast | 3 | s
SELECT s.id FROM sales s LEFT JOIN three t ON true WHERE s.ds = t.ds

-- NULLs of an outer join may match | NULLS_MAY_MATCH | 21 | s
SELECT n.n, s.id FROM numbers n LEFT JOIN sales s ON s.item = n.n JOIN three t ON s.ds <=> t.ds

-- LEFT SEMI JOIN | fast | 7 | s
SELECT s.id FROM sales s LEFT SEMI JOIN days d ON s.ds = d.ds AND d.week = 1

-- LEFT ANTI JOIN, big on the left | PRESERVED_SIDE | 21 | s
SELECT s.id FROM sales s LEFT ANTI JOIN days d ON s.ds = d.ds AND d.week = 1

-- LEFT ANTI JOIN, big on the right | fast | 7 | s
SELECT d.ds FROM days d LEFT ANTI JOIN sales s ON s.ds = d.ds AND s.item = 1 WHERE d.week = 1

-- IN | fast | 7 | s
SELECT s.id FROM sales s WHERE s.ds IN (SELECT ds FROM days WHERE week = 1)

-- EXISTS | fast | 7 | s
SELECT s.id FROM sales s WHERE EXISTS (SELECT 1 FROM days d WHERE d.ds = s.ds AND d.week = 1)

-- NOT EXISTS, big inside | fast | 7 | s
SELECT d.ds FROM days d WHERE d.week = 1 AND NOT EXISTS (SELECT 1 FROM sales s WHERE s.ds = d.ds AND s.item = 1)

-- NOT IN | CONDITION_NOT_SELF_CONTAINED | 21 | s
SELECT s.id FROM sales s WHERE s.ds NOT IN (SELECT ds FROM days WHERE week = 1)

-- = (SELECT max(...)) | fast | 1 | s
SELECT s.id FROM sales s WHERE s.ds = (SELECT max(ds) FROM days WHERE week = 1)

-- >= (SELECT ...) | skeleton | 7 | s
SELECT s.id FROM sales s WHERE s.ds >= (SELECT max(ds) FROM days WHERE week = 1)

# Sources of the keys

-- snowflake, filtered at the outer dimension | fast | 7 | s
SELECT s.id FROM sales s JOIN days d ON s.ds = d.ds JOIN weeks w ON d.week = w.week WHERE w.name = 'one'

-- subquery with aggregate | fast | 3 | s
SELECT s.id FROM sales s JOIN (SELECT week, max(ds) AS ds FROM days GROUP BY week) d ON s.ds = d.ds

-- CTE | fast | 7 | s
WITH d AS (SELECT ds FROM days WHERE week = 1) SELECT s.id FROM sales s JOIN d ON s.ds = d.ds

-- view | fast | 7 | s
SELECT s.id FROM sales s JOIN first_week v ON s.ds = v.ds

-- VALUES | fast | 2 | s
SELECT s.id FROM sales s JOIN (VALUES ('2020-01-03'), ('2020-01-04')) AS v(ds) ON s.ds = v.ds

-- UNION | fast | 2 | s
SELECT s.id FROM sales s JOIN (SELECT low AS ds FROM spans UNION SELECT high FROM spans) u ON s.ds = u.ds

-- partition names of another partitioned table | static | 3 | s
SELECT s.id FROM sales s JOIN returns r ON s.ds = r.ds WHERE r.ds < '2020-01-04'

-- small table with LIMIT | KEY_SOURCE_NOT_DETERMINISTIC | 21 | s
SELECT s.id FROM sales s JOIN (SELECT ds FROM days LIMIT 3) d ON s.ds = d.ds

-- the other table is not small | KEY_SOURCE_NOT_SMALL | 21 | s
SELECT s.id FROM sales s JOIN huge g ON s.ds = g.ds

# Position of the big table

-- subquery with a rename | fast | 7 | s
SELECT q.d FROM (SELECT ds AS d, item FROM sales s) q JOIN days d ON q.d = d.ds WHERE d.week = 1

-- subquery that groups by the partition column | fast | 7 | s
SELECT q.n FROM (SELECT ds, count(*) AS n FROM sales s GROUP BY ds) q JOIN days d ON q.ds = d.ds WHERE d.week = 1

-- subquery with an expression of the partition column | skeleton | 7 | s
SELECT q.d FROM (SELECT substr(ds, 9) AS d FROM sales s) q JOIN days d ON q.d = d.dd WHERE d.week = 1

-- subquery with * over USING | fast | 7 | s
SELECT q.id FROM (SELECT * FROM sales s JOIN (SELECT n AS item FROM numbers) n USING (item)) q JOIN days d ON q.ds = d.ds WHERE d.week = 1

-- subquery with a column that has no name | fast | 7 | s
SELECT q.ds FROM (SELECT count(*), ds FROM sales s GROUP BY ds) q JOIN days d ON q.ds = d.ds WHERE d.week = 1

-- UNION ALL | fast | 7 | s
SELECT q.id FROM (SELECT id, ds FROM sales s UNION ALL SELECT id, ds FROM returns) q JOIN days d ON q.ds = d.ds WHERE d.week = 1

-- CTE | fast | 7 | s
WITH q AS (SELECT * FROM sales s WHERE item < 9) SELECT q.id FROM q JOIN days d ON q.ds = d.ds WHERE d.week = 1

-- view | fast | 7 | s
SELECT s.day FROM sales_view s JOIN days d ON s.day = d.ds WHERE d.week = 1

-- behind LIMIT | VALUE_CHANGED | 21 | s
SELECT q.ds FROM (SELECT ds FROM sales s LIMIT 100) q JOIN days d ON q.ds = d.ds WHERE d.week = 1

-- behind a window function | VALUE_CHANGED | 21 | s
SELECT q.ds FROM (SELECT ds, row_number() OVER (ORDER BY id) AS n FROM sales s) q JOIN days d ON q.ds = d.ds WHERE d.week = 1

-- behind window functions that partition by it | fast | 7 | s
SELECT q.ds, q.n FROM (SELECT ds, id, row_number() OVER (PARTITION BY ds ORDER BY id) AS n FROM sales s) q JOIN days d ON q.ds = d.ds WHERE d.week = 1

-- aggregated partition column | VALUE_CHANGED | 21 | s
SELECT q.ds FROM (SELECT item, max(ds) AS ds FROM sales s GROUP BY item) q JOIN days d ON q.ds = d.ds WHERE d.week = 1

-- self join, each side with its own condition | fast | 7 | s
SELECT s.id FROM sales s JOIN days d ON s.ds = d.ds AND d.week = 1 JOIN sales b ON s.item = b.item AND b.ds = '2020-01-01'

# Conditions written outside the join

-- condition on a subquery's column | fast | 7 | s
SELECT q.id FROM (SELECT s.id, d.week AS w FROM sales s JOIN days d ON s.ds = d.ds) q WHERE q.w = 1

-- subquery that groups by the small table's column | fast | 7 | s
SELECT q.n FROM (SELECT d.week AS w, count(*) AS n FROM sales s JOIN days d ON s.ds = d.ds GROUP BY d.week) q WHERE q.w = 1

-- CTE that is read once | fast | 7 | s
WITH q AS (SELECT s.id, d.week + 1 AS w FROM sales s JOIN days d ON s.ds = d.ds) SELECT id FROM q WHERE w = 2

-- CTE that is read twice, each time with its own condition | fast | 14 | s
WITH q AS (SELECT s.item, d.week AS w, count(*) AS n FROM sales s JOIN days d ON s.ds = d.ds GROUP BY s.item, d.week) SELECT a.n, b.n AS m FROM q a JOIN q b ON a.item = b.item WHERE a.w = 1 AND b.w = 0

-- CTE that is read twice, once without a condition | fast | 20 | s
WITH q AS (SELECT s.item, d.week AS w, count(*) AS n FROM sales s JOIN days d ON s.ds = d.ds GROUP BY s.item, d.week) SELECT a.n FROM q a WHERE a.w = 1 AND a.n > (SELECT avg(n) / 100 FROM q)

-- partition column of a CTE that is read twice | fast | 14 | s
WITH q AS (SELECT id, ds FROM sales s) SELECT q.id FROM q JOIN days d ON q.ds = d.ds WHERE d.week = 1 UNION ALL SELECT q.id FROM q JOIN days d ON q.ds = d.ds WHERE d.week = 0

-- condition above UNION ALL | fast | 7 | s
SELECT q.id FROM (SELECT s.id, d.week AS w FROM sales s JOIN days d ON s.ds = d.ds UNION ALL SELECT r.id, e.week FROM returns r JOIN days e ON r.ds = e.ds) q WHERE q.w = 1

-- condition on an equal column of another subquery | fast | 7 | s
SELECT q.id FROM (SELECT s.id, d.week AS w FROM sales s JOIN days d ON s.ds = d.ds) q JOIN days e ON q.w = e.week WHERE e.week = 1 AND e.dd = '08'

-- condition behind a window function that partitions by the column | fast | 7 | s
SELECT q.id, q.n FROM (SELECT s.id, d.week AS w, count(*) OVER (PARTITION BY d.week) AS n FROM sales s JOIN days d ON s.ds = d.ds) q WHERE q.w = 1

-- condition behind LIMIT | fast | 20 | s
SELECT q.w FROM (SELECT d.week AS w FROM sales s JOIN days d ON s.ds = d.ds LIMIT 1000) q WHERE q.w = 1

-- BETWEEN scalar subqueries | fast | 7 | s
SELECT s.id FROM sales s JOIN days d ON s.ds = d.ds WHERE d.week BETWEEN (SELECT min(week) + 1 FROM weeks) AND (SELECT max(week) FROM weeks)

-- OR with conditions on both tables | fast | 14 | s
SELECT s.id FROM sales s JOIN days d ON s.ds = d.ds WHERE (d.week = 1 AND s.item > 3) OR (d.week = 0 AND s.item < 2)

-- OR with conditions on partition and data columns | static | 2 | s
SELECT s.id FROM sales s WHERE (s.ds = '2020-01-08' AND s.item > 3) OR (s.ds = '2020-01-09' AND s.item < 2)
