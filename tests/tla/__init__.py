"""The TLA+ specification in docs/tla: checked with TLC, and held against the histories that kelr and Kafka produce."""
