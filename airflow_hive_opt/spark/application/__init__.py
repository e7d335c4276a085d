"""Runs a job: ``run`` has the stages in their order, ``job`` describes the work as plain data.

- ``planning`` makes the statement that is pruned, ``passed_through`` the descriptor of one that is
  not. ``required_partitions`` is what a sensor waits for.
- ``session_binding`` records how a session reads a statement, and compares.
- ``completion`` makes report and outcome once the statement has run.
- ``shipping`` and ``submitted`` are the two ends of ``spark-submit``.
"""
