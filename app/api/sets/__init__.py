"""`/v1/persona-sets` and `/v1/question-sets`."""
