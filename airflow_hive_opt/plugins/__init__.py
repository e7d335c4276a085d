"""What the provider adds to the web server."""

PREFIX = "/hive_opt"
"""Where the pages lie on the API server."""
