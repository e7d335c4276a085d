"""Correlated queries: TPC-H's own and YSmart's flat forms of them, a click stream, others."""

from __future__ import annotations

_Q21_FLAT = """
SELECT sq12.l_suppkey FROM
  (SELECT sq1.l_orderkey, sq1.l_suppkey FROM
    (SELECT l_suppkey, l_orderkey FROM lineitem, orders
     WHERE o_orderkey = l_orderkey AND l_receiptdate > l_commitdate AND o_orderstatus = 'F') sq1,
    (SELECT l_orderkey, count(DISTINCT l_suppkey) AS cs, max(l_suppkey) AS ms
     FROM lineitem GROUP BY l_orderkey) sq2
   WHERE sq1.l_orderkey = sq2.l_orderkey
     AND ((sq2.cs > 1) OR ((sq2.cs = 1) AND (sq1.l_suppkey <> sq2.ms)))) sq12
  LEFT OUTER JOIN
  (SELECT l_orderkey, count(DISTINCT l_suppkey) AS cs, max(l_suppkey) AS ms
   FROM lineitem WHERE l_receiptdate > l_commitdate GROUP BY l_orderkey) sq3
  ON sq12.l_orderkey = sq3.l_orderkey
WHERE (sq3.cs IS NULL) OR ((sq3.cs = 1) AND (sq12.l_suppkey = sq3.ms))"""

QUERIES = {
    "Q17": """
SELECT sum(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part
WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX'
  AND l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)""",
    "Q17 flat": """
SELECT sum(l_extendedprice) / 7.0 AS avg_yearly FROM
  (SELECT l_partkey, 0.2 * avg(l_quantity) AS t1 FROM lineitem GROUP BY l_partkey) inner_t,
  (SELECT l_partkey, l_quantity, l_extendedprice FROM lineitem, part
   WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX') outer_t
WHERE outer_t.l_partkey = inner_t.l_partkey AND outer_t.l_quantity < inner_t.t1""",
    "Q17 without part": """
SELECT sum(l.l_extendedprice) AS price FROM lineitem l WHERE l.l_quantity <
  (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = l.l_partkey)""",
    "Q18": """
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
FROM customer, orders, lineitem
WHERE o_orderkey IN
    (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
  AND c_custkey = o_custkey AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate LIMIT 100""",
    "Q18 flat": """
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
FROM customer, orders, lineitem l,
  (SELECT l_orderkey, sum(l_quantity) AS total FROM lineitem GROUP BY l_orderkey) t
WHERE c_custkey = o_custkey AND o_orderkey = t.l_orderkey AND o_orderkey = l.l_orderkey
  AND t.total > 300
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate LIMIT 100""",
    "Q21": """
SELECT s_name, count(*) AS numwait FROM supplier, lineitem l1, orders, nation
WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
  AND l1.l_receiptdate > l1.l_commitdate
  AND EXISTS (SELECT * FROM lineitem l2
    WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
  AND NOT EXISTS (SELECT * FROM lineitem l3
    WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
      AND l3.l_receiptdate > l3.l_commitdate)
  AND s_nationkey = n_nationkey AND n_name = 'SAUDI ARABIA'
GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100""",
    "Q21 flat": f"SELECT count(*) AS n, sum(l_suppkey) AS s FROM ({_Q21_FLAT}) q21",
    "two aggregates": """
SELECT count(*) AS n, sum(q.a) AS a, sum(q.b) AS b FROM (
  SELECT x.l_orderkey, x.a, y.b FROM
    (SELECT l_orderkey, sum(l_quantity) AS a FROM lineitem GROUP BY l_orderkey) x JOIN
    (SELECT l_orderkey, max(l_extendedprice) AS b FROM lineitem
     WHERE l_receiptdate > l_commitdate GROUP BY l_orderkey) y
  ON x.l_orderkey = y.l_orderkey) q""",
    "above average": """
SELECT count(*) AS n, sum(o.o_totalprice) AS price FROM orders o JOIN
  (SELECT o_custkey, avg(o_totalprice) AS mean FROM orders GROUP BY o_custkey) m
  ON o.o_custkey = m.o_custkey WHERE o.o_totalprice > m.mean""",
    "sole supplier": """
SELECT l.l_suppkey, count(*) AS n FROM lineitem l
WHERE NOT EXISTS (SELECT * FROM lineitem m
  WHERE m.l_orderkey = l.l_orderkey AND m.l_suppkey <> l.l_suppkey)
GROUP BY l.l_suppkey""",
    "latest order": """
SELECT c.c_name, o.o_orderkey FROM customer c JOIN orders o ON c.c_custkey = o.o_custkey
WHERE c.c_mktsegment = 'BUILDING' AND o.o_orderdate =
  (SELECT max(o_orderdate) FROM orders WHERE o_custkey = c.c_custkey)""",
    "above line's average": """
SELECT count(*) AS n, sum(l.l_extendedprice) AS price FROM lineitem l JOIN
  (SELECT l_linenumber, avg(l_extendedprice) AS mean FROM lineitem GROUP BY l_linenumber) m
  ON l.l_linenumber = m.l_linenumber WHERE l.l_extendedprice > 2 * m.mean""",
    "above supplier's average": """
SELECT count(*) AS n, sum(l.l_extendedprice) AS price FROM lineitem l
WHERE l.l_extendedprice > (SELECT 1.5 * avg(l_extendedprice) FROM lineitem
  WHERE l_suppkey = l.l_suppkey)""",
    "largest lines": """
SELECT count(*) AS n, sum(l.l_extendedprice) AS price FROM lineitem l
WHERE l.l_quantity = (SELECT max(l_quantity) FROM lineitem WHERE l_orderkey = l.l_orderkey)""",
    "click stream": """
SELECT avg(pageviews) AS pageviews FROM
  (SELECT c.uid, mp.ts1, count(*) - 2 AS pageviews FROM clicks c,
    (SELECT uid, max(ts1) AS ts1, ts2 FROM
      (SELECT c1.uid, c1.ts AS ts1, min(c2.ts) AS ts2 FROM clicks c1, clicks c2
       WHERE c1.uid = c2.uid AND c1.ts < c2.ts AND c1.cid = 3 AND c2.cid = 7
       GROUP BY c1.uid, c1.ts) cp
     GROUP BY uid, ts2) mp
   WHERE c.uid = mp.uid AND c.ts >= mp.ts1 AND c.ts <= mp.ts2
   GROUP BY c.uid, mp.ts1) counts""",
}
