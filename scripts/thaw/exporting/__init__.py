"""Exporting: a trained run as a folder that works without Thaw, and what is done with such a folder."""
