"""Kept questions and personas."""
