-- The join with a key table moves below the windows. A step of self_join_window.

-- all windows are minimum or maximum, which repeated rows do not change
-- before
SELECT i.kind, s.store FROM items i, sales s WHERE i.item = s.item
AND i.kind = 'food' AND EXISTS
(SELECT 1 FROM sales t WHERE t.item = s.item AND t.store < s.store)
-- after
SELECT `s`.__j0 AS `kind`, s.store FROM (SELECT *,
  min(`store`) OVER (PARTITION BY `item`) AS __w0 FROM (SELECT `s`.*, `i`.`kind` AS __j0 FROM sales AS `s`, items AS `i`
  WHERE `s`.`item` = `i`.`item` AND (i.kind = 'food'))) s WHERE ((`s`.`item` IS NOT NULL AND (`s`.`__w0` < s.store)))

-- an average changes with repeated rows: the key table is read once more instead, for its keys
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

-- the table that is joined has no condition of its own, so its keys exclude nothing
-- before
SELECT i.kind, s.store FROM items i, sales s WHERE i.item = s.item AND EXISTS
(SELECT 1 FROM sales t WHERE t.item = s.item AND t.store < s.store)
-- after
SELECT i.kind, s.store FROM items i, (SELECT *,
  min(`store`) OVER (PARTITION BY `item`) AS __w0 FROM sales) s WHERE i.item = s.item AND (`s`.`item` IS NOT NULL AND (`s`.`__w0` < s.store))

-- LIMIT may return other rows each time
-- before
SELECT i.kind, s.store FROM items i, sales s WHERE i.item = s.item
AND i.kind = 'food' AND EXISTS
(SELECT 1 FROM sales t WHERE t.item = s.item AND t.store < s.store) LIMIT 3
-- after
(unchanged) NOT_DETERMINISTIC: the statement may return other rows each time it runs (rand, current_date, first, LIMIT without ORDER BY and similar)
