"""Count of the names of Kit and Isaac Sim that are used and checked: ``python tools/contract/count.py [--json FILE]``.

Prints how many names Nimbus uses, how many the contract describes, how many are unknown or deprecated, and how many
planted mistakes the checker finds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.contract.cut import PACKAGE, dependencies, kit_files  # noqa: E402
from tools.contract.names import Contract  # noqa: E402
from tools.contract.planted import PLANTED  # noqa: E402
from tools.contract.walk import check  # noqa: E402


def count() -> dict[str, int]:
    """Return the counts by name."""
    contract = Contract.load()
    files = kit_files()
    found, used = check(files, contract, package=PACKAGE)
    said = [finding.what for finding in found]
    stale = [name for name in dependencies() if contract.extensions.get(name, {}).get("deprecated")]
    missing = [name for name in dependencies() if not contract.has_extension(name)]
    unchecked = sum("unchecked" in what for what in said)
    deprecated = sum("deprecated" in what for what in said)
    return {
        "files": len(files),
        "names used": used,
        "names checked": used - unchecked,
        "unknown": len(said) - unchecked - deprecated + len(missing),
        "deprecated": deprecated + len(stale),
        "mistakes planted": len(PLANTED),
        "planted mistakes found": sum(_is_found(contract, wrong) for wrong in PLANTED),
    }


def _is_found(contract: Contract, wrong: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "planted.py")
        path.write_text(PLANTED[wrong] + "\n")
        return any(wrong in finding.what for finding in check([path], contract, package=Path(folder))[0])


def main() -> int:
    """Print the counts; return 1 if a name is unknown, deprecated or unchecked, or a planted mistake was not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    figures = count()
    for name, value in figures.items():
        sys.stdout.write(f"{name:24} {value}\n")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n")
    wrong = figures["unknown"] + figures["deprecated"] + figures["names used"] - figures["names checked"]
    return 1 if wrong or figures["planted mistakes found"] < figures["mistakes planted"] else 0


if __name__ == "__main__":
    sys.exit(main())
