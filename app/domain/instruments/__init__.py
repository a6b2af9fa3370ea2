"""What is measured with: dimensions, personas, tasks, prompts and the rules by which texts are read."""
