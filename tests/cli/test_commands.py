"""The other commands, and how errors end them."""

import subprocess
import sys

import pytest

import sash as library
from sash.cli.exits import FAILED, INTERRUPTED, MISSING, code_of, message_of, of_spark

COMMANDS = ["demo", "run", "explain", "algorithms", "check", "bench", "report"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(sash, name):
    code, printed, _ = sash(name, "--help")
    assert code == 0
    assert f"Example: sash {name}" in printed


def test_help_lists_all_commands_and_the_exit_codes(sash):
    _, printed, _ = sash("--help")
    assert all(f"  {name} " in printed for name in COMMANDS)
    assert "Example: sash demo" in printed
    assert "Exit codes:" in printed


def test_the_version_is_told(sash):
    assert sash("--version")[1].strip() == f"sash {library.__version__}"


def test_an_unknown_command_is_wrong_usage(sash):
    assert sash("frobnicate")[0] == 2


def test_algorithms_are_the_cards(sash):
    code, printed, _ = sash("algorithms")
    assert code == 0
    assert all(card.name in printed for card in library.algorithms())


def test_algorithms_can_be_chosen_by_order(sash):
    printed = sash("algorithms", "--order", "any")[1]
    assert "fiba" in printed
    assert "daba" not in printed
    assert sash("algorithms", "--order", "none")[0] == 1


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "checked_aggregates.py").write_text(
        "import sash\n"
        "@sash.aggregate(state='f8')\n"
        "class Largest:\n"
        "    identity = float('-inf')\n"
        "    def lift(x): return x\n"
        "    def combine(older, newer): return max(older, newer)\n"
        "@sash.aggregate(state='f8')\n"
        "class Wrong:\n"
        "    identity = 0.0\n"
        "    def lift(x): return x\n"
        "    def combine(older, newer): return (older + newer) / 2\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_check_finds_that_laws_are_kept(sash, own):
    code, printed, told = sash("check", "checked_aggregates:Largest", "--samples", "1,2.5,-3")
    assert code == 0, told
    assert "keeps its laws" in printed


def test_check_shows_rows_that_break_a_law(sash, own):
    code, printed, _ = sash("check", "checked_aggregates:Wrong")
    assert (code, "associativity is broken" in printed) == (1, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["checked_aggregates:Lrgest"], 1, "Did you mean 'Largest'?"),
        (["checked_aggregates"], 1, "is not of the form module:name"),
        (["nowhere:Largest"], 1, "there is no module 'nowhere'"),
        (["checked_aggregates:Largest", "--samples", "1,open('x')"], 2, "cannot be read"),
    ],
)
def test_check_tells_what_it_cannot_find(sash, own, words, code, said):
    found, _, told = sash("check", *words)
    assert (found, said in told) == (code, True), told


def test_report_wants_something_to_report(sash, tmp_path):
    code, _, told = sash("report", tmp_path / "none")
    assert (code, "there is nothing at" in told) == (2, True)


def test_bench_compares_its_answers(sash):
    code, printed, told = sash("bench", "--rows", "2000")
    assert code == 0, told
    assert "yes" in printed
    assert "NO" not in printed


class FromJava(Exception):
    """As PySpark raises it: the causes are not in its text."""

    _stackTrace = "org.apache.spark.SparkException: x\nCaused by: java.io.IOException: No space left on device\n"  # noqa: N815 - its name


@pytest.mark.parametrize("error", [OSError(28, "No space left on device", "/x"), FromJava("[STREAM_FAILED] y")])
def test_a_full_disk_is_told_in_a_sentence(error):
    assert message_of(error).startswith("the disk is full")


def test_of_a_stream_that_failed_the_failure_is_told():
    text = "[STREAM_FAILED] Query [id = 5fd, runId = e0f] terminated with exception: [NO_TABLE] There is no table t."
    assert of_spark(text) == "[NO_TABLE] There is no table t."


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), INTERRUPTED),
        (ModuleNotFoundError("pyspark", name="pyspark"), MISSING),
        (library.UnsupportedError("Spark needs Java 17 or later: none was found"), MISSING),
        (library.DataError("a column is too short"), FAILED),
        (ValueError("x"), FAILED),
    ],
)
def test_errors_end_commands_with_their_code(error, code):
    assert code_of(error) == code


def test_a_missing_package_is_told_with_what_to_install():
    assert "pip install 'sash[spark]'" in message_of(ModuleNotFoundError("pyspark", name="pyspark"))


def test_of_a_report_of_sparks_the_innermost_error_is_told():
    text = (
        "[STREAM_FAILED] Query terminated with exception: [PYTHON_EXCEPTION] An exception was thrown:\n"
        "Traceback (most recent call last):\n"
        '  File "shard.py", line 1, in take\n'
        "sash.errors.DataError: row 3 of key 'Grove' is late, and late='raise'\n"
        "\tat org.apache.spark.Something(Something.scala:1)\n"
    )
    assert of_spark(text) == "row 3 of key 'Grove' is late, and late='raise'"
    assert of_spark("Job aborted\nCaused by: java.io.IOException: Disk quota exceeded\n") == (
        "IOException: Disk quota exceeded"
    )


def test_without_typer_the_command_says_what_to_install():
    code = (
        "import sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('typer', 'rich'):\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Blocker())\n"
        "import sash.cli\n"
        "sash.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == MISSING
    assert "pip install 'sash[cli]'" in done.stderr
