"""Replay of the metadata log: from records to the cluster as the controller had it, and to what happened to it.

Pure: records come in as values (`kelr.replay.records`), in the order of the log, and `MetadataImage` applies them one
after the other. What each did comes out as values (`kelr.replay.records`), from which histories and recovery quorums
are made. Reading bytes is the business of `kelr.sources.metadata_log`.
"""
