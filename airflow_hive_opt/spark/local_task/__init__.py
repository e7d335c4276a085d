"""The first stage: plans, collects keys, looks up partitions, writes the descriptor."""
