"""Human annotations and labelling rounds."""
