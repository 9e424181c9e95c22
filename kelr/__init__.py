"""kelr shows, explains and repairs Kafka partitions that lost their leader (KIP-966)."""

__version__ = "0.1.0"
