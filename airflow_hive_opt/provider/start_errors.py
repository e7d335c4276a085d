"""Turns errors of Spark's start into exceptions that tell Airflow whether to retry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_hive_opt.provider.airflow_compat import AirflowException, AirflowFailException


@contextmanager
def start_errors(where: str = "") -> Iterator[None]:
    """Raises ``AirflowFailException`` for a wrong setting, else ``AirflowException``.

    ``where`` is the beginning of the ``AirflowException``'s message.
    """
    from airflow_hive_opt.spark.session.java import SparkStartError, WrongSettingError

    try:
        yield
    except WrongSettingError as error:
        raise AirflowFailException(str(error)) from None
    except SparkStartError as error:
        raise AirflowException(f"{where}{error}") from None
