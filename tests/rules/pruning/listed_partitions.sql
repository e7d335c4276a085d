-- The keys come from an Iceberg table's own list of partitions, not from its rows.
-- Each case has the key query on the rows, and the one on the list.

-- the key is a partition field
-- sql
SELECT o.v FROM lake.s.orders o JOIN lake.s.days d ON o.day = d.day
-- before
SELECT DISTINCT `d`.`day` FROM lake.s.days AS `d` WHERE `d`.`day` IS NOT NULL
-- after
SELECT DISTINCT `d`.`day` FROM (SELECT partition.`day` AS `day` FROM `lake`.`s`.`days`.`partitions`)
AS `d` WHERE `d`.`day` IS NOT NULL

-- a condition on the partition field
-- sql
SELECT o.v FROM lake.s.orders o JOIN lake.s.days d ON o.day = d.day AND d.day > DATE'2020-01-01'
-- before
SELECT DISTINCT `d`.`day` FROM lake.s.days AS `d` WHERE (d.day > DATE'2020-01-01') AND `d`.`day` IS NOT NULL
-- after
SELECT DISTINCT `d`.`day` FROM (SELECT partition.`day` AS `day` FROM `lake`.`s`.`days`.`partitions`)
AS `d` WHERE (d.day > DATE'2020-01-01') AND `d`.`day` IS NOT NULL

-- a condition on a data column: the list does not have it
-- sql
SELECT o.v FROM lake.s.orders o JOIN lake.s.days d ON o.day = d.day AND d.v = 1
-- before
SELECT DISTINCT `d`.`day` FROM lake.s.days AS `d` WHERE (d.v = 1) AND `d`.`day` IS NOT NULL
-- after
(unchanged)

-- a subquery is no scan of a table
-- sql
SELECT o.v FROM lake.s.orders o JOIN (SELECT day FROM lake.s.days) d ON o.day = d.day
-- before
SELECT DISTINCT `d`.`day` FROM (SELECT day FROM lake.s.days)
AS `d` WHERE `d`.`day` IS NOT NULL
-- after
(unchanged)
