"""Outputs as typed values: a table or figure is one JSON file, from which every format is written."""
