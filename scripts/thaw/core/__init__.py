"""What everything reads: files that are written whole or not at all, errors, digests, plug-ins, versions, device."""
