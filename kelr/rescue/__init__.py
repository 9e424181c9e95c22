"""Saving the records that an election would truncate, and producing them again."""
