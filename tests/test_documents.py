"""What the documents say is run: examples, tables, links, commands, and the examples in docstrings."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
import sys
import tomllib
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import sash

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "changes/*.md", "sash/**/*.md", "examples/*.md", "bench/*.md")
    for path in ROOT.glob(pattern)
)
MODULES = sorted(module.name for module in pkgutil.walk_packages(sash.__path__, "sash."))
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS

FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
COMMAND = re.compile(r"\bmake ([a-z][a-z-]*)")
TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def read(path):
    return path.read_text(encoding="utf-8")


def run_examples(test):
    """Run one doctest and fail with all that went wrong in it."""
    said = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=said.append, clear_globs=False)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if FENCE.search(read(path))], ids=name_of)
def test_the_python_of_a_document_runs_and_prints_what_it_says(path):
    space = {"__name__": "document"}
    for number, snippet in enumerate(FENCE.findall(read(path))):
        label = f"{name_of(path)}, snippet {number}"
        if ">>>" in snippet:
            test = doctest.DocTestParser().get_doctest(snippet, {}, label, str(path), 0)
            test.globs = space  # not a copy: a snippet may use what an earlier one made
            run_examples(test)
        else:
            exec(compile(snippet, label, "exec"), space)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_hold(name):
    if name.startswith("sash.spark"):
        pytest.importorskip("pyspark")
    module = importlib.import_module(name)
    for test in doctest.DocTestFinder().find(module, name):
        test.globs.update(sash=sash, np=np)
        run_examples(test)


def test_the_documents_have_examples():
    assert FENCE.search(read(ROOT / "README.md"))
    assert any(doctest.DocTestFinder().find(importlib.import_module("sash.engine.aggregator")))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_link_within_the_tree_leads_somewhere(path):
    links = [link for link in LINK.findall(read(path)) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_command_a_document_gives_is_a_target_of_the_makefile(path):
    code = re.findall(r"`[^`]+`|^    .*$", read(path), re.MULTILINE)
    wanted = {target for span in code for target in COMMAND.findall(span)}
    assert wanted <= set(TARGET.findall(read(ROOT / "Makefile")))


def test_the_table_of_algorithms_is_the_catalogue():
    assert table_of_algorithms() in read(ROOT / "README.md"), "the README should have:\n" + table_of_algorithms()


def table_of_algorithms():
    lines = [
        "| name | algorithm | order | asks of combine | a round, amortised | a round, at worst | partials |",
        "|---" * 7 + "|",
    ]
    for card in sash.algorithms():
        title = f"{card.title}; windows of a fixed length" if card.fixed else card.title
        costs = f"{card.amortised} | {card.worst} | {card.space}"
        lines.append(f"| `{card.name}` | {title} | {card.order} | {card.needs} | {costs} |")
    return "\n".join(lines)


PAGES = ROOT / "docs" / "explanation" / "algorithms"


@pytest.mark.parametrize("card", sash.algorithms(), ids=lambda card: card.name)
def test_every_algorithm_has_a_page_with_its_costs_and_its_drawing(card):
    listed = re.search(rf"^\| `{card.name}` \|.*\]\(([^)]+)\) \|$", read(PAGES / "README.md"), re.MULTILINE)
    page = read(PAGES / listed[1])
    assert f"| `{card.name}` | {card.needs} | {card.amortised} | {card.worst} | {card.space} |" in page
    assert re.search(rf"!\[.+\]\((algorithms/)?{card.name}\.svg\)", page)


def test_the_drawings_are_of_what_the_algorithms_do():
    spec = importlib.util.spec_from_file_location("drawings", ROOT / "docs" / "drawings.py")
    drawings = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = drawings  # dataclasses look for the module of their class
    spec.loader.exec_module(drawings)
    drawn = drawings.drawings()
    assert set(drawn) == {card.name for card in sash.algorithms()}
    old = [name for name, picture in drawn.items() if read(PAGES / f"{name}.svg") != picture]
    assert old == [], "python docs/drawings.py draws them anew"


def test_every_dependency_is_pinned():
    project = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    pinned = {line.split("==")[0] for line in read(ROOT / "constraints.txt").splitlines() if "==" in line}
    assert {re.match(r"[\w-]+", requirement)[0] for requirement in wanted} <= pinned
