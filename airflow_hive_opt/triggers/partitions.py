"""Triggers that wait for a descriptor or for partitions, outside the workers."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents import required
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    BaseTrigger,
    ObjectStoragePath,
    TriggerEvent,
    connection_of,
)
from airflow_hive_opt.provider.lake_clients import delta_tables, in_words
from airflow_hive_opt.provider.waiting import (
    PollResult,
    check_connections,
    poll_descriptor,
    poll_partitions,
)
from airflow_hive_opt.statement.lake_formats import DELTA, ICEBERG

if TYPE_CHECKING:
    from airflow_hive_opt.metastores.lakes import LakeClient
    from airflow_hive_opt.metastores.metastore import Remote
    from airflow_hive_opt.metastores.required import Required


class PollingTrigger(BaseTrigger):
    """Checks every ``poke_interval`` seconds until it succeeds or ``deadline`` (ISO 8601) passes.

    Its event is a :class:`~airflow_hive_opt.provider.waiting.PollResult` as a dictionary, or
    ``{"error": ...}``.
    """

    def __init__(self, poke_interval: float, deadline: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.poke_interval = poke_interval
        self.deadline = deadline

    @abstractmethod
    async def poll(self) -> PollResult:
        """Checks once."""

    async def close(self) -> None:
        """Runs at the end, also after errors."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event."""
        deadline = datetime.fromisoformat(self.deadline)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.close)
            while True:
                try:
                    result = await self.poll()
                except Exception as error:  # noqa: BLE001 - the task must get any error
                    yield TriggerEvent({"error": str(error)})  # type: ignore[no-untyped-call]
                    return
                self.log.info("%s", result.message)
                if result.found or datetime.now(timezone.utc) >= deadline:
                    yield TriggerEvent(asdict(result))  # type: ignore[no-untyped-call]
                    return
                await asyncio.sleep(self.poke_interval)


class PartitionDescriptorTrigger(PollingTrigger):
    """Waits for a complete descriptor at ``uri``; with ``query_digest``, of this statement."""

    def __init__(
        self, uri: str, query_digest: str | None, poke_interval: float, deadline: str
    ) -> None:
        super().__init__(poke_interval, deadline)
        self.uri = uri
        self.query_digest = query_digest

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See Airflow's ``BaseTrigger``."""
        return (
            "airflow_hive_opt.triggers.partitions.PartitionDescriptorTrigger",
            {
                "uri": self.uri,
                "query_digest": self.query_digest,
                "poke_interval": self.poke_interval,
                "deadline": self.deadline,
            },
        )

    async def poll(self) -> PollResult:
        """Reads the descriptor, in a thread."""
        return await asyncio.to_thread(poll_descriptor, self.uri, self.query_digest)


class RequiredPartitionsTrigger(PollingTrigger):
    """Waits until every partition of the list at ``uri`` exists.

    The list may be long, so the trigger reads it from storage. The list must have this
    ``query_digest``, ``columns`` and ``token``. Each check makes one metastore call for each table,
    and reads the metadata of each Iceberg or Delta table that has changed.
    """

    def __init__(
        self,
        uri: str,
        query_digest: str,
        columns: Sequence[str],
        token: str,
        metastore_conn_id: str | None,
        poke_interval: float,
        deadline: str,
        catalog_conn_id: str | None = None,
        storage_conn_id: str | None = None,
    ) -> None:
        super().__init__(poke_interval, deadline)
        self.uri = uri
        self.query_digest = query_digest
        self.columns = tuple(columns)
        self.token = token
        self.metastore_conn_id = metastore_conn_id
        self.catalog_conn_id = catalog_conn_id
        self.storage_conn_id = storage_conn_id
        self._required: Sequence[Required] | None = None
        self._metastore: Remote | None = None
        self._lakes: dict[str, LakeClient] = {}

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See Airflow's ``BaseTrigger``."""
        return (
            "airflow_hive_opt.triggers.partitions.RequiredPartitionsTrigger",
            {
                "uri": self.uri,
                "query_digest": self.query_digest,
                "columns": list(self.columns),
                "token": self.token,
                "metastore_conn_id": self.metastore_conn_id,
                "poke_interval": self.poke_interval,
                "deadline": self.deadline,
                "catalog_conn_id": self.catalog_conn_id,
                "storage_conn_id": self.storage_conn_id,
            },
        )

    async def poll(self) -> PollResult:
        """Checks the metastore and the catalog, in a thread; raises ``AirflowException``."""
        from airflow_hive_opt.metastores.lakes import CatalogError
        from airflow_hive_opt.metastores.metastore import MetastoreError

        if self._required is None:
            self._required = await self._connect(await asyncio.to_thread(self._read))
        try:
            return await asyncio.to_thread(
                poll_partitions, self._metastore, self._required, self._lakes
            )
        except MetastoreError as error:
            raise AirflowException(f"connection {self.metastore_conn_id!r}: {error}") from None
        except CatalogError as error:
            raise AirflowException(
                in_words(error, self.catalog_conn_id, self.storage_conn_id)
            ) from None

    async def _connect(self, required: Sequence[Required]) -> Sequence[Required]:
        """Makes the clients that the tables need, in threads: boto3 reads files, for example."""
        from airflow_hive_opt.hooks.hive_metastore import metastore_of
        from airflow_hive_opt.hooks.iceberg_catalog import tables_of

        check_connections(required, self.metastore_conn_id, self.catalog_conn_id)
        if self.metastore_conn_id is not None and any(not each.provider for each in required):
            connection = await connection_of(self.metastore_conn_id)
            self._metastore = await asyncio.to_thread(metastore_of, connection)
        providers = {each.provider for each in required if each.provider}
        if self.catalog_conn_id is not None and ICEBERG in providers:
            connection = await connection_of(self.catalog_conn_id)
            self._lakes[ICEBERG] = await asyncio.to_thread(tables_of, connection)
        if DELTA in providers:
            named = self.storage_conn_id
            storage = None if named is None else await connection_of(named)
            self._lakes[DELTA] = await asyncio.to_thread(delta_tables, storage)
        return required

    def _read(self) -> Sequence[Required]:
        path = ObjectStoragePath(self.uri)
        return required.read(path, self.query_digest, self.columns, self.token)

    async def close(self) -> None:
        """Closes the clients."""
        if self._metastore is not None:
            self._metastore.close()
        for client in self._lakes.values():
            await asyncio.to_thread(client.close)
