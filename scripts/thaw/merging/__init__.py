"""Merging: branches of several finished runs on one trunk, as a folder that serves, is verified and is measured."""
