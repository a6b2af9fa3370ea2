"""The small errors that `make mutants` puts into the code."""

import ast
from textwrap import dedent

from tests.mutants.mutations import code_hash, functions, mutations

TEXT = dedent('''
    class Budget:
        def take(self, cost: int, spent: int = 0) -> bool:
            """Says no to more than 1."""
            log.info("asked", cost=cost + 1)
            if not self.limit or spent + cost < self.limit:
                self.spent += cost
                return True
            raise ValueError(f"too much: {cost - 1}")
''').strip()


def changes(text: str) -> list[tuple[str, str, str]]:
    [(_, function)] = functions(ast.parse(text))
    return [(found.kind, found.before, found.after) for found in mutations(function)]


def test_messages_logging_and_annotations_have_no_mutation() -> None:
    whole = "not self.limit or spent + cost < self.limit"
    assert changes(TEXT) == [
        ("constant", "0", "1"),
        ("boolean", whole, "(not self.limit and spent + cost < self.limit)"),
        ("boolean", "not self.limit", "(self.limit)"),
        ("comparison", "spent + cost < self.limit", "(spent + cost <= self.limit)"),
        ("arithmetic", "spent + cost", "(spent - cost)"),
        ("removal", "self.spent += cost", "pass"),
        ("removal", "return True", "pass"),
        ("constant", "True", "False"),
        ("removal", "raise ValueError(f'too much: {cost - 1}')", "pass"),
    ]


def test_a_mutation_changes_only_its_own_place() -> None:
    [(name, function)] = functions(ast.parse(TEXT))
    assert name == "Budget.take"
    assert mutations(function)[4].apply(TEXT) == TEXT.replace("spent + cost <", "(spent - cost) <")


def test_a_hash_ignores_documentation_and_layout_but_no_code() -> None:
    def hash_of(text: str) -> str:
        [(_, function)] = functions(ast.parse(text))
        return code_hash(function)

    documented_anew = TEXT.replace("Says no to", "Refuses").replace(
        "spent += cost", "spent  +=  cost  # taken"
    )
    assert hash_of(documented_anew) == hash_of(TEXT)
    assert hash_of(TEXT.replace("+=", "-=")) != hash_of(TEXT)
