"""The command line: ``main`` starts it, and each command has a module.

``explain``, ``run`` (also ``prune``), ``report``, ``key_index``, ``descriptors`` and ``session``
add their arguments; ``arguments`` has those that they share. ``embedded`` runs a job,
``stored_report`` shows a run, ``statement_check`` what is wrong with a statement.
"""
