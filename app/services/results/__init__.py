"""Results: computed, finalized, read, compared, reported."""
