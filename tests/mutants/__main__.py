"""Runs the tests on each mutant of tests/golden/mutants.json: ``make mutants``."""

import argparse
import ast
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.mutants.mutations import KINDS, Function, Mutation, code_hash, functions, mutations
from tests.mutants.reach import reaching_tests

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "golden" / "mutants.json"
BUILD = ROOT / "build" / "mutants"
PACKAGES = ("app/domain", "app/services", "app/limits", "app/api")
SEED = 31
WANTED = 100
GRACE = 30.0  # for fixtures to stop their servers after SIGINT

Mutant = dict[str, Any]


def functions_in(root: Path) -> Iterator[tuple[str, str, Function]]:
    """Yield each function of the checked packages with its file and its qualified name."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            for name, function in functions(ast.parse(path.read_text("utf-8"))):
                yield path.relative_to(root).as_posix(), name, function


def draw(listed: list[Mutant], other: Path) -> list[Mutant]:
    """Top a list up to 100 mutants, equivalents not counted: one in a function, each also in the `other` tree."""
    mutants = [*listed]
    taken = {mutant["hash"] for mutant in mutants}
    common = {code_hash(function) for _, _, function in functions_in(other)}
    candidates: defaultdict[str, list[Mutant]] = defaultdict(list)
    for file, name, function in functions_in(ROOT):
        if (hashed := code_hash(function)) in common - taken:
            for index, mutation in enumerate(mutations(function)):
                place = {"file": file, "function": name, "hash": hashed, "line": mutation.node.lineno}
                change = {"index": index, "before": mutation.before, "after": mutation.after}
                candidates[mutation.kind].append(place | change)
    for kind in sorted(candidates):
        random.Random(SEED).shuffle(candidates[kind])
    for kind in cycle(KINDS):
        if sum("equivalent" not in mutant for mutant in mutants) == WANTED:
            return mutants
        drawn = next(each for each in candidates[kind] if each["hash"] not in taken)
        taken.add(drawn["hash"])
        mutants.append({"id": len(mutants) + 1, **drawn})
    raise AssertionError


def places(root: Path, mutants: list[Mutant]) -> dict[int, tuple[str, Function, Mutation]]:
    """Find mutants in a tree by their functions' hashes; those whose function changed are left out."""
    by_hash = {code_hash(function): (file, function) for file, _, function in functions_in(root)}
    found = {}
    for mutant in mutants:
        if mutant["hash"] in by_hash:
            file, function = by_hash[mutant["hash"]]
            mutation = mutations(function)[mutant["index"]]
            assert (mutation.before, mutation.after) == (mutant["before"], mutant["after"]), mutant
            found[mutant["id"]] = (file, function, mutation)
    return found


def clone(name: str, commit: str) -> Path:
    """Check a commit out in a clone with its own environment, so that no mutation reaches this tree."""
    tree = BUILD / name
    if not tree.exists():
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", ROOT, tree], check=True)
    git = ["git", "-C", str(tree)]
    subprocess.run([*git, "fetch", "--quiet", "origin", commit], check=True)
    subprocess.run([*git, "checkout", "--quiet", "--force", "--detach", commit], check=True)
    subprocess.run(["make", "--silent", "-C", str(tree), "setup"], check=True)
    return tree


def outcome(
    tree: Path, place: tuple[str, Function, Mutation] | None, tests: list[str], seconds: float
) -> str:
    """Run tests on a mutant: `killed by <test>`, `survived`, `timed out`, `not reached`, or `gone` with its function."""
    if place is None or not tests:
        return "not reached" if place else "gone"
    file, _, mutation = place
    text = (tree / file).read_text("utf-8")
    (tree / file).write_text(mutation.apply(text), "utf-8")
    deadline = time.monotonic() + seconds
    try:
        while tests:
            code, output = _pytest(tree, tests, deadline - time.monotonic())
            if not code:
                return "survived" if code == 0 else "timed out"
            failures = re.findall(r"^(?:FAILED|ERROR) ([^\s\[]+)", output, re.MULTILINE)
            if not failures:
                assert "Error" in output, output
                return "killed by import"
            # A failure counts if it repeats; unit tests depend on no clock.
            if failures[0].startswith("tests/unit") or _pytest(tree, failures[:1], seconds)[0]:
                return f"killed by {failures[0]}"
            tests = [test for test in tests if test != failures[0]]
        return "survived"
    finally:
        (tree / file).write_text(text, "utf-8")


