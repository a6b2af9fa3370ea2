"""A client of Persona Assay, which measures how faithfully a language model stays in character.

    from persona_assay import AssayClient

    with AssayClient() as assay:  # ASSAY_URL says where the service is, ASSAY_API_KEY who asks
        job = assay.wait(assay.submit({"personas": ["E-high"], "tasks": ["essay"], "models": ["openai/gpt-6-luna"]})["id"])
        results = assay.results(job["id"])

`AsyncAssayClient` has the same methods to await. What goes in and comes out is typed in `persona_assay.types`.
"""

from typing import TYPE_CHECKING

from persona_assay.errors import AssayError, ProblemError, ProblemField, UnreachableError

if TYPE_CHECKING:
    from persona_assay.async_client import AsyncAssayClient
    from persona_assay.client import AssayClient

__all__ = [
    "AssayClient",
    "AssayError",
    "AsyncAssayClient",
    "ProblemError",
    "ProblemField",
    "UnreachableError",
]


def __getattr__(name: str) -> object:
    """Imports a client when it is asked for: the HTTP library under it takes longer than all the rest."""
    if name == "AssayClient":
        from persona_assay.client import AssayClient  # noqa: PLC0415 - see above

        return AssayClient
    if name == "AsyncAssayClient":
        from persona_assay.async_client import AsyncAssayClient  # noqa: PLC0415 - see above

        return AsyncAssayClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
