"""Kafka's record batches (message format v2): headers, checksums, compression, records, control records."""
