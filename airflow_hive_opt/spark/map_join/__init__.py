"""The second stage: ``prelaunch`` checks the descriptor, ``execution`` runs the statement once.

``command`` runs a statement that writes; ``partition_folder`` replaces one partition's folder.
"""
