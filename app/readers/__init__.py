"""Child processes that read strangers' files."""
