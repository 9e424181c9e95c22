"""Decisions by the rules of the whole KIP-966: what its Unclean Recovery Manager would do."""
