"""Contexts and configuration."""
