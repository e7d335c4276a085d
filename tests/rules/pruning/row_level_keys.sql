-- MERGE, UPDATE and DELETE can't use all keys. Each case has the decisions without and with the rule.

-- WHEN NOT MATCHED BY SOURCE changes rows without a match too: the target is read whole
-- sql
MERGE INTO lake.s.orders o USING lake.s.days d ON o.day = d.day
WHEN NOT MATCHED BY SOURCE THEN DELETE
-- before
o: PRUNED, predicate
  by SELECT DISTINCT `d`.`day` FROM lake.s.days AS `d` WHERE `d`.`day` IS NOT NULL
d: PRESERVED_SIDE
-- after
o: NOT_MATCHED_BY_SOURCE
d: PRESERVED_SIDE

-- the target's own keys do not restrict another scan: another run may add rows to the target
-- sql
DELETE FROM lake.s.days d WHERE d.day IN (SELECT o.day FROM lake.s.orders o)
-- before
d: KEY_SOURCE_NOT_SMALL
o: PRUNED, predicate
  by SELECT DISTINCT `d`.`day` FROM lake.s.days AS `d` WHERE `d`.`day` IS NOT NULL
-- after
d: KEY_SOURCE_NOT_SMALL
o: KEYS_OF_THE_TARGET

-- WHEN MATCHED changes only rows with a match
-- sql
MERGE INTO lake.s.orders o USING lake.s.days d ON o.day = d.day
WHEN MATCHED THEN DELETE
-- before
o: PRUNED, predicate
  by SELECT DISTINCT `d`.`day` FROM lake.s.days AS `d` WHERE `d`.`day` IS NOT NULL
d: PRESERVED_SIDE
-- after
(unchanged)

-- DELETE with the keys of another table
-- sql
DELETE FROM lake.s.orders o WHERE o.day IN (SELECT d.day FROM lake.s.days d WHERE d.v = 1)
-- before
o: PRUNED, predicate
  by SELECT DISTINCT `d`.`day` FROM lake.s.days AS `d` WHERE (d.v = 1) AND `d`.`day` IS NOT NULL
d: KEY_SOURCE_NOT_SMALL
-- after
(unchanged)

-- a query changes no rows
-- sql
SELECT o.v FROM lake.s.orders o JOIN lake.s.days d ON o.day = d.day
-- before
o: PRUNED, predicate
  by SELECT DISTINCT `d`.`day` FROM lake.s.days AS `d` WHERE `d`.`day` IS NOT NULL
d: KEY_SOURCE_NOT_SMALL
-- after
(unchanged)
