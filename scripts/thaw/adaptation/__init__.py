"""How an encoder is adapted: what trains, at which rates, by which schedule, with which inserted modules."""
