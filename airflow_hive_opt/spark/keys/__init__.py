"""The keys that a small table has (``key_set``), and partition names as rows (``skeleton``)."""
