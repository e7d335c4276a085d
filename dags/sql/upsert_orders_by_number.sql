-- The orders that changed on one day. An order keeps its day, and the MERGE does not compare it.
MERGE INTO {{ params.catalog }}.shop.orders AS o
USING (
  SELECT id, day, status, amount
  FROM {{ params.catalog }}.shop.changed_orders
  WHERE changed_on = DATE'{{ ds | default(params.day, true) }}'
) AS c
ON o.id = c.id
WHEN MATCHED THEN UPDATE SET status = c.status, amount = c.amount
WHEN NOT MATCHED THEN INSERT *
