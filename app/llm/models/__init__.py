"""What is known of models by their names, and what they cost."""
