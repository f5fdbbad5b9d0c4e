"""Extract the part of the contracts that Nimbus uses: ``python tools/contract/cut.py FOLDER_WITH_THE_CONTRACTS``.

The names of all members of a module or class are kept, so that the checker can distinguish a name that does not exist
from one that was not extracted. Run it again when code uses a part of Kit that no code used before.
"""

from __future__ import annotations

import json
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.contract.curobo import as_contract  # noqa: E402
from tools.contract.names import FILES, LAUNCH_OPTIONS, Contract  # noqa: E402
from tools.contract.planted import PLANTED, RIGHT  # noqa: E402
from tools.contract.walk import check, touches_kit  # noqa: E402

PACKAGE = ROOT / "exts/nimbus.datagen"
SOURCES = ("isaacsim-6.0.1.json", "omniverse-kit.json", "curobo-v2.json")


def kit_files() -> list[Path]:
    """Return all files of Nimbus that import a part of Kit."""
    rooms = (PACKAGE / "nimbus/datagen", ROOT / "runner", ROOT / "skills")
    return [path for room in rooms for path in sorted(room.rglob("*.py")) if touches_kit(path)]


def dependencies() -> list[str]:
    """Return the extensions on which Nimbus's extension depends."""
    return list(_manifest()["dependencies"])


def started_with() -> list[str]:
    """Return the extensions and settings with which the tests inside Kit are started."""
    words = _manifest()["test"][1]
    return [*words["dependencies"], *(word.removeprefix("--").partition("=")[0] for word in words["args"])]


def _manifest() -> dict[str, Any]:
    return tomllib.loads((PACKAGE / "config/extension.toml").read_text())


def main(folder: Path) -> None:
    """Write the cut files."""
    with tempfile.TemporaryDirectory() as place:
        sources = [_source(folder / name, Path(place)) for name in SOURCES]
        contract = Contract.load(sources)
        check(kit_files(), contract, package=PACKAGE)
        # The checker's own tests need the names that they use.
        for number, code in enumerate((RIGHT, *PLANTED.values())):
            path = Path(place, f"planted_{number}.py")
            path.write_text(code)
            check([path], contract, package=Path(place))
        asked = contract.asked | set(dependencies()) | set(started_with())
        for path, source in zip(FILES, sources, strict=True):
            data = json.loads(source.read_text())
            path.write_text(_text(_cut(data, asked)))


def _source(path: Path, place: Path) -> Path:
    """Return a contract file in Kit's format; cuRobo's is converted."""
    data = json.loads(path.read_text())
    if "definitions" not in data:
        return path
    converted = place / path.name
    converted.write_text(json.dumps(as_contract(data)))
    return converted


def _cut(data: dict[str, Any], asked: set[str]) -> dict[str, Any]:
    modules = {name: entry for name, entry in data["modules"].items() if name in asked}
    extensions = {entry.get("ext") for entry in modules.values()} | asked
    consts = data.get("consts", {})
    kept = {
        "product": data["product"],
        "version": data["version"],
        "modules": {name: _without(entry, "incidental", "source") for name, entry in modules.items()},
        "defs": {key: _without(entry, "source") for key, entry in data["defs"].items() if key in asked},
        "settings": {key: None for key in data["settings"] if key in asked},
    }
    if "extensions" in data:
        kept["extensions"] = {
            name: {"deprecated": entry["deprecated"]}
            for name, entry in data["extensions"].items()
            if name in extensions
        }
        kept["known_extensions"] = {name: value for name, value in data["known_extensions"].items() if name in asked}
        kept["experiences"] = data["experiences"]
        kept["consts"] = {
            key: value for key, value in consts.items() if key.endswith("sensor:ANNOTATOR") or key == LAUNCH_OPTIONS
        }
    else:
        kept["annotator_names"] = data["annotator_names"]
    return kept


def _text(data: dict[str, Any]) -> str:
    """Return JSON with one definition per line, so that changes are easy to review."""
    parts = []
    for key, value in data.items():
        if isinstance(value, dict) and value:
            entries = (f"{json.dumps(name)}: {json.dumps(value[name], sort_keys=True)}" for name in sorted(value))
            parts.append(f"{json.dumps(key)}: {{\n" + ",\n".join(entries) + "\n}")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _without(entry: Any, *names: str) -> Any:
    """Return an entry without the fields about its origin; members may have any name."""
    if not isinstance(entry, dict):
        return entry
    kept = {key: value for key, value in entry.items() if key not in names}
    if "members" in kept:
        kept["members"] = {name: _without(member, *names) for name, member in kept["members"].items()}
    return kept


if __name__ == "__main__":
    main(Path(sys.argv[1]))
