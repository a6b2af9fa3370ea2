"""What results and pages of responses are read from."""
