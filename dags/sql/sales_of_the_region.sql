-- Sales by category in one month, of one region's stores.
INSERT OVERWRITE TABLE sales_by_category
SELECT i.i_category,
       s.s_state,
       count(*) AS sales,
       sum(ss.ss_quantity) AS quantity,
       sum(ss.ss_ext_sales_price) AS revenue
FROM store_sales ss
JOIN date_dim d ON ss.ss_sold_date_sk = d.d_date_sk
JOIN item i ON ss.ss_item_sk = i.i_item_sk
JOIN store s ON ss.ss_store_sk = s.s_store_sk
WHERE d.d_year = {{ params.year }}
  AND d.d_moy = {{ params.month }}
  AND s.s_state = :region
GROUP BY i.i_category, s.s_state
