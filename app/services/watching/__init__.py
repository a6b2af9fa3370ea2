"""Schedules: made and changed by clients, run by the sweeper."""
