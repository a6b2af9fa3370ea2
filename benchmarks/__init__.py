"""Every performance claim, as a command."""
