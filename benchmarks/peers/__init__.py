"""What people use instead of Thaw, each by its own recommended recipe and in one process. Nothing here imports thaw."""
