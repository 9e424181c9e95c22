"""Carrying plans out on a cluster: fences, requests, a write-ahead journal, an audit log, and what to look at after."""
