"""Runs a job (``documents/job.py``): ``run`` has the stages in their order.

- ``planning`` makes the statement that is pruned. ``required_partitions`` finds what a sensor waits
  for.
- ``handed_over`` checks a list that was made elsewhere.
- ``driver_id`` finds the ID by which a cluster knows the driver.
- ``begun`` tells of a statement that is about to begin, and keeps one from it that a submitted
  application may have run already.
- ``written_since`` says whether an interrupted statement may have written, or has left files that
  the next one would add.
- ``completion`` makes report and outcome once the statement has run, ``failure`` the outcome after
  an error.
- ``shipping`` and ``submitted`` are the two ends of ``spark-submit``.
"""
