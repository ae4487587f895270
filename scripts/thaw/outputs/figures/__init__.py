"""Figures, one kind a module, in one style."""
