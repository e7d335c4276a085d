"""The statement narrowed to its partitions.

``literals`` writes values as SQL, ``restrict`` splices conditions into the statement, and ``scan``
chooses how Spark finds the partitions.
"""
