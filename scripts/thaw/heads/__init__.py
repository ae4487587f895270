"""Heads: the task-specific modules on top of an encoder, one per file."""
