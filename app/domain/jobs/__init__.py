"""A job: its draft, its specification, its plan, its states."""
