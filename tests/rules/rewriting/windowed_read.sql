-- The windowed read of a table is restricted to the rows and keys that are needed. A step of self_join_window.

-- rows that fulfil the block's condition or the lookup's
-- before
SELECT s.item FROM sales s WHERE s.store = 7 AND s.amount <
(SELECT avg(amount) FROM sales t WHERE t.item = s.item AND t.store = 8)
-- after
SELECT s.item FROM (SELECT *,
  avg(CASE WHEN (`store` = 8) THEN `amount` END) OVER (PARTITION BY `item`) AS __w0 FROM sales
  WHERE (((`store` = 7)) OR ((`store` = 8)))) s WHERE s.store = 7 AND s.amount <
(CASE WHEN `s`.`item` IS NOT NULL THEN `s`.`__w0` END)

-- keys of a smaller table with a condition of its own
-- before
SELECT i.kind, s.store FROM items i, sales s WHERE i.item = s.item
AND i.kind = 'food' AND s.amount <
(SELECT avg(amount) FROM sales t WHERE t.item = s.item)
-- after
SELECT i.kind, s.store FROM items i, (SELECT *,
  avg(`amount`) OVER (PARTITION BY `item`) AS __w0 FROM sales
  WHERE `item` IN (SELECT `i`.`item` FROM items AS `i` WHERE (i.kind = 'food'))) s WHERE i.item = s.item
AND i.kind = 'food' AND s.amount <
(`s`.`__w0`)

-- the lookup has no condition, so it reads all rows
-- before
SELECT s.item FROM sales s WHERE s.store = 7 AND s.amount <
(SELECT avg(amount) FROM sales t WHERE t.item = s.item)
-- after
SELECT s.item FROM (SELECT *,
  avg(`amount`) OVER (PARTITION BY `item`) AS __w0 FROM sales) s WHERE s.store = 7 AND s.amount <
(CASE WHEN `s`.`item` IS NOT NULL THEN `s`.`__w0` END)

-- no rewriting: the lookup has another key
-- before
SELECT s.item FROM sales s WHERE s.store = 7 AND s.amount <
(SELECT avg(amount) FROM sales t WHERE t.item = s.store)
-- after
(unchanged) NO_SHARED_KEY: the two uses of the table are not joined by an equality of one key
