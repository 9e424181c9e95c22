"""What to do next, and what is at stake."""
