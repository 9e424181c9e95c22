"""A new release of Kafka beside the one before it: `make follow KAFKA=x.y.z` (docs/kafka-versions)."""
