"""`/v1/schedules`."""
