"""``LocalTaskOperator``: keys, metastore, descriptor; the first half of the split form."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_hive_opt.operators.statement import StagesName, StatementOperator
from airflow_hive_opt.provider.airflow_compat import AirflowFailException
from airflow_hive_opt.runtime.arguments import whole_number

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.spark.application.job import Job


class LocalTaskOperator(StatementOperator):
    """Finds the partitions that a star join needs, and writes them down; joins nothing.

    The XCom that it returns is for :class:`~airflow_hive_opt.operators.map_join.MapJoinOperator`:
    ``uri`` and ``digest`` of the partition descriptor, with ``kept`` and ``total`` partitions,
    ``reason``, decisions, seconds and metastore work. The gates are checked here, before a cluster
    is paid for.

    :param max_keys: with more distinct keys than this from one small table, its join prunes
        nothing.
    :param max_key_bytes: the same for the bytes of all keys of one small table; none may have more
        than 16 KiB.
    :param dry: only look: the map join that reads this descriptor is skipped. May be a template
        that gives ``true`` or ``false``, so that a trigger form can ask. (templated)

    Further arguments: :class:`~airflow_hive_opt.operators.statement.StatementOperator`.
    """

    stages: ClassVar[StagesName] = "local task"
    template_fields: Sequence[str] = (*StatementOperator.template_fields, "dry")

    def __init__(
        self,
        *,
        sql: str,
        max_keys: int = 100_000,
        max_key_bytes: int = 16 << 20,
        dry: bool | str = False,
        **kwargs: Any,
    ) -> None:
        whole_number("max_keys", max_keys, 1)
        whole_number("max_key_bytes", max_key_bytes, 1)
        super().__init__(sql=sql, **kwargs)
        self.max_keys = max_keys
        self.max_key_bytes = max_key_bytes
        self.dry = dry

    def execute(self, context: Context) -> Any:
        """Writes the descriptor and returns its summary."""
        dry = self.is_dry()
        return {**super().execute(context), "dry": dry}

    def job(self, context: Context) -> Job:
        """See :meth:`StatementOperator.job`."""
        return dataclasses.replace(
            super().job(context), max_keys=self.max_keys, max_key_bytes=self.max_key_bytes
        )

    def is_dry(self) -> bool:
        """What ``dry`` says, rendered; raises ``AirflowFailException``."""
        said = str(self.dry).strip().lower()
        if said not in ("true", "false"):
            raise AirflowFailException(f"dry must be true or false, not {self.dry!r}")
        return said == "true"
