"""The JSON API of the pages.

``routes`` checks permissions and answers. ``queries`` reads Airflow's database: XComs, task
instances and rendered fields. ``history`` and ``instance`` make the answers of ``models`` from it,
``instance`` also from the descriptor and the report in storage.
"""
