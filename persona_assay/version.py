"""The version of both distributions, and of the service; it stands nowhere else."""

VERSION = "0.1.0"
