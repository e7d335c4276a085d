"""What the pages of a run show, without Airflow.

``models`` are the answers of the API. ``instance`` (with ``places``) and ``history`` make them from
what a run has stored: figures, summary, report and descriptor. ``sums`` and ``split_form`` add up
the runs of a task. ``absent`` says why there is nothing to show. ``html_file`` writes one answer
into an HTML file. The script of the pages is in ``static``; its source is in the folder ``ui``.
"""
