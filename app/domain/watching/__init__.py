"""Schedules that run a job again, and whether their figures have drifted."""
