"""Thaw: how much of a pretrained encoder should one thaw, and what does each choice cost?"""

__version__ = "0.9.0"
