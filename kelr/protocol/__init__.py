"""Kafka's protocol: the schemas of its messages (`schemas`), one codec (`codec`, `messages`), and the words that go
with it: error codes, KIP-966's dialects, the records of the metadata log.

Nothing here opens a socket: connections are `kelr.sources.live`'s.
"""
