"""Reads what other tools wrote: texts with their personas, prompts and models; characters; questions. Pure: bytes in, records out."""
