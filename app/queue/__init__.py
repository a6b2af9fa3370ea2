"""How workers are woken: task names, payloads (ids only), and the sender."""
