"""The provider's additions to the web server."""

PREFIX = "/hive_opt"
"""The path of the pages on the API server."""
