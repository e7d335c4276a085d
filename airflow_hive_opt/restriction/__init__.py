"""Restricts the scans in a statement's text to their partitions.

``literals`` writes values as SQL, ``list_condition`` writes the condition for a list of partitions,
``restrict`` puts conditions into the statement, and ``row_changes`` into MERGE, UPDATE and DELETE.
``indexed`` says which conditions by key indexes a text may have.
``other_runner`` makes what a runner without this package needs, and ``guard`` statements that check
its session.
"""
