"""Outputs: tables, figures and the report."""
