"""Files of responses that arrive in parts."""
