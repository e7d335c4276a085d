-- The orders that changed on one day, of whatever day they are. A run without a logical date has no ds.
-- shop.orders has a record key and 'hoodie.spark.sql.insert.into.operation' = 'upsert', so that
-- INSERT INTO replaces the rows with the same key.
INSERT INTO shop.orders
SELECT c.id, COALESCE(c.status, o.status) AS status, COALESCE(c.amount, o.amount) AS amount, c.day
FROM (
  SELECT id, day, status, amount
  FROM shop.changed_orders
  WHERE changed_on = DATE'{{ ds | default(params.day, true) }}'
) AS c
LEFT JOIN shop.orders AS o ON o.id = c.id AND o.day = c.day
