"""What people say of sentences and responses: annotations and labelling rounds."""
