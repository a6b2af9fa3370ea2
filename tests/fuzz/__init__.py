"""Judges' replies and instrument files made up at random, with what is right known beforehand; `make fuzz` tries a million."""
