"""The command `thaw`: `main` reads the name of a sub-command, `<name>_command` does what it says."""
