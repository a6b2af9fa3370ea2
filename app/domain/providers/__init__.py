"""Models, their parameters and calls, without any provider's vocabulary."""
