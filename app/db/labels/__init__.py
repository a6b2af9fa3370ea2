"""Annotations and labelling rounds."""
