"""DescribeTopicPartitions, CreateTopics and DeleteTopics."""

from __future__ import annotations

from kelr.lab.simulated.api import Api, Nodes
from kelr.lab.simulated.handlers import create_topics, delete_topics
from kelr.lab.simulated.handlers.describe_partitions import describe
from kelr.lab.simulated.handlers.forwarding import forwarded
from kelr.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

APIS: tuple[Api, ...] = (
    Api(DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, (0, 0), describe),
    Api(
        CreateTopicsRequest,
        CreateTopicsResponse,
        (2, 7),
        forwarded(create_topics.create_topics, create_topics.timed_out),
        Nodes.ALL,
    ),
    Api(
        DeleteTopicsRequest,
        DeleteTopicsResponse,
        (1, 6),
        forwarded(delete_topics.delete_topics, delete_topics.timed_out),
        Nodes.ALL,
    ),
)
