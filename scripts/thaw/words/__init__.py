"""Words in print: what says typed results in sentences. Nothing here is in the digest of a step that computes."""
