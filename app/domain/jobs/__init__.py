"""A job: its request, its specification, its plan, its states."""
