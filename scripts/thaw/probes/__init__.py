"""Probes: what can be read off each layer of an encoder, one kind a module."""
