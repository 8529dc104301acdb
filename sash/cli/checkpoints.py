"""What a checkpoint was made for, written beside it: another spec must not go on from it.

State is kept under shards and pages that follow from the spec; a query that goes on from the state of another one would
give wrong answers, or none. Checkpoints elsewhere than in the file system are not looked at.
"""

from __future__ import annotations

import json
from pathlib import Path

from sash.cli.exits import CommandError
from sash.cli.writing import write_whole

NAME = "sash.json"


def require_same(checkpoint: str, spec: object, source: str) -> bool:
    """Whether a checkpoint is there already; if it is of another spec or source, that is an error."""
    place = local(checkpoint)
    if place is None:
        return False
    noted, wanted = place / NAME, {"spec": repr(spec), "source": source}
    if noted.exists():
        found = json.loads(noted.read_text(encoding="utf-8"))
        for name, value in wanted.items():
            if found.get(name) != value:
                raise CommandError(
                    f"the checkpoint {place} belongs to another {name}.\n"
                    f"  found   {found.get(name)}\n  wanted  {value}\n"
                    "Use another checkpoint for it, or remove this one to begin anew; the answers already written stay"
                )
        return True
    if place.exists() and any(place.iterdir()):
        raise CommandError(f"{place} is not empty and no checkpoint of this command's; choose another directory")
    place.mkdir(parents=True, exist_ok=True)
    write_whole(noted, lambda part: part.write_text(json.dumps(wanted, indent=1), encoding="utf-8"))
    return False


def local(path: str) -> Path | None:
    """A path of the file system; None if it is elsewhere."""
    if path.startswith("file://"):
        return Path(path.removeprefix("file://"))
    return None if "://" in path else Path(path)
