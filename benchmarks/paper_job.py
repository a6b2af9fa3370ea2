"""The papers' whole job for one model on a real stack: 15 personas × 3 tasks × 30 runs, every sentence judged.

5,400 texts and about 40,000 verdicts through the API, workers, Postgres, Valkey and the simulated provider, all on this
machine. `python -m benchmarks.paper_job --help` says what can be set.
"""

from benchmarks.whole_job import Json, parser, run

JOB: Json = {
    "name": "the paper's job, one model",
    "personas": ["big-five"],
    "tasks": ["questionnaire", "essay", "social_media_post"],
    "models": ["simulated/sim-drifting"],
    "judges": ["simulated/sim-judge"],
    "instructions": "all",
}


def main() -> None:
    """Runs the benchmark."""
    options = parser(__doc__)
    options.add_argument("--iterations", type=int, default=5, help="runs under each of the six instructions")
    given = options.parse_args()
    run(given, lambda _: JOB | {"iterations": given.iterations})


if __name__ == "__main__":
    main()
