-- Operators that read one table by the same key share one shuffled scan.

-- two aggregates and a read by the same key
-- before
SELECT a.item, b.amount FROM
(SELECT item, count(DISTINCT store) AS stores FROM sales GROUP BY item) a,
(SELECT item, count(DISTINCT day) AS days FROM sales GROUP BY item) c, sales b
WHERE a.item = b.item AND c.item = b.item
-- after
WITH __shared AS
  (SELECT `item`, `day`, `store`, `amount` FROM sales WHERE rand() IS NOT NULL
    DISTRIBUTE BY `item`)
SELECT a.item, b.amount FROM
(SELECT item, count(DISTINCT store) AS stores FROM __shared AS `sales` GROUP BY item) a,
(SELECT item, count(DISTINCT day) AS days FROM __shared AS `sales` GROUP BY item) c, __shared b
WHERE a.item = b.item AND c.item = b.item

-- a self-join by the key
-- before
SELECT a.amount, b.amount FROM sales a, sales b WHERE a.item = b.item AND a.store < b.store
-- after
WITH __shared AS
  (SELECT `item`, `store`, `amount` FROM sales WHERE rand() IS NOT NULL
    DISTRIBUTE BY `item`)
SELECT a.amount, b.amount FROM __shared a, __shared b WHERE a.item = b.item AND a.store < b.store

-- the reads have different keys
-- before
SELECT a.item, b.amount FROM
(SELECT item, count(DISTINCT store) AS stores FROM sales GROUP BY item) a,
sales b WHERE a.item = b.store
-- after
(unchanged)

-- a condition prunes partitions of one read: the shared scan would read all
-- before
SELECT a.amount, b.amount FROM facts a, facts b
WHERE a.item = b.item AND a.day = '2020-01-01'
-- after
(unchanged) PRUNING_WOULD_BE_LOST: small tables' keys prune the table's partitions, and the rewriting would prevent that

-- the table is read once
-- before
SELECT a.amount FROM sales a JOIN items i ON a.item = i.item
-- after
(unchanged)
