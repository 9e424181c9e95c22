"""DescribeTopicPartitions, CreateTopics and DeleteTopics."""

from __future__ import annotations

from kafka.protocol.admin.topics import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

from kelr.lab.simulated.api import Api
from kelr.lab.simulated.handlers.describe_partitions import describe

APIS: tuple[Api, ...] = (Api(DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, (0, 0), describe),)
