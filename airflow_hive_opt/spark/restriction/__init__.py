"""Restricts the scans in a statement's text to their partitions.

``literals`` writes values as SQL, ``restrict`` puts conditions into the statement, and ``scan``
chooses how Spark finds the partitions.
"""
