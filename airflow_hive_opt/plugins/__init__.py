"""The provider's additions to the web server and to templates.

``hive_opt`` is the plugin, and ``pages`` its application. ``api`` answers the pages' script, from
Airflow's database (``queries``) and from storage (``stored``). ``found`` finds what a request
names. ``shell`` serves the pages, and ``access`` says who may open them. ``macros`` are for
templates.
"""
