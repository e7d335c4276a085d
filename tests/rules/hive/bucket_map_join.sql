-- A map join of bucketed tables joins bucket by bucket, and merges sorted buckets.

-- the buckets of one table divide those of the other
-- sql
SET hive.ignore.mapjoin.hint=false;
SET hive.optimize.bucketmapjoin=true;
SELECT /*+ MAPJOIN(b) */ a.key FROM b4 a JOIN b2 b ON a.key = b.key
-- before
TS a
  FIL key is not null
    MAPJOIN INNER big a
      SEL
        FS
TS b
  FIL key is not null
    MAPJOIN INNER big a
-- after
TS a
  FIL key is not null
    BUCKETMAPJOIN INNER big a
      SEL
        FS
TS b
  FIL key is not null
    BUCKETMAPJOIN INNER big a

-- sorted buckets are merged
-- sql
SET hive.ignore.mapjoin.hint=false;
SET hive.optimize.bucketmapjoin=true;
SET hive.optimize.bucketmapjoin.sortedmerge=true;
SELECT /*+ MAPJOIN(b) */ a.key FROM b4 a JOIN b2 b ON a.key = b.key
-- before
TS a
  FIL key is not null
    MAPJOIN INNER big a
      SEL
        FS
TS b
  FIL key is not null
    MAPJOIN INNER big a
-- after
TS a
  FIL key is not null
    SORTMERGEBUCKETMAPJOIN INNER big a
      SEL
        FS
TS b
  FIL key is not null
    SORTMERGEBUCKETMAPJOIN INNER big a

-- without a hint: a sort-merge join of two tables
-- sql
SET hive.auto.convert.sortmerge.join=true;
SET hive.optimize.bucketmapjoin.sortedmerge=true;
SELECT a.key FROM b4 a JOIN b4 b ON a.key = b.key
-- before
TS a
  FIL key is not null
    RS key
      JOIN INNER
        SEL
          FS
TS b
  FIL key is not null
    RS key
      JOIN INNER
-- after
TS a
  FIL key is not null
    SORTMERGEBUCKETMAPJOIN INNER big a
      SEL
        FS
TS b
  FIL key is not null
    SORTMERGEBUCKETMAPJOIN INNER big a

-- the join key is not the bucket column
-- sql
SET hive.ignore.mapjoin.hint=false;
SET hive.optimize.bucketmapjoin=true;
SELECT /*+ MAPJOIN(b) */ a.key FROM b4 a JOIN b2 b ON a.value = b.value
-- before
TS a
  FIL value is not null
    MAPJOIN INNER big a
      SEL
        FS
TS b
  FIL value is not null
    MAPJOIN INNER big a
-- after
(unchanged)

-- the big table has no buckets
-- sql
SET hive.ignore.mapjoin.hint=false;
SET hive.optimize.bucketmapjoin=true;
SELECT /*+ MAPJOIN(b) */ a.key FROM src a JOIN b2 b ON a.key = b.key
-- before
TS a
  FIL key is not null
    MAPJOIN INNER big a
      SEL
        FS
TS b
  FIL key is not null
    MAPJOIN INNER big a
-- after
(unchanged)

-- the setting is off
-- sql
SET hive.ignore.mapjoin.hint=false;
SELECT /*+ MAPJOIN(b) */ a.key FROM b4 a JOIN b2 b ON a.key = b.key
-- before
TS a
  FIL key is not null
    MAPJOIN INNER big a
      SEL
        FS
TS b
  FIL key is not null
    MAPJOIN INNER big a
-- after
(unchanged)
