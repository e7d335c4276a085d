-- A shuffle is removed if its rows are already shuffled by its keys.

-- two group-bys by the same key share a shuffle
-- sql
SELECT key, sum(c) FROM (SELECT key, count(1) c FROM src GROUP BY key) t GROUP BY key
-- before
TS src
  SEL
    GBY hash key
      RS _col0
        GBY mergepartial _col0
          SEL
            SEL
              GBY hash _col0
                RS _col0
                  GBY mergepartial _col0
                    SEL
                      FS
-- after
TS src
  SEL
    GBY hash key
      RS _col0
        GBY mergepartial _col0
          SEL
            SEL
              GBY complete _col0
                SEL
                  FS

-- the keys of one shuffle begin with those of the other
-- sql
SELECT key, value, count(1) FROM (SELECT key, value FROM src DISTRIBUTE BY key SORT BY key) t GROUP BY key, value
-- before
TS src
  SEL
    RS _col0
      SEL
        SEL
          GBY hash _col0, _col1
            RS _col0, _col1
              GBY mergepartial _col0, _col1
                SEL
                  FS
-- after
TS src
  SEL
    RS _col0, _col1
      SEL
        SEL
          GBY complete _col0, _col1
            SEL
              FS

-- DISTRIBUTE BY the key of the group-by
-- sql
SELECT key, count(1) FROM (SELECT key FROM src DISTRIBUTE BY key) t GROUP BY key
-- before
TS src
  SEL
    RS
      SEL
        SEL
          GBY hash _col0
            RS _col0
              GBY mergepartial _col0
                SEL
                  FS
-- after
TS src
  SEL
    RS _col0
      SEL
        SEL
          GBY complete _col0
            SEL
              FS

-- the second group-by has another key
-- sql
SELECT c, count(1) FROM (SELECT key, count(1) c FROM src GROUP BY key) t GROUP BY c
-- before
TS src
  SEL
    GBY hash key
      RS _col0
        GBY mergepartial _col0
          SEL
            SEL
              GBY hash _col1
                RS _col0
                  GBY mergepartial _col0
                    SEL
                      FS
-- after
(unchanged)

-- ORDER BY has one reducer, and the setting accepts it
-- sql
SET hive.optimize.reducededuplication.min.reducer=1;
SELECT key, count(1) FROM src GROUP BY key ORDER BY key
-- before
TS src
  SEL
    GBY hash key
      RS _col0
        GBY mergepartial _col0
          SEL
            RS _col0
              SEL
                FS
-- after
TS src
  SEL
    GBY hash key
      RS _col0
        GBY mergepartial _col0
          SEL
            SEL
              FS

-- ORDER BY has one reducer, and the default setting does not accept fewer than four
-- sql
SELECT key, count(1) FROM src GROUP BY key ORDER BY key
-- before
TS src
  SEL
    GBY hash key
      RS _col0
        GBY mergepartial _col0
          SEL
            RS _col0
              SEL
                FS
-- after
(unchanged)
