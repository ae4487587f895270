"""Tables, and their text as CSV, LaTeX, Markdown and HTML."""
