-- The orders that changed on one day, of whatever day they are. A run without a logical date has no ds.
MERGE INTO shop.orders AS o
USING (
  SELECT id, day, status, amount
  FROM shop.changed_orders
  WHERE changed_on = DATE'{{ ds | default(params.day, true) }}'
) AS c
ON o.id = c.id AND o.day = c.day
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED THEN INSERT *
