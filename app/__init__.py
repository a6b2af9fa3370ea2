"""Persona Assay: measures how faithfully a language model stays in character, as a service."""

import gc

# Every look for unreachable cycles walks through all that is alive, and nearly all is freed by reference counts anyway. At
# Python's own thresholds that was 15 % of the time that the API's imports took, a third of an export's, and with the thousands
# of suspended calls of a worker 40 % of its. So it is done after 50,000 further objects, and of older ones as much more rarely.
gc.set_threshold(50_000, 20, 20)
