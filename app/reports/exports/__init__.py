"""Flat exports: CSV, JSON Lines and Parquet."""
