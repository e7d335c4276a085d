-- A table that is joined with an aggregate of itself, and then aggregated, is read once.

-- IN a group-by with HAVING: the rows of a key are aggregated before the join
-- before
SELECT i.kind, s.item, sum(s.amount) AS total
FROM items i, sales s WHERE i.item = s.item AND s.item IN
(SELECT item FROM sales GROUP BY item HAVING sum(amount) > 300)
GROUP BY i.kind, s.item
-- after
SELECT i.kind, s.item, CAST(sum(`s`.`__s0`) AS DECIMAL(25,2)) AS total
FROM items i, (SELECT `item`, sum(`amount`) AS __s0 FROM sales
  GROUP BY `item`
  HAVING sum(amount) > 300) s WHERE i.item = s.item AND (`s`.`item` IS NOT NULL)
GROUP BY i.kind, s.item

-- a derived table with a condition
-- before
SELECT i.kind, min(s.amount) AS least
FROM items i, sales s, (SELECT item, count(*) AS n FROM sales GROUP BY item) c
WHERE i.item = s.item AND c.item = s.item AND c.n > 10
GROUP BY i.kind
-- after
SELECT i.kind, min(`s`.`__s0`) AS least
FROM items i, (SELECT `item`, min(`amount`) AS __s0, count(*) AS __s1 FROM sales
  GROUP BY `item`) s WHERE (i.item = s.item) AND (`s`.`item` = s.item) AND ((`s`.`__s1`) > 10) AND (`s`.`item` IS NOT NULL)
GROUP BY i.kind

-- the rows are used outside an aggregate
-- before
SELECT i.kind, s.store, sum(s.amount) AS total
FROM items i, sales s WHERE i.item = s.item AND s.item IN
(SELECT item FROM sales GROUP BY item HAVING sum(amount) > 300)
GROUP BY i.kind, s.store
-- after
(unchanged) OTHER_USES: the statement uses the table in a way that the rewriting does not support: it supports lookups by key and aggregates by key

-- the rows have a condition that the aggregate does not have
-- before
SELECT i.kind, sum(s.amount) AS total
FROM items i, sales s WHERE i.item = s.item AND s.store = 7 AND s.item IN
(SELECT item FROM sales GROUP BY item HAVING sum(amount) > 300)
GROUP BY i.kind
-- after
(unchanged) OTHER_FILTERS: the two uses of the table have different filters

-- a count over another table's column would count keys, not rows
-- before
SELECT i.kind, count(i.item) AS n, sum(s.amount) AS total
FROM items i, sales s WHERE i.item = s.item AND s.item IN
(SELECT item FROM sales GROUP BY item HAVING sum(amount) > 300)
GROUP BY i.kind
-- after
(unchanged) OTHER_USES: the statement uses the table in a way that the rewriting does not support: it supports lookups by key and aggregates by key

-- an outer join may replace the table's rows by NULLs
-- before
SELECT i.kind, sum(s.amount) AS total
FROM items i LEFT JOIN sales s ON i.item = s.item WHERE s.item IN
(SELECT item FROM sales GROUP BY item HAVING sum(amount) > 300)
GROUP BY i.kind
-- after
(unchanged) NULL_SUPPLYING_SIDE: an outer join may put NULLs in place of the table's rows
