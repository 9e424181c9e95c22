"""How long and how often partitions stood in trouble, and what makes it worse: ``kelr fleet exposure``."""
