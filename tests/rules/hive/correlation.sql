-- Joins and group-bys on the same keys run in one job (the Correlation Optimizer).

-- a group-by of a join by the join's key
-- sql
SET hive.optimize.correlation=true;
SET hive.auto.convert.join=false;
SELECT x.key, count(1) FROM src x JOIN src1 y ON x.key = y.key GROUP BY x.key
-- before
TS x
  FIL key is not null
    RS key
      JOIN INNER
        SEL
          GBY hash _col0
            RS _col0
              GBY mergepartial _col0
                SEL
                  FS
TS y
  FIL key is not null
    RS key
      JOIN INNER
-- after
TS x
  FIL key is not null
    RS key
      DEMUX
        MUX
          JOIN INNER
            SEL
              MUX
                GBY complete _col0
                  SEL
                    FS
        MUX
          JOIN INNER
TS y
  FIL key is not null
    RS key
      DEMUX

-- a join of two group-bys by their keys
-- sql
SET hive.optimize.correlation=true;
SET hive.auto.convert.join=false;
SELECT x.key FROM (SELECT key, count(1) c FROM src GROUP BY key) x
JOIN (SELECT key, count(1) d FROM src1 GROUP BY key) y ON x.key = y.key
-- before
TS src
  FIL key is not null
    SEL
      GBY hash key
        RS _col0
          GBY mergepartial _col0
            SEL
              RS _col0
                JOIN INNER
                  SEL
                    FS
TS src1
  FIL key is not null
    SEL
      GBY hash key
        RS _col0
          GBY mergepartial _col0
            SEL
              RS _col0
                JOIN INNER
-- after
TS src
  FIL key is not null
    SEL
      GBY hash key
        RS _col0
          DEMUX
            MUX
              GBY mergepartial _col0
                SEL
                  MUX
                    JOIN INNER
                      SEL
                        FS
            MUX
              GBY mergepartial _col0
                SEL
                  MUX
                    JOIN INNER
TS src1
  FIL key is not null
    SEL
      GBY hash key
        RS _col0
          DEMUX

-- the group-by has another key than the join
-- sql
SET hive.optimize.correlation=true;
SET hive.auto.convert.join=false;
SELECT x.value, count(1) FROM src x JOIN src1 y ON x.key = y.key GROUP BY x.value
-- before
TS x
  FIL key is not null
    RS key
      JOIN INNER
        SEL
          GBY hash _col1
            RS _col0
              GBY mergepartial _col0
                SEL
                  FS
TS y
  FIL key is not null
    RS key
      JOIN INNER
-- after
(unchanged)

-- the key is that of the null-supplying side: its NULLs are not shuffled by that key
-- sql
SET hive.optimize.correlation=true;
SET hive.auto.convert.join=false;
SELECT y.key, count(1) FROM src x LEFT JOIN src1 y ON x.key = y.key GROUP BY y.key
-- before
TS x
  RS key
    JOIN LEFT OUTER
      SEL
        GBY hash _col4
          RS _col0
            GBY mergepartial _col0
              SEL
                FS
TS y
  RS key
    JOIN LEFT OUTER
-- after
(unchanged)

-- off, as by default
-- sql
SET hive.auto.convert.join=false;
SELECT x.key, count(1) FROM src x JOIN src1 y ON x.key = y.key GROUP BY x.key
-- before
TS x
  FIL key is not null
    RS key
      JOIN INNER
        SEL
          GBY hash _col0
            RS _col0
              GBY mergepartial _col0
                SEL
                  FS
TS y
  FIL key is not null
    RS key
      JOIN INNER
-- after
(unchanged)