def _pytest(tree: Path, tests: list[str], seconds: float) -> tuple[int | None, str]:
    """Run tests in the given order up to the first failure; no exit status means that the time was over."""
    arguments = tree / "build" / "chosen-tests"
    arguments.parent.mkdir(exist_ok=True)
    arguments.write_text("\n".join(tests), "utf-8")
    running = subprocess.Popen(
        [tree / ".venv/bin/python", "-m", "pytest", "-q", "-x", "--tb=line", f"@{arguments}"],
        cwd=tree,
        env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = running.communicate(timeout=max(seconds, 1.0))
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGINT)
    else:
        return running.returncode, output
    try:
        running.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired:  # servers end with the process that started them
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    return None, ""


def run(listed: list[Mutant], options: argparse.Namespace) -> dict[int, str]:
    """Return the outcomes of the chosen mutants; without chosen tests, those that reach a mutant are run, nearest first."""
    commit = subprocess.check_output(["git", "rev-parse", options.commit], cwd=ROOT, text=True).strip()
    mutants = [mutant for mutant in listed if "equivalent" not in mutant]
    mutants = [mutant for mutant in mutants if not options.only or mutant["id"] in options.only]
    cache = BUILD / f"reach-{commit}-{len(listed)}.json"
    if not options.tests and not cache.exists():
        tree = clone("0", commit)
        files = {mutant["id"]: mutant["file"] for mutant in listed}
        found = reaching_tests(tree, places(tree, listed), files, options.processes)
        cache.write_text(json.dumps(found), "utf-8")
    reaching = {} if options.tests else json.loads(cache.read_text("utf-8"))
    trees: SimpleQueue[Path] = SimpleQueue()
    for number in range(1, options.processes + 1):
        trees.put(tree := clone(str(number), commit))
    found_places = places(tree, mutants)

    def judge(mutant: Mutant) -> str:
        tree = trees.get()
        try:
            chosen = options.tests or reaching.get(str(mutant["id"]), [])
            found = outcome(tree, found_places.get(mutant["id"]), chosen, options.seconds)
        finally:
            trees.put(tree)
        sys.stdout.write(f"{mutant['id']:4} {mutant['file']}:{mutant['line']} {found}\n")
        sys.stdout.flush()
        return found

    with ThreadPoolExecutor(options.processes) as pool:
        return dict(zip((mutant["id"] for mutant in mutants), pool.map(judge, mutants), strict=True))


def main() -> int:
    """Draw mutants or run them; fail if one survives that the list says was killed."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument(
        "--draw", type=Path, metavar="TREE", help="top the list up with functions TREE has too"
    )
    parser.add_argument("--commit", default="HEAD", help="the commit to mutate, with its tests")
    parser.add_argument("--only", type=int, nargs="+", metavar="ID", help="these mutants")
    parser.add_argument(
        "--tests", nargs="+", default=[], help="these tests instead of all that reach a mutant"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=90.0, help="limit for a mutant")
    parser.add_argument("--record", action="store_true", help="write the outcomes into the list")
    options = parser.parse_args()
    # A shell's background job ignores it, and so would its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    listed: list[Mutant] = json.loads(LIST.read_text("utf-8")) if LIST.exists() else []
    outcomes: dict[int, str] = {}
    if options.draw:
        listed = draw(listed, options.draw)
    else:
        outcomes = run(listed, options)
    present = {number: found for number, found in outcomes.items() if found != "gone"}
    killed = {number for number, found in present.items() if found.startswith("killed")}
    before = {each["id"] for each in listed if each.get("outcome", "").startswith("killed")}
    if options.draw or options.record:
        listed = [
            each | ({"outcome": outcomes[each["id"]]} if each["id"] in outcomes else {}) for each in listed
        ]
        lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in listed)
        LIST.write_text(f"[\n{lines}\n]\n", "utf-8")
    lost = sorted(before & present.keys() - killed)
    gone = sorted(outcomes.keys() - present.keys())
    sys.stdout.write(
        f"{len(killed)} of {len(present)} killed; no longer killed: {lost or 'none'};"
        f" not applied, as their functions changed: {gone or 'none'}\n"
    )
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main())
