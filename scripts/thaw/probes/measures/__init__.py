"""The quantities that probes report, as functions of arrays."""
