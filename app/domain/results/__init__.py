"""A job's results, comparisons and gates."""
