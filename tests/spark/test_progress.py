"""The progress of a statement, in the log."""

import logging
import threading

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.spark.session.progress import progress, stages


def test_the_log_tells_the_progress_of_the_map_join(spark, caplog):
    assert stages(spark) == []
    query = "SELECT count(*) FROM range(0, 100000000000, 1, 8) WHERE hash(id, id + 1) = 7"

    def run():
        spark.sparkContext.setJobGroup("progress", "long", interruptOnCancel=True)
        try:
            spark.sql(query).collect()
        except (PySparkException, Py4JJavaError) as error:  # cancelled
            failures.append(error)

    failures = []
    task = threading.Thread(target=run)
    told = threading.Event()

    class Listener(logging.Handler):
        def emit(self, record):
            told.set()

    logger = logging.getLogger("airflow_hive_opt.spark.session.progress")
    logger.addHandler(listener := Listener())
    logger.setLevel(logging.INFO)
    with progress(spark, "map join", seconds=0.1):
        task.start()
        assert told.wait(60)
    spark.sparkContext.cancelJobGroup("progress")
    task.join(60)
    logger.removeHandler(listener)
    assert failures
    assert "map join: stage " in caplog.text
    assert " of 8 tasks, " in caplog.text
