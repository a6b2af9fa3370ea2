"""Persona Assay: measures how faithfully a language model stays in character, as a service."""

import gc

# Every look for unreachable cycles walks through all that is alive, and nearly all is freed by reference counts anyway. At
# Python's own thresholds that was 15 % of the time that the API's imports took, a third of an export's, and with the thousands
# of suspended calls of a worker 40 % of its. So all that is alive is walked through after 20 million further objects only; the looks at young ones in
# between take about a millisecond: one at a million, as there were before, took a tenth of a second, and at 5,000 they took 7 % of the time
# of a judged call.
gc.set_threshold(20_000, 4, 250)
