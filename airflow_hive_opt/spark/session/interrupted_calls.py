"""Lets a task's timeout end a call of the JVM at once, and the calls after it too.

Airflow's ``execution_timeout`` raises an exception wherever the task is, mostly in a call that
waits for Spark's answer. Py4J would send the next call of the thread through the same connection,
where it waits for the answer of the interrupted one: PySpark and the end of the session call the
JVM again, so the statement would run to its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def leave_interrupted_calls(session: SparkSession) -> None:
    """From now on, an interrupted call's connection is closed, and the next call opens another.

    It holds for all sessions of this process's Spark, and may be called for each of them.
    """
    client: Any = session.sparkContext._gateway._gateway_client  # type: ignore[union-attr]

    def send_or_leave(*arguments: Any, **named: Any) -> Any:
        try:
            return type(client).send_command(client, *arguments, **named)
        except Exception:
            raise
        except BaseException:
            connection = client.get_thread_connection()
            if connection is not None:
                connection.close()
            raise

    if hasattr(client, "get_thread_connection"):  # else no call uses the connection again
        client.send_command = send_or_leave
