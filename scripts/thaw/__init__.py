"""Thaw: how much of a pretrained encoder should one thaw, and what does each choice cost?"""
