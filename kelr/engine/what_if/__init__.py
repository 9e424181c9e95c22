"""What would become of a snapshot's partitions if this and that happened."""
