-- What the sensor waits for: the partition of one day's changed orders.
SELECT c.id
FROM shop.changed_orders AS c
JOIN (SELECT DATE'{{ ds | default(params.day, true) }}' AS day) AS d ON c.changed_on = d.day
