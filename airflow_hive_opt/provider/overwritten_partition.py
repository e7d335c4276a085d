"""The partition that an earlier statement on a Spark Connect server was to overwrite."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_hive_opt.provider.airflow_compat import AirflowException, AirflowFailException
from airflow_hive_opt.provider.without_stack import without_stack

if TYPE_CHECKING:
    from airflow_hive_opt.documents.remote_operation import RemoteOperation

log = logging.getLogger(__name__)


def empty_overwritten(found: RemoteOperation, url: str, conf: Mapping[str, str]) -> None:
    """Empties the partition that the statement has overwritten if its query has returned no row.

    The statement has succeeded. ``conf`` are the settings of a new session. Raises
    ``AirflowException`` if the server at ``url`` fails, ``AirflowFailException`` if that is another
    one or the partition can't be emptied, and ``SparkStartError``.
    """
    if found.before is None:
        return
    has_succeeded = f"the statement of try {found.attempt} of this task has succeeded"
    from pyspark.errors import PySparkException

    from airflow_hive_opt.documents.error_text import in_words
    from airflow_hive_opt.spark.map_join.dynamic_overwrite import NotEmptied, empty_if_unwritten
    from airflow_hive_opt.spark.session.connect import remote_session, server_of

    no_answer = (
        f"{has_succeeded}, but nothing shows whether it has returned any row. Without one, "
        f"{found.before.folder} must be emptied"
    )
    if server_of(url) != found.server:
        message = (
            f"{no_answer}, by {found.server}, but the connection names another server now. Clear "
            "the task to run the statement again"
        )
        raise without_stack(AirflowFailException(message))
    with remote_session(url, conf) as session:
        try:
            empty_if_unwritten(session, found.before)
        except NotEmptied as error:
            raise without_stack(AirflowFailException(f"{has_succeeded}: {error}")) from None
        except PySparkException as error:
            message = f"{no_answer}: {in_words(error)}. The next try looks again"
            raise without_stack(AirflowException(message)) from None


def has_overwritten(found: RemoteOperation, url: str, conf: Mapping[str, str]) -> bool:
    """Whether the operation has overwritten its partition; for one whose end nobody knows.

    The server at ``url`` looks, in a new session with the settings of ``conf``. Raises
    ``AirflowException`` if it fails, and ``SparkStartError``.
    """
    if found.before is None:
        return False
    from pyspark.errors import PySparkException

    from airflow_hive_opt.documents.error_text import in_words
    from airflow_hive_opt.spark.map_join import dynamic_overwrite
    from airflow_hive_opt.spark.session.connect import remote_session

    folder = found.before.folder
    with remote_session(url, conf) as session:
        try:
            is_there = dynamic_overwrite.has_overwritten(session, found.before)
        except PySparkException as error:
            message = (
                f"nothing shows whether the statement of try {found.attempt} of this task has "
                f"overwritten {folder}: {in_words(error)}. The next try looks again"
            )
            raise without_stack(AirflowException(message)) from None
    if is_there:
        log.info("the files of the statement of try %d are in %s", found.attempt, folder)
    return is_there
