-- A table that is joined with an aggregate of itself, or tested against itself, is read once, with a window.

-- a scalar aggregate of the rows of the same key
-- before
SELECT sum(s.amount) FROM sales s WHERE s.amount <
(SELECT avg(amount) FROM sales WHERE item = s.item)
-- after
SELECT sum(s.amount) FROM (SELECT *,
  avg(`amount`) OVER (PARTITION BY `item`) AS __w0 FROM sales) s WHERE s.amount <
(CASE WHEN `s`.`item` IS NOT NULL THEN `s`.`__w0` END)

-- EXISTS with <>: the minimum or the maximum differs
-- before
SELECT s.item FROM sales s WHERE EXISTS
(SELECT 1 FROM sales t WHERE t.item = s.item AND t.store <> s.store)
-- after
SELECT s.item FROM (SELECT *,
  min(`store`) OVER (PARTITION BY `item`) AS __w0,
  max(`store`) OVER (PARTITION BY `item`) AS __w1 FROM sales) s WHERE (`s`.`item` IS NOT NULL AND (`s`.`__w0` <> s.store OR `s`.`__w1` <> s.store))

-- a join with a derived table
-- before
SELECT s.store, c.n FROM sales s JOIN
(SELECT item, count(*) AS n FROM sales GROUP BY item) c ON c.item = s.item
-- after
SELECT s.store, (`s`.`__w0`) AS `n` FROM (SELECT *,
  count(*) OVER (PARTITION BY `item`) AS __w0 FROM sales) s WHERE (`s`.`item` = s.item) AND (`s`.`item` IS NOT NULL)

-- the key is another column on each side
-- before
SELECT s.item FROM sales s WHERE s.amount <
(SELECT avg(amount) FROM sales WHERE item = s.store)
-- after
(unchanged) NO_SHARED_KEY: the two uses of the table are not joined by an equality of one key

-- SELECT * would show the window's column
-- before
SELECT * FROM sales s WHERE s.amount <
(SELECT avg(amount) FROM sales WHERE item = s.item)
-- after
(unchanged) SELECT_STAR: SELECT * would return the columns that the rewriting adds or removes

-- LIMIT may return other rows each time
-- before
SELECT s.item FROM sales s WHERE s.amount <
(SELECT avg(amount) FROM sales WHERE item = s.item) LIMIT 3
-- after
(unchanged) NOT_DETERMINISTIC: the statement may return other rows each time it runs (rand, current_date, first, LIMIT without ORDER BY and similar)
