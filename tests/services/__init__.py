"""Servers for tests and benchmarks, started on loopback and stopped by their process id."""
