"""Versioned data: dimensions, personas, prompts, refusal and sentence rules, with one typed loader."""
