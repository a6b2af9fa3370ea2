"""Results, figures, comparisons and gates."""
