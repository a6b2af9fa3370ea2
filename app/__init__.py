"""Persona Assay: measures how faithfully a language model stays in character, as a service."""
