"""Jobs: planned, submitted, followed, controlled, removed."""
