"""What the pages of a run show, without Airflow.

``models`` are the answers of the API. ``task_run`` names a task instance with its figures.
``instance`` (with ``places``) and ``history`` make answers from what a run has left: figures,
summary, report and descriptor. ``planned`` makes one from a plan. ``sums`` and ``split_form`` add
up the runs of a task. ``absent`` says why there is nothing to show. ``html_file`` writes one answer
into an HTML file. The script of the pages is in the folder of ``static_files``, its source in
``ui``.
"""
