"""Corpora: where they come from, how their files are read, checked and carved."""
