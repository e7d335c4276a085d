-- An OR implies conditions on one relation, or on a table's partition columns. The OR itself stays.
-- Each line is a condition of a join or filter.

-- each branch has a conjunct on the small table
-- sql
SELECT s.item FROM sales s JOIN days d ON s.ds = d.ds
WHERE (d.year = 1 AND s.item = 5) OR d.year = 2
-- before
(d.year = 1 AND s.item = 5) OR d.year = 2
s.ds = d.ds
-- after
(d.year = 1 AND s.item = 5) OR d.year = 2
((d.year = 1)) OR ((d.year = 2))
s.ds = d.ds

-- each branch has conjuncts on both tables: an OR for each
-- sql
SELECT s.item FROM sales s JOIN days d ON s.ds = d.ds
WHERE (d.year = 1 AND s.item = 5) OR (d.year = 2 AND s.item = 6)
-- before
(d.year = 1 AND s.item = 5) OR (d.year = 2 AND s.item = 6)
s.ds = d.ds
-- after
(d.year = 1 AND s.item = 5) OR (d.year = 2 AND s.item = 6)
((d.year = 1)) OR ((d.year = 2))
((s.item = 5)) OR ((s.item = 6))
s.ds = d.ds

-- an OR on the large table, on its partition column, and on that column with the small table
-- sql
SELECT s.item FROM sales s JOIN days d
ON (s.ds = d.ds AND s.ds > 'a' AND s.item = 1) OR (s.ds = d.year AND s.ds < 'b' AND s.item = 2)
-- before
(s.ds = d.ds AND s.ds > 'a' AND s.item = 1) OR (s.ds = d.year AND s.ds < 'b' AND s.item = 2)
-- after
(s.ds = d.ds AND s.ds > 'a' AND s.item = 1) OR (s.ds = d.year AND s.ds < 'b' AND s.item = 2)
((s.ds > 'a') AND (s.item = 1)) OR ((s.ds < 'b') AND (s.item = 2))
((s.ds > 'a')) OR ((s.ds < 'b'))
((s.ds = d.ds) AND (s.ds > 'a')) OR ((s.ds = d.year) AND (s.ds < 'b'))

-- a branch has no conjunct on the small table: nothing follows for d
-- sql
SELECT s.item FROM sales s JOIN days d ON s.ds = d.ds
WHERE (d.year = 1 AND s.item = 5) OR s.item = 6
-- before
(d.year = 1 AND s.item = 5) OR s.item = 6
s.ds = d.ds
-- after
(d.year = 1 AND s.item = 5) OR s.item = 6
((s.item = 5)) OR ((s.item = 6))
s.ds = d.ds

-- the OR reads only one relation: it implies nothing more
-- sql
SELECT s.item FROM sales s JOIN days d ON s.ds = d.ds
WHERE d.year = 1 OR d.year = 2
-- before
d.year = 1 OR d.year = 2
s.ds = d.ds
-- after
(unchanged)

-- a conjunct is not deterministic
-- sql
SELECT s.item FROM sales s JOIN days d ON s.ds = d.ds
WHERE (d.year > rand() AND s.item = 5) OR d.year = 2
-- before
(d.year > rand() AND s.item = 5) OR d.year = 2
s.ds = d.ds
-- after
(unchanged)
