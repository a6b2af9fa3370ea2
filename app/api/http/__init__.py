"""What all routes share: authentication, bodies, errors, limits, headers."""
