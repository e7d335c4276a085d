"""Applications in cluster mode: submitted, followed by their ID, found again, and stopped.

- ``cluster`` is what can be asked of a cluster. ``resource_manager`` asks YARN's,
  ``standalone_master`` that of a standalone cluster, ``driver_pods`` Kubernetes. ``kinds`` chooses
  one of them.
- ``following`` waits for an application's end, or stops it.
- ``standalone`` starts drivers on a standalone cluster, which ``spark-submit`` can't.
- ``earlier`` is the application of an earlier attempt, ``cluster_run`` the run of one attempt, and
  ``deferral`` its wait in the triggerer.
"""
