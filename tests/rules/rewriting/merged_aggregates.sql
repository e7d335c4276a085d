-- Two aggregates of one table by one key, joined on that key, become one aggregate.

-- the second aggregate has a condition, which becomes CASE WHEN
-- before
SELECT a.item, a.total, b.most FROM
(SELECT item, sum(amount) AS total FROM sales GROUP BY item) a JOIN
(SELECT item, max(amount) AS most FROM sales WHERE store = 7 GROUP BY item) b
ON a.item = b.item
-- after
SELECT a.item, a.total, `a`.`__m1` AS `most` FROM
(SELECT item, sum(amount) AS total,
  max(CASE WHEN (`store` = 7) THEN `amount` END) AS __m1,
  max(CASE WHEN (`store` = 7) THEN 1 END) AS __m0 FROM sales GROUP BY item) a WHERE (a.item = `a`.`item`) AND (`a`.`item` IS NOT NULL AND `a`.`__m0` IS NOT NULL)

-- both have the same condition
-- before
SELECT a.item, a.total, b.most FROM
(SELECT item, sum(amount) AS total FROM sales WHERE store = 7 GROUP BY item) a JOIN
(SELECT item, max(amount) AS most FROM sales WHERE store = 7 GROUP BY item) b
ON a.item = b.item
-- after
SELECT a.item, a.total, `a`.`__m0` AS `most` FROM
(SELECT item, sum(amount) AS total,
  max(`amount`) AS __m0 FROM sales WHERE store = 7 GROUP BY item) a WHERE (a.item = `a`.`item`) AND (`a`.`item` IS NOT NULL)

-- they have different conditions: the groups of the first may lack those of the second
-- before
SELECT a.item, a.total, b.most FROM
(SELECT item, sum(amount) AS total FROM sales WHERE store = 6 GROUP BY item) a JOIN
(SELECT item, max(amount) AS most FROM sales WHERE store = 7 GROUP BY item) b
ON a.item = b.item
-- after
(unchanged) OTHER_FILTERS: the two uses of the table have different filters

-- other keys
-- before
SELECT a.item, a.total, b.most FROM
(SELECT item, sum(amount) AS total FROM sales GROUP BY item) a JOIN
(SELECT store, max(amount) AS most FROM sales GROUP BY store) b
ON a.item = b.store
-- after
(unchanged)

-- a left join keeps groups without a match
-- before
SELECT a.item, a.total, b.most FROM
(SELECT item, sum(amount) AS total FROM sales GROUP BY item) a LEFT JOIN
(SELECT item, max(amount) AS most FROM sales WHERE store = 7 GROUP BY item) b
ON a.item = b.item
-- after
(unchanged)
