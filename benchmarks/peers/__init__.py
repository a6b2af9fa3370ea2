"""The same judged calls, made by what users would pick and by this service."""
