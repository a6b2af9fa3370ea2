"""Jobs, their budgets, preparations and progress."""
