"""Runs both stages: ``application`` runs them, ``job`` describes them as plain data.

``shipping`` and ``submitted`` are the two ends of ``spark-submit``.
"""
