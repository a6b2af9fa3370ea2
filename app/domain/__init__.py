"""What is measured and how: pure values and functions, without I/O."""
