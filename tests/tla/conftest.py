"""How many histories of Apache's classes are held against the specification, as in tests/differential."""

from tests.differential.conftest import seed, sequences

__all__ = ["seed", "sequences"]
