"""Further names of entries: what an entry was called before, in experiments and in entries that name others."""

# key of an experiment or an entry -> the block whose ids it has; `only` has those of several
NAMING = {
    **dict.fromkeys("strategies strategy after teacher rates_from adapted reference start among".split(), "strategies"),
    **dict.fromkeys("tasks task probe_tasks".split(), "tasks"),
    **dict.fromkeys("encoders encoder optional stand_in".split(), "encoders"),
    **{"heads": "heads", "head": "heads", "subsets": "subsets", "subset": "subsets"},
    **{"probes": "probes", "outputs": "outputs", "only": "only"},
}
NAMING_BLOCKS = {"strategies", "outputs", "findings", "advice"}  # blocks whose entries name others by these keys


def with_ids(values, aliases: dict[str, dict[str, str]], block: str = ""):
    """Return plain values in which each alias is replaced by its id.

    Args: values as YAML has them; by block {alias: id}; the block that the key above them names.
    """
    known = aliases.get(block, {})
    if isinstance(values, str):
        return known.get(values, values)
    if isinstance(values, list):
        return [with_ids(value, aliases, block) for value in values]
    if isinstance(values, dict):
        return {known.get(key, key): with_ids(value, aliases, NAMING.get(key, block)) for key, value in values.items()}
    return values
