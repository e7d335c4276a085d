-- Tables of every kind that Spark makes in a metastore.
-- Hive's formats
CREATE TABLE hive_parquet (id INT, name VARCHAR(5), code CHAR(3), price DECIMAL(7,2), at TIMESTAMP, day DATE, flag BOOLEAN, bits BINARY, big BIGINT, tiny TINYINT, f FLOAT, d DOUBLE) STORED AS PARQUET;
CREATE TABLE hive_orc (id INT, Name STRING) PARTITIONED BY (Ds STRING, n INT) STORED AS ORC;
CREATE TABLE hive_text (id INT COMMENT 'the id', Name STRING) COMMENT 'a table' PARTITIONED BY (ds DATE COMMENT 'the day') ROW FORMAT DELIMITED FIELDS TERMINATED BY '|' NULL DEFINED AS 'none' STORED AS TEXTFILE;
CREATE TABLE plain_text (id INT, name STRING) STORED AS TEXTFILE;
CREATE TABLE empty_text (id INT, name STRING) STORED AS TEXTFILE;
CREATE TABLE empty_parquet (id INT, name STRING) STORED AS PARQUET;
CREATE TABLE hive_csv (id INT, name STRING) ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde' WITH SERDEPROPERTIES ('separatorChar' = ';') STORED AS TEXTFILE;
CREATE TABLE hive_avro (id INT, small SMALLINT, name STRING) STORED AS AVRO;
CREATE TABLE hive_sequence (id INT) STORED AS SEQUENCEFILE;
CREATE TABLE hive_rc (id INT) STORED AS RCFILE;
CREATE TABLE hive_external (id INT) STORED AS PARQUET LOCATION '{folder}/ex ternal%20/';
CREATE TABLE hive_buckets (id INT, k STRING) CLUSTERED BY (id) SORTED BY (k) INTO 4 BUCKETS STORED AS ORC;
CREATE TABLE hive_buckets_of_partitions (Id INT, k STRING) PARTITIONED BY (ds STRING) CLUSTERED BY (k, Id) INTO 8 BUCKETS STORED AS PARQUET;
CREATE TABLE projected (id INT) PARTITIONED BY (day STRING) STORED AS PARQUET TBLPROPERTIES ('projection.enabled' = 'true');
CREATE TABLE acid (id INT) CLUSTERED BY (id) INTO 2 BUCKETS STORED AS ORC TBLPROPERTIES ('transactional' = 'true');
CREATE TABLE nested (id INT, s STRUCT<A: INT, b: ARRAY<DECIMAL(9,3)>>, m MAP<STRING, STRUCT<x: VARCHAR(3), y: TIMESTAMP>>, l ARRAY<MAP<INT, BIGINT>>) PARTITIONED BY (p CHAR(4)) STORED AS PARQUET;
CREATE TABLE keys_of_all_types (v INT) PARTITIONED BY (a INT, b BIGINT, c DATE, d TIMESTAMP, e DECIMAL(5,2), f VARCHAR(7), g CHAR(2), h BOOLEAN, i DOUBLE, j TINYINT) STORED AS ORC;
-- Spark's own formats
CREATE TABLE own_parquet (id INT, Name VARCHAR(5), code CHAR(3), price DECIMAL(7,2), at TIMESTAMP, local TIMESTAMP_NTZ, day DATE) USING parquet;
CREATE TABLE own_orc (Id INT, Ds STRING, v DOUBLE) USING orc PARTITIONED BY (Ds);
CREATE TABLE own_csv (Id INT, name STRING) USING csv OPTIONS (header 'true', SEP ';');
CREATE TABLE own_json (id INT, s STRUCT<A: TIMESTAMP_NTZ, b: VARCHAR(4)>) USING json PARTITIONED BY (id);
CREATE TABLE own_text (value STRING) USING text;
CREATE TABLE own_external (id INT, day STRING) USING parquet PARTITIONED BY (day) LOCATION '{folder}/own ext%41/';
CREATE TABLE own_external_csv (id INT) USING csv LOCATION '{folder}/own csv';
CREATE TABLE own_buckets (id INT, K STRING, v INT) USING parquet CLUSTERED BY (K, id) SORTED BY (v) INTO 4 BUCKETS;
CREATE TABLE own_buckets_of_partitions (id INT, day STRING) USING parquet PARTITIONED BY (day) CLUSTERED BY (id) INTO 4 BUCKETS;
SET spark.sql.hive.manageFilesourcePartitions = false;
CREATE TABLE unmanaged (id INT, day STRING) USING parquet PARTITIONED BY (day) TBLPROPERTIES ('x' = 'y');
SET spark.sql.hive.manageFilesourcePartitions = true;
CREATE TABLE defaults (id INT DEFAULT 7, name STRING DEFAULT 'x') USING parquet;
CREATE TABLE commented (id INT COMMENT 'the id') USING parquet COMMENT 'a table';
CREATE TABLE collated (id INT, name STRING COLLATE UNICODE_CI, l ARRAY<STRING COLLATE UTF8_LCASE>) USING parquet;
CREATE TABLE collated_keys (id INT, ds STRING COLLATE UTF8_LCASE) USING parquet;
CREATE TABLE intervals (id INT, y INTERVAL YEAR TO MONTH, d INTERVAL DAY TO SECOND) USING parquet;
CREATE TABLE odd_names (`a b` INT, `x.y` STRING, `É` INT, `c,d` INT) USING parquet;
-- With rows
INSERT INTO hive_parquet VALUES (1, 'a', 'b', 1.5, TIMESTAMP'2020-01-01 00:00:00', DATE'2020-01-01', true, X'00', 1, 1Y, 1.0F, 1.0D);
INSERT INTO hive_orc PARTITION (ds = '2020-01-01', n = 7) SELECT 1, 'a';
INSERT INTO hive_orc PARTITION (ds, n) SELECT 1, 'a', CAST(NULL AS STRING), 8;
INSERT INTO hive_text PARTITION (ds = DATE'2020-01-01') SELECT 1, 'a';
INSERT INTO plain_text VALUES (1, 'a');
INSERT INTO hive_csv VALUES (1, 'a');
INSERT INTO own_parquet VALUES (1, 'a', 'b', 1.5, TIMESTAMP'2020-01-01 00:00:00', TIMESTAMP_NTZ'2020-01-01 00:00:00', DATE'2020-01-01');
INSERT INTO own_orc VALUES (1, 1.5, 'a/b c'), (2, 2.5, NULL);
INSERT INTO own_csv VALUES (1, 'a');
INSERT INTO own_external VALUES (1, 'x'), (2, 'y');
CREATE TABLE by_day STORED AS PARQUET AS SELECT 1 AS id, 'x' AS day;
CREATE TABLE as_selected USING parquet AS SELECT 1 AS Id, 'x' AS Day;
CREATE TABLE analyzed (Id INT, name STRING, s STRUCT<a: INT>) USING parquet;
INSERT INTO analyzed VALUES (1, 'a', NULL), (2, 'a', NULL), (3, NULL, NULL);
ANALYZE TABLE analyzed COMPUTE STATISTICS FOR COLUMNS Id, name;
CREATE TABLE analyzed_partitions (id INT, Name STRING) PARTITIONED BY (ds STRING) STORED AS PARQUET;
INSERT INTO analyzed_partitions PARTITION (ds = 'a') VALUES (1, 'a'), (2, 'b');
ANALYZE TABLE analyzed_partitions COMPUTE STATISTICS FOR ALL COLUMNS;
ANALYZE TABLE analyzed_partitions PARTITION (ds) COMPUTE STATISTICS;
CREATE TABLE analyzed_empty (id INT) STORED AS TEXTFILE;
ANALYZE TABLE analyzed_empty COMPUTE STATISTICS;
-- Changed later
CREATE TABLE renamed_before (id INT, Day STRING) USING parquet PARTITIONED BY (Day);
INSERT INTO renamed_before VALUES (1, 'x');
ALTER TABLE renamed_before RENAME TO renamed;
CREATE TABLE widened (Id INT) STORED AS PARQUET;
ALTER TABLE widened ADD COLUMNS (More VARCHAR(9));
CREATE TABLE own_widened (Id INT, Day STRING) USING parquet PARTITIONED BY (Day);
ALTER TABLE own_widened ADD COLUMNS (More VARCHAR(9));
-- Views
CREATE VIEW view_of_one AS SELECT ds AS Day, id FROM hive_orc;
CREATE VIEW named_view (First COMMENT 'one', second) COMMENT 'a view' AS SELECT id, name FROM own_parquet;
CREATE VIEW view_of_a_view AS SELECT Day FROM view_of_one WHERE id > 1;
CREATE VIEW compensating WITH SCHEMA COMPENSATION AS SELECT * FROM own_csv;
CREATE VIEW evolving WITH SCHEMA EVOLUTION AS SELECT * FROM own_csv;
-- Functions
CREATE FUNCTION My_Upper AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFUpper';
CREATE FUNCTION plus_one(x INT) RETURNS INT RETURN x + 1;
