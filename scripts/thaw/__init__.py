"""Thaw: how much of a pretrained encoder should one thaw, and what does each choice cost?"""

__version__ = "0.9.0"


def __getattr__(name: str):
    if name == "advise":  # found on first use: what a step imports must not lead to all of Thaw
        from thaw.api.advised import advise

        return advise
    if name == "resume":
        from thaw.api.resumed import resume

        return resume
    raise AttributeError(f"module 'thaw' has no attribute '{name}'")
