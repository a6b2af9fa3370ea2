"""Which providers there are and how they are reached."""
