"""`/v1/annotations` and `/v1/labelling-rounds`."""
