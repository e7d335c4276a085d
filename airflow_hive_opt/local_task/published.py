"""Writes the local task's result for the stages and sensors that follow it."""

from __future__ import annotations

import logging

from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.report import unpruned
from airflow_hive_opt.documents.required_keys import FoundKeys, keep_keys
from airflow_hive_opt.documents.storage import StoragePath

log = logging.getLogger(__name__)


def publish(descriptor: Descriptor, keys: FoundKeys | None, path: StoragePath) -> None:
    """Writes the descriptor to ``path`` and the keys next to it, and logs what is not pruned.

    Raises ``DescriptorError``; keys that can't be written cost only a sensor.
    """
    descriptors.write(descriptor, path)
    log.info("descriptor written to %s", path)
    if keys is not None:
        keep_keys(keys, descriptor.query_digest, descriptor.digest, path)
    for line in unpruned(descriptor):
        log.info("%s", line)
