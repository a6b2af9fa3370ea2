"""Results in the form in which pages and figures show them."""
