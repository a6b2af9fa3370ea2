"""How sure the figures are: intervals, paired comparisons, agreement and correlation. Pure functions on arrays."""
