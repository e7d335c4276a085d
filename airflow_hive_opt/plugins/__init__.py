"""What the provider adds to the web server."""
