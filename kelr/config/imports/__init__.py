"""Contexts out of what other tools keep: Java client properties, kafkactl, rpk and kcl."""
