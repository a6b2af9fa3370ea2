"""The papers' whole job on a real stack: 15 personas × 3 tasks × 30 runs, every sentence judged.

For each model 5,400 texts and about 43,000 verdicts through the API, workers, Postgres, Valkey and the simulated provider,
all on this machine; the paper has 12 models. `python -m benchmarks.paper_job --help` says what can be set.
"""

from benchmarks.whole_job import Json, parser, run

JOB: Json = {
    "name": "the paper's job",
    "personas": ["big-five"],
    "tasks": ["questionnaire", "essay", "social_media_post"],
    "judges": ["simulated/sim-judge"],
    "instructions": "all",
}


def main() -> None:
    """Runs the benchmark."""
    options = parser(__doc__)
    options.add_argument("--iterations", type=int, default=5, help="runs under each of the six instructions")
    options.add_argument("--models", type=int, default=1, help="models under test; the paper has 12")
    given = options.parse_args()
    models = [
        {"model": "simulated/sim-drifting", "label": f"model {number}"}
        for number in range(1, given.models + 1)
    ]
    run(given, lambda _: JOB | {"iterations": given.iterations, "models": models})


if __name__ == "__main__":
    main()
