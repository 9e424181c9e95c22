"""The configs of a topic of Kafka 4.3.1: name, type, the broker config that it falls back on, and default.

As DescribeConfigs answers them; ``-`` where no broker config stands behind it.
"""

from __future__ import annotations

TOPIC_CONFIGS = """
cleanup.policy LIST log.cleanup.policy delete
compression.gzip.level INT compression.gzip.level -1
compression.lz4.level INT compression.lz4.level 9
compression.type STRING compression.type producer
compression.zstd.level INT compression.zstd.level 3
delete.retention.ms LONG log.cleaner.delete.retention.ms 86400000
file.delete.delay.ms LONG log.segment.delete.delay.ms 60000
flush.messages LONG log.flush.interval.messages 9223372036854775807
flush.ms LONG log.flush.interval.ms 9223372036854775807
follower.replication.throttled.replicas LIST -
index.interval.bytes INT log.index.interval.bytes 4096
leader.replication.throttled.replicas LIST -
local.retention.bytes LONG log.local.retention.bytes -2
local.retention.ms LONG log.local.retention.ms -2
max.compaction.lag.ms LONG log.cleaner.max.compaction.lag.ms 9223372036854775807
max.message.bytes INT message.max.bytes 1048588
message.timestamp.after.max.ms LONG log.message.timestamp.after.max.ms 3600000
message.timestamp.before.max.ms LONG log.message.timestamp.before.max.ms 9223372036854775807
message.timestamp.type STRING log.message.timestamp.type CreateTime
min.cleanable.dirty.ratio DOUBLE log.cleaner.min.cleanable.ratio 0.5
min.compaction.lag.ms LONG log.cleaner.min.compaction.lag.ms 0
min.insync.replicas INT min.insync.replicas 1
preallocate BOOLEAN log.preallocate false
remote.log.copy.disable BOOLEAN - false
remote.log.delete.on.disable BOOLEAN - false
remote.storage.enable BOOLEAN - false
retention.bytes LONG log.retention.bytes -1
retention.ms LONG log.retention.ms 604800000
segment.bytes INT log.segment.bytes 1073741824
segment.index.bytes INT log.index.size.max.bytes 10485760
segment.jitter.ms LONG log.roll.jitter.ms 0
segment.ms LONG log.roll.ms 604800000
unclean.leader.election.enable BOOLEAN unclean.leader.election.enable false
"""
