"""For notebooks: an answer from texts and labels, and stored states for a loop of one's own."""
