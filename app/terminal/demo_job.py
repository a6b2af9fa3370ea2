"""The job of `assay demo`."""

from persona_assay.types import JobIn

DEMO_JOB: JobIn = {
    "name": "demo: a faithful and a drifting model",
    "personas": ["E-high", "E-neutral", "E-low", "A-high", "A-neutral", "A-low"],
    "tasks": ["questionnaire", "essay", "social_media_post"],
    "models": ["simulated/sim-faithful", "simulated/sim-drifting"],
    "judges": ["simulated/sim-judge"],
    "instructions": "all",
    "iterations": 2,
    "metadata": {"purpose": "demo"},
}
"""Two simulated models, six personas, all three atomic tasks, twelve runs a cell: 36 cells, 1,728 responses, and
some 14,000 verdicts, one for each sentence."""
