"""The report: one HTML page and one LaTeX article with the same content."""
