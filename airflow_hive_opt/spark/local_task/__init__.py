"""The first stage: plan, collect keys, ask the metastore, describe the partitions to scan."""
