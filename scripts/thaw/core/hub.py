"""Whether the Hugging Face Hub answers; its own libraries try for half a minute before they say that it does not."""

import os
import ssl
import urllib.error
import urllib.request

OFFLINE = "HF_HUB_OFFLINE"  # the variable by which its libraries ask it for nothing
WAIT = 5  # seconds for its answer
NEW_REVISION = "run `thaw pin` to pin the newest, or correct `revision:`"  # where one is gone


def silence() -> str:
    """Return why the Hub does not answer; empty where it does."""
    if is_off():
        return f"{OFFLINE} is set"
    address = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=WAIT).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        # An error of HTTP is an answer, and its libraries may know of certificates that this call does not.
        answers = isinstance(error, urllib.error.HTTPError) or isinstance(reason, ssl.SSLError)
        return "" if answers else f"{address}: {reason}"
    return ""


def is_off() -> bool:
    """Return whether the user keeps everything from asking the Hub."""
    return os.environ.get(OFFLINE, "").upper() in ("1", "ON", "YES", "TRUE")
