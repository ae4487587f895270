"""Keys of a run's spec by which it leaves more files."""

EXTRA_FILES = ("keep", "gradients")  # no number depends on them
