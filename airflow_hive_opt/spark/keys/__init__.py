"""The key set of a small table (``key_set``), and partition names as rows (``skeleton``)."""
