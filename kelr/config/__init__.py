"""Configuration of kelr itself: named clusters, their secrets, and where each setting came from.

`contexts_file` reads ``contexts.toml``, `edit` writes it, `login` makes client properties of a context.
"""
