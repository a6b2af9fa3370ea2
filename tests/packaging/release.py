"""`make release`: what a release consists of, the same bytes each time for the same commit.

python -m tests.packaging.release build/release
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path

from persona_assay.version import VERSION
from tests.supply_chain import bill_of_materials

ROOT = Path(__file__).parents[2]
PROJECTS = (ROOT / "packages" / "client", ROOT)
IMAGE = (
    "Dockerfile",
    ".dockerignore",
    "docker-bake.hcl",
    "docker-compose.yml",
    "requirements-bootstrap.lock",
    "requirements-service.lock",
    *("app", "persona_assay", "workers", "migrations", "embedded", "simulator", "generators"),
    "docs/reference/openapi.json",
)
"""What the image is built from, for which architectures, and Compose's file, which runs it."""


def release(into: Path) -> None:
    """Makes a release of the commit that is checked out.

    Raises:
        subprocess.CalledProcessError: A distribution cannot be built.
    """
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    moment = _git("log", "-1", "--format=%ct").strip()
    for project in PROJECTS:
        subprocess.run(
            [sys.executable, "-P", "-m", "hatchling", "build", "-d", str(into.resolve())],
            cwd=project,
            env=os.environ | {"SOURCE_DATE_EPOCH": moment},
            check=True,
            capture_output=True,
        )
    _pack_image(into / f"persona-assay-image-{VERSION}.tar", int(moment))
    (into / "sbom.json").write_text(json.dumps(bill_of_materials(), indent=2) + "\n", "utf-8")
    (into / "NOTES.md").write_text(notes((ROOT / "CHANGELOG.md").read_text("utf-8"), VERSION), "utf-8")
    sums = [f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(into.iterdir())]
    (into / "SHA256SUMS").write_text("".join(sums), "utf-8")


def notes(changelog: str, version: str) -> str:
    """What the changelog says of a version; of one that it does not know yet, what is unreleased.

    Raises:
        ValueError: Neither has a section.
    """
    sections = {part.partition("]")[0]: part for part in changelog.split("\n## [")[1:]}
    section = sections.get(version) or sections.get("Unreleased")
    if section is None:
        raise ValueError(f"CHANGELOG.md has no section for {version}")
    return f"# Persona Assay {version}\n{section.partition(chr(10))[2].rstrip()}\n"


def _pack_image(path: Path, moment: int) -> None:
    """Packs the files of the image as they are checked out, in a fixed order and without what differs by machine."""
    names = sorted(_git("ls-files", "-z", "--", *IMAGE).rstrip("\0").split("\0"))
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            content = (ROOT / name).read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), moment
            archive.addfile(entry, BytesIO(content))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Makes a release, unless what it would consist of is not the commit."""
    if changed := _git("status", "--porcelain"):
        raise SystemExit(f"commit first, as a release is that of a commit:\n{changed}")
    release(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
