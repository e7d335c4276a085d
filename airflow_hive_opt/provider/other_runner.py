"""A local task's result for a runner that does not know this package: XComs, and files beside it.

The XComs are named after their contents, and those with ``_uri`` at their end have the URI of the
file with the same content. A long content is only in its file.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents.format import MOST_BYTES
from airflow_hive_opt.documents.required_keys import FoundKeys, read_keys
from airflow_hive_opt.documents.storage import (
    DescriptorError,
    NothingThereError,
    read_bounded,
    write_atomically,
)
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    ObjectStoragePath,
)
from airflow_hive_opt.provider.submission import plain_uri
from airflow_hive_opt.restriction.other_runner import handed_over, script

if TYPE_CHECKING:
    from airflow_hive_opt.documents.storage import StoragePath

log = logging.getLogger(__name__)

SQL, GUARDED, PARTITIONS = "restricted_sql", "restricted_sql_guarded", "partitions"
_ENDINGS = {SQL: ".sql", GUARDED: ".guarded.sql", PARTITIONS: ".partitions.json"}
LONGEST = 32 << 10
"""Characters of a content that becomes an XCom, which Airflow stores in its database."""


def hand_over(instance: Any, sql: str, summary: Mapping[str, Any], is_on_glue: bool) -> None:
    """Writes the files and pushes the XComs of a local task with this ``summary``.

    ``sql`` is its statement. Raises ``AirflowException``, and ``AirflowFailException`` for a
    statement that a script would cut.
    """
    path = ObjectStoragePath(summary["uri"])
    try:
        found = descriptors.read(path, summary["query_digest"], summary["digest"])
        handed = handed_over(found, sql, _keys(path, summary), is_on_glue)
        if "\n;\n" in handed.sql:
            raise AirflowFailException(
                "the statement can't be handed over: it has a line with nothing but a semicolon, "
                "at which its script would be cut. Write that semicolon in one line with other text"
            )
        for key, value, text in (
            (SQL, handed.sql, handed.sql),
            (GUARDED, handed.guarded, script(handed.guarded)),
            (PARTITIONS, list(handed.partitions), json.dumps(handed.partitions)),
        ):
            file = _beside(path, key)
            write_atomically(text.encode(errors="surrogatepass"), file)
            instance.xcom_push(key=f"{key}_uri", value=plain_uri(file))
            if len(text) <= LONGEST:
                instance.xcom_push(key=key, value=value)
            else:
                log.info("%s has %d characters, so it is only in %s", key, len(text), file)
    except DescriptorError as error:
        raise AirflowException(f"the statement can't be handed over: {error}") from None


def restricted_sql(local_task: Any, guarded: bool = False) -> str:
    """The restricted statement of a local task's output, from its file.

    With ``guarded``, a script of all statements, each with a semicolon at its end. Raises
    ``AirflowFailException`` if there is no such file.
    """
    if not isinstance(local_task, Mapping) or not local_task.get("uri"):
        raise AirflowFailException(
            "macros.hive_opt.restricted_sql needs the output of a LocalTaskOperator, such as "
            f"ti.xcom_pull('local_task'), not {local_task!r}"
        )
    file = _beside(ObjectStoragePath(local_task["uri"]), GUARDED if guarded else SQL)
    try:
        data = read_bounded(file, MOST_BYTES, "the restricted statement")
    except NothingThereError as error:
        raise AirflowFailException(
            f"{error}: set for_other_runner=True at the local task"
        ) from None
    except DescriptorError as error:
        raise AirflowException(str(error)) from None
    return data.decode(errors="surrogatepass")


def _beside(path: StoragePath, key: str) -> StoragePath:
    return path.with_name(f"{path.stem}{_ENDINGS[key]}")


def _keys(path: StoragePath, summary: Mapping[str, Any]) -> FoundKeys | None:
    """The keys that the local task has left; ``None`` if it has left none."""
    try:
        return read_keys(path, summary["query_digest"], summary["digest"])
    except DescriptorError as error:
        log.info("the guard compares only the number of keys: %s", error)
        return None
