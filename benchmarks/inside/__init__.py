"""Measurements inside the engine, each in a process of its own so that the harness never loads torch."""
