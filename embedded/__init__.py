"""A private Postgres and Valkey, and the supervisor that runs the whole stack on a machine with only Python."""
