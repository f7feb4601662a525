# SPDX-License-Identifier: Apache-2.0
"""Other libraries' readers and writers of batches, to compare with."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python warns of itself on import.
    from kafka.record.legacy_records import LegacyRecordBatchBuilder as KafkaPythonLegacyBuilder
    from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords
    from kafka.record.memory_records import MemoryRecordsBuilder as KafkaPythonBuilder

from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as AiokafkaLegacyBuilder
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords

__all__ = [
    "AiokafkaBuilder",
    "AiokafkaLegacyBuilder",
    "AiokafkaRecords",
    "KafkaPythonBuilder",
    "KafkaPythonLegacyBuilder",
    "KafkaPythonRecords",
]
