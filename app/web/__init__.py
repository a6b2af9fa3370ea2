"""The pages that a person looks at: templates and static files."""
