-- Sales of one day. A run without a logical date has no ds.
INSERT OVERWRITE TABLE sales_by_day PARTITION (day = '{{ ds | default(params.day, true) }}')
SELECT count(*) AS sales, sum(ss.ss_ext_sales_price) AS revenue
FROM store_sales ss
JOIN date_dim d ON ss.ss_sold_date_sk = d.d_date_sk
WHERE d.d_date = DATE'{{ ds | default(params.day, true) }}'
