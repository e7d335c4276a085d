-- Which conditions hold for every row in which a relation takes part.
-- A scan may use only those. Below each alias are the conditions, seen from this relation.

-- inner join: all conditions hold for both
-- before
SELECT 1 FROM sales s JOIN days d ON s.ds = d.ds AND d.year = 2000
-- after
s
  holds: s.ds = d.ds
  holds: d.year = 2000
d
  holds: s.ds = d.ds
  holds: d.year = 2000

-- left join: ON holds for the null-supplying side only
-- before
SELECT 1 FROM days d LEFT JOIN sales s ON s.ds = d.ds AND d.year = 2000
-- after
d
  dropped, PRESERVED_SIDE: s.ds = d.ds
  dropped, PRESERVED_SIDE: d.year = 2000
s
  holds: s.ds = d.ds
  holds: d.year = 2000

-- WHERE rejects NULLs, so the rows of the null-supplying side are real and ON holds for both
-- before
SELECT 1 FROM sales s LEFT JOIN days d ON d.year = 2000 WHERE s.ds = d.ds
-- after
s
  holds: d.year = 2000
  holds: s.ds = d.ds
d
  holds: d.year = 2000
  holds: s.ds = d.ds

-- the left join may put NULLs in place of s, and <=> in WHERE may be true of them
-- before
SELECT 1 FROM src x LEFT JOIN sales s ON x.key = s.item, days d WHERE s.ds <=> d.ds
-- after
x
  dropped, PRESERVED_SIDE: x.key = s.item
  dropped, NULLS_MAY_MATCH: s.ds <=> d.ds
s
  holds: x.key = s.item
  dropped, NULLS_MAY_MATCH: s.ds <=> d.ds
d
  dropped, PRESERVED_SIDE: x.key = s.item
  dropped, NULLS_MAY_MATCH: s.ds <=> d.ds

-- full join: ON holds for neither side
-- before
SELECT 1 FROM sales s FULL JOIN days d ON s.ds = d.ds
-- after
s
  dropped, PRESERVED_SIDE: s.ds = d.ds
d
  dropped, PRESERVED_SIDE: s.ds = d.ds
