"""What people say of sentences and responses."""
