"""The two stages on Spark: collect keys and prune (local task), then run the join (map join)."""
