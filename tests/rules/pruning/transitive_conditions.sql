-- A condition on a column also holds for an equal column of a subquery. A step of predicate pushdown.
-- The trees are those after the pushdown, without and with this step.

-- the subquery gets the condition on the equal column, and passes it on
-- sql
SELECT * FROM days a JOIN (SELECT item, year AS y FROM sales s JOIN days d ON s.ds = d.ds) b ON a.year = b.y
WHERE a.year = 2000
-- before
FS
  SEL
    JOIN INNER ON a.year = b.y
      FIL a.year = 2000
        TS days a
      SEL as b
        JOIN INNER ON s.ds = d.ds
          TS sales s
          TS days d
-- after
FS
  SEL
    JOIN INNER ON a.year = b.y
      FIL a.year = 2000
        TS days a
      FIL `b`.`y` = 2000
        SEL as b
          JOIN INNER ON s.ds = d.ds
            TS sales s
            FIL `d`.year = 2000
              TS days d

-- left join: the preserved side's condition holds for the rows that match
-- sql
SELECT * FROM days a LEFT JOIN (SELECT item, year AS y FROM sales s JOIN days d ON s.ds = d.ds) b ON a.year = b.y
WHERE a.year = 2000
-- before
FS
  SEL
    JOIN LEFT OUTER ON a.year = b.y
      FIL a.year = 2000
        TS days a
      SEL as b
        JOIN INNER ON s.ds = d.ds
          TS sales s
          TS days d
-- after
FS
  SEL
    JOIN LEFT OUTER ON a.year = b.y
      FIL a.year = 2000
        TS days a
      FIL `b`.`y` = 2000
        SEL as b
          JOIN INNER ON s.ds = d.ds
            TS sales s
            FIL `d`.year = 2000
              TS days d

-- right join: all rows of the subquery stay, so it gets no condition
-- sql
SELECT * FROM days a RIGHT JOIN (SELECT item, year AS y FROM sales s JOIN days d ON s.ds = d.ds) b
ON a.year = b.y AND a.year = 2000
-- before
FS
  SEL
    JOIN RIGHT OUTER ON a.year = b.y
      FIL a.year = 2000
        TS days a
      SEL as b
        JOIN INNER ON s.ds = d.ds
          TS sales s
          TS days d
-- after
(unchanged)

-- the columns have other types: Spark converts one of them
-- sql
SELECT * FROM days a
JOIN (SELECT CAST(year AS int) AS y FROM sales s JOIN days d ON s.ds = d.ds) b ON a.year = b.y
WHERE a.year = 2000
-- before
FS
  SEL
    JOIN INNER ON a.year = b.y
      FIL a.year = 2000
        TS days a
      SEL as b
        JOIN INNER ON s.ds = d.ds
          TS sales s
          TS days d
-- after
(unchanged)

-- no condition is made for a table: its keys express it
-- sql
SELECT * FROM days a JOIN sales s ON a.ds = s.ds WHERE a.ds = 'x'
-- before
FS
  SEL
    JOIN INNER ON a.ds = s.ds
      FIL a.ds = 'x'
        TS days a
      TS sales s
-- after
(unchanged)
