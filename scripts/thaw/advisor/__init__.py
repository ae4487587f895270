"""The advisor: which strategy to train next, how far, and when to stop, by what past tasks and the probes say."""
