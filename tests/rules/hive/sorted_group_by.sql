-- A group-by runs in the mapper if the table is bucketed and sorted by its columns.

-- the table is bucketed and sorted by the column
-- sql
SELECT key, count(1) FROM b4 GROUP BY key
-- before
TS b4
  SEL
    GBY hash key
      RS _col0
        GBY mergepartial _col0
          SEL
            FS
-- after
TS b4
  SEL
    GBY final key
      SEL
        FS

-- a filter below the group-by keeps the order
-- sql
SELECT key, count(1) FROM b4 WHERE value > '5' GROUP BY key
-- before
TS b4
  FIL value > '5'
    SEL
      GBY hash key
        RS _col0
          GBY mergepartial _col0
            SEL
              FS
-- after
TS b4
  FIL value > '5'
    SEL
      GBY final key
        SEL
          FS

-- an expression of the column is not in the table's order
-- sql
SELECT upper(key), count(1) FROM b4 GROUP BY upper(key)
-- before
TS b4
  SEL
    GBY hash upper(key)
      RS _col0
        GBY mergepartial _col0
          SEL
            FS
-- after
(unchanged)

-- the table is sorted by another column
-- sql
SELECT value, count(1) FROM b4 GROUP BY value
-- before
TS b4
  SEL
    GBY hash value
      RS _col0
        GBY mergepartial _col0
          SEL
            FS
-- after
(unchanged)

-- the table has no buckets
-- sql
SELECT key, count(1) FROM src GROUP BY key
-- before
TS src
  SEL
    GBY hash key
      RS _col0
        GBY mergepartial _col0
          SEL
            FS
-- after
(unchanged)
