"""On which line of a TOML file a key stands."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from sash.cli.lines import line_of, lines_of

TEXT = '''title = "x"
[a]
one = 1
"two words" = 2

[a.b]
text = """
[not.a.table]
one = 2
"""
dotted.key = 3
[[list]]
inner = { x = 1, y = 2 }
'''


def test_keys_are_found_under_their_tables():
    found = lines_of(TEXT)
    wanted = {("title",): 1, ("a",): 2, ("a", "one"): 3, ("a", "two words"): 4, ("a", "b"): 6, ("a", "b", "text"): 7,
              ("a", "b", "dotted", "key"): 11, ("list",): 12, ("list", "inner"): 13}  # fmt: skip
    assert found == wanted


def test_what_is_within_a_line_is_found_on_it():
    assert line_of(lines_of(TEXT), ("list", "inner", "x")) == 13
    assert line_of(lines_of(TEXT), ("nowhere",)) is None


NAMES = st.text("abcxyz_-", min_size=1, max_size=5)


@given(st.dictionaries(NAMES, st.dictionaries(NAMES, st.integers(), min_size=1, max_size=4), max_size=5))
def test_every_key_of_plain_tables_has_the_line_it_was_written_on(tables):
    lines, wanted = [], {}
    for table, keys in tables.items():
        lines.append(f"[{table}]")
        wanted[table,] = len(lines)
        for key, value in keys.items():
            lines.append(f"{key} = {value}")
            wanted[table, key] = len(lines)
    text = "\n".join(lines)
    assert tomllib.loads(text) == tables
    assert lines_of(text) == wanted
