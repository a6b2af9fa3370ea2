"""The tables of schedules and their runs, and the statements on them."""
