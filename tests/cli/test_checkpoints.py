"""A checkpoint goes on with what it was made for, and with nothing else."""

import pytest

import sash
from sash.cli.checkpoints import require_same
from sash.cli.exits import CommandError

HOUR = sash.window(by="k", order_by="t").range("1 hour").agg(n=sash.count())
DAY = sash.window(by="k", order_by="t").range("1 day").agg(n=sash.count())


def test_the_same_spec_goes_on(tmp_path):
    place = str(tmp_path / "checkpoint")
    assert not require_same(place, HOUR, "rows")
    assert require_same(place, HOUR, "rows")


def test_another_spec_is_refused_and_both_are_shown(tmp_path):
    place = str(tmp_path / "checkpoint")
    require_same(place, HOUR, "rows")
    with pytest.raises(CommandError, match=r"another spec(.|\n)*1 hour(.|\n)*1 day"):
        require_same(place, DAY, "rows")
    with pytest.raises(CommandError, match="another source"):
        require_same(place, HOUR, "other rows")
    assert require_same(place, HOUR, "rows")


def test_a_directory_with_something_else_in_it_is_refused(tmp_path):
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(CommandError, match="is not empty"):
        require_same(str(tmp_path), HOUR, "rows")


def test_checkpoints_elsewhere_are_left_to_spark():
    assert not require_same("s3://bucket/checkpoint", HOUR, "rows")
