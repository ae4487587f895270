"""Whether the seconds of runs can be compared: on the CPU of a busy machine they are those of its other work too."""

LEAST = 0.5  # share of a run's seconds in which a processor worked for it: about 1 on idle cores, more with threads
BUSY_SECONDS = "measured on a busy machine"  # what is said of seconds wherever they stand without the sentence
COSTS_IN_FLOPS = (
    "Costs are therefore given in FLOPs, of a run and of those that it starts from, without feature extraction and the "
    "trials of a search; what is cheapest is chosen by seconds as everywhere."
)
SHORT = 5.0  # seconds below which starting and reading are most of a run


def busy_note(runs) -> list[str]:
    """Return the sentence about runs on the CPU that waited for half of their seconds or more; none without such runs.

    Args: runs as `read_runs` gives them. Runs that did not note the processor's seconds are not judged.
    """
    noted = runs[(runs["device"] == "cpu") & runs["processor_seconds"].notna() & (runs["total_seconds"] >= SHORT)]
    noted = noted.drop_duplicates("folder")
    waited = int((noted["processor_seconds"] < LEAST * noted["total_seconds"]).sum())
    if not waited:
        return []
    return [
        f"Seconds cannot be compared: in {waited} of {len(noted)} runs the processor worked for less than half of "
        "them, since the machine was busy with other work. Compare FLOPs, or measure again on an idle machine."
    ]
