"""What the plan knows of published papers: their printed tables, and which runs answer their claims."""
