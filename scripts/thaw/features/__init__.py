"""Features: the frozen hidden states, extracted once and read by every run."""
