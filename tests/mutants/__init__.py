"""A mutation check: small changes of the code that some test should notice, drawn once and kept in tests/golden/mutants.json."""
