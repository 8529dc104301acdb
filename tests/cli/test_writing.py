"""A file is there as a whole or not at all."""

import pytest

from sash.cli.writing import write_whole


def test_what_is_written_is_there_at_once(tmp_path):
    write_whole(tmp_path / "note", lambda part: part.write_text("new"))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"note": "new"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_breaks_off_leaves_what_was_there_and_nothing_else(tmp_path, error):
    (tmp_path / "note").write_text("old")

    def broken(part):
        part.write_text("ne")
        raise error

    with pytest.raises((KeyboardInterrupt, OSError)):
        write_whole(tmp_path / "note", broken)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"note": "old"}
