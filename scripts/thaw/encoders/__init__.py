"""Encoders: loading, and resuming at any boundary."""
