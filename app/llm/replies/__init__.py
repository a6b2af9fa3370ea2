"""What providers answer: errors, limits in headers, texts."""
