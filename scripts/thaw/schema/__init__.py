"""The shape of every catalogue entry and of an experiment: what a key means, its default, its limits."""
