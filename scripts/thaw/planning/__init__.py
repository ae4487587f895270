"""The plan: experiments -> runs -> jobs, each with its spec and its files. Neither torch nor pandas is imported."""
