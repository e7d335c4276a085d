-- A condition on a subquery's columns moves into the subquery. A step of predicate pushdown.
-- The condition stays above the subquery too. The trees are those after the pushdown, without and with this step.

-- a renamed column
-- sql
SELECT * FROM (SELECT item, year AS y FROM sales s JOIN days d ON s.ds = d.ds) t WHERE y = 2000
-- before
FS
  SEL
    FIL y = 2000
      SEL as t
        JOIN INNER ON s.ds = d.ds
          TS sales s
          TS days d
-- after
FS
  SEL
    FIL y = 2000
      SEL as t
        JOIN INNER ON s.ds = d.ds
          TS sales s
          FIL `d`.year = 2000
            TS days d

-- a deterministic expression
-- sql
SELECT * FROM (SELECT substr(year, 1, 3) AS y FROM days) t WHERE y = '200'
-- before
FS
  SEL
    FIL y = '200'
      SEL as t
        TS days
-- after
FS
  SEL
    FIL y = '200'
      SEL as t
        FIL (substr(`days`.year, 1, 3)) = '200'
          TS days

-- a group key passes, an aggregate does not
-- sql
SELECT * FROM (SELECT year AS y, count(*) AS n FROM days GROUP BY year) t
WHERE y = 2000 AND n > 1
-- before
FS
  SEL
    FIL y = 2000 AND n > 1
      SEL as t
        GBY year
          TS days
-- after
FS
  SEL
    FIL y = 2000 AND n > 1
      SEL as t
        GBY year
          FIL `days`.year = 2000
            TS days

-- the column by which the window function partitions passes, its value does not
-- sql
SELECT * FROM (SELECT year AS y, rank() OVER (PARTITION BY year ORDER BY ds) AS r FROM days) t
WHERE y = 2000 AND r = 1
-- before
FS
  SEL
    FIL y = 2000 AND r = 1
      SEL as t with window functions
        TS days
-- after
FS
  SEL
    FIL y = 2000 AND r = 1
      SEL as t with window functions
        FIL `days`.year = 2000
          TS days

-- UNION: all branches have a bare column of the same type
-- sql
SELECT * FROM (SELECT year AS y FROM days UNION ALL SELECT key FROM src) t WHERE y = 2000
-- before
FS
  SEL
    FIL y = 2000
      UNION as t
        SEL
          TS days
        SEL
          TS src
-- after
FS
  SEL
    FIL y = 2000
      UNION as t
        SEL
          FIL `days`.year = 2000
            TS days
        SEL
          FIL `src`.key = 2000
            TS src

-- UNION: one branch has an expression, of which the type is not known
-- sql
SELECT * FROM (SELECT year AS y FROM days UNION ALL SELECT upper(key) FROM src) t WHERE y = 2000
-- before
FS
  SEL
    FIL y = 2000
      UNION as t
        SEL
          TS days
        SEL
          TS src
-- after
(unchanged)

-- LIMIT: other rows would come first
-- sql
SELECT * FROM (SELECT year AS y FROM days LIMIT 10) t WHERE y = 2000
-- before
FS
  SEL
    FIL y = 2000
      LIM
        SEL as t
          TS days
-- after
(unchanged)
