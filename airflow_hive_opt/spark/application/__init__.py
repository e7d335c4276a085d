"""Runs both stages: ``application`` runs them, ``job`` describes them as plain data.

``completion`` adds to the report what is known after the statement has run.
``shipping`` and ``submitted`` are the two ends of ``spark-submit``.
"""
