"""The catalogue of errors: every entry comes about."""
