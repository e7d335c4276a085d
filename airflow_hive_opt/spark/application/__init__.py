"""Both stages as one run: ``application`` runs them, ``job`` takes them as plain data.

``shipping`` and ``submitted`` are the two ends of ``spark-submit``.
"""
