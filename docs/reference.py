"""Make the site of the documents: python docs/reference.py build/docs.

Copies docs/ there, writes the pages of the reference from cards, docstrings and the help of the commands, and a
mkdocs.yml that shows all of it. Links that leave docs/ become plain words, since a site has no source tree beside it.
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sash
from sash.algebra.aggregate import Aggregate
from sash.cli.aggregates import BUILT_IN
from sash.cli.app import app
from sash.frames.spec import Spec, Together
from sash.frames.window import Window
from sash.windows import policies

DOCS = Path(__file__).parent
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
SECTIONS = (("Tutorial", "tutorial"), ("How to", "how-to"), ("Explanation", "explanation"), ("Reference", "reference"),
            ("Decisions", "decisions"))  # fmt: skip


def main(target: Path) -> None:
    """Write everything that mkdocs needs below `target`."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(DOCS, target / "docs", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for path in (target / "docs").rglob("*.md"):
        path.write_text(within(path.read_text(encoding="utf-8"), DOCS / path.relative_to(target / "docs")), "utf-8")
    pages = {"aggregates": aggregates(), "windows": windows(), "algorithms": algorithms(), "policies": of_policies(),
             "commands": commands(), "errors": errors()}  # fmt: skip
    (target / "docs" / "reference").mkdir()
    for name, text in pages.items():
        (target / "docs" / "reference" / f"{name}.md").write_text(text, encoding="utf-8")
    (target / "mkdocs.yml").write_text(settings(target / "docs"), encoding="utf-8")


def within(text: str, path: Path) -> str:
    """A document without links to what is not in docs/."""

    def kept(link: re.Match[str]) -> str:
        place = (path.parent / link[2]).resolve()
        is_inside = place.is_relative_to(DOCS.resolve()) and place.is_file() and place.suffix in (".md", ".svg")
        return link[0] if "://" in link[2] or is_inside else link[1]

    return LINK.sub(kept, text)


def settings(docs: Path) -> str:
    """The mkdocs.yml: every page, in the order of the sections."""
    lines = ["site_name: Sash", f"site_dir: {docs.parents[1].absolute() / 'site'}", "use_directory_urls: false",
             "theme: {name: mkdocs, color_mode: auto}", "markdown_extensions: [tables, fenced_code]", "nav:",
             "  - Start: README.md"]  # fmt: skip
    for title, folder in SECTIONS:
        found = sorted((docs / folder).glob("**/*.md"), key=lambda path: (path.parent.name != folder, path))
        if found:
            lines += [f"  - {title}:", *(f"      - {path.relative_to(docs).as_posix()}" for path in found)]
    return "\n".join([*lines, "  - Glossary: glossary.md", ""])


def aggregates() -> str:
    """Every built-in aggregate, from its card and docstring."""
    parts = ['# Aggregates\n\nAs in `sash.mean("x")`; in a pipeline file, `"mean(x)"`.\n']
    for name in BUILT_IN:
        function = getattr(sash, name)
        parts.append(entry(f"sash.{name}", function) + _card(function))
    parts += [entry(f"sash.{name}", getattr(sash, name)) for name in ("aggregate", "agg", "check_laws")]
    return "\n".join(parts)


def _card(function: Any) -> str:
    try:
        made = function()
    except (TypeError, sash.SashError, ModuleNotFoundError):
        return ""
    if not isinstance(made, Aggregate):
        return ""
    card = made.card
    flags = [name for name in ("invertible", "commutative", "selective") if getattr(card, name)]
    return f"Answers {card.answer}. A partial holds {card.state}; {', '.join(flags) or 'no flags'}; {card.cost}.\n"


def windows() -> str:
    """Windows, specs and what can be called on them."""
    parts = ["# Windows and specs\n", entry("sash.window", sash.window)]
    for kind, name in ((Window, "window"), (Spec, "spec"), (Together, "together")):
        parts.append(f"\n## Methods of a {name}\n")
        parts += [entry(f".{each}", getattr(kind, each)) for each in vars(kind) if not each.startswith("_")
                  and inspect.isfunction(getattr(kind, each))]  # fmt: skip
    parts += ["\n## Without a table\n", *(entry(f"sash.{name}", getattr(sash, name)) for name in
              ("slide", "aggregator", "together", "open_store", "algorithms"))]  # fmt: skip
    return "\n".join(parts)


def algorithms() -> str:
    """The cards of the algorithms."""
    lines = ["# Algorithms\n", "Calls of combine for a round of insert, evict and query; n rows in the window.\n",
             "| name | algorithm | order | asks of combine | amortised | at worst | partials | bulk | paper |",
             "|" + "---|" * 9]  # fmt: skip
    for card in sash.algorithms():
        costs = (card.amortised, card.worst, card.space, card.bulk)
        cells = (f"`{card.name}`", card.title, card.order, card.needs, *costs, card.paper)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def of_policies() -> str:
    """Ready-made slide policies."""
    made = [(name, each) for name, each in vars(policies).items() if inspect.isfunction(each)
            and each.__module__ == policies.__name__ and not name.startswith("_")]  # fmt: skip
    return "\n".join(["# Slide policies\n", *(entry(f"sash.policies.{name}", each) for name, each in made)])


def commands() -> str:
    """The help of every command."""
    parts = [f"# Commands\n\n{app.info.epilog}\n"]
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__
        parts.append(f"## sash {name}\n\n{inspect.getdoc(command.callback)}\n\n{_options(command.callback)}\n")
        parts.append(f"{command.epilog}\n")
    return "\n".join(parts)


def _options(callback: Any) -> str:
    lines = ["| what | meaning |", "|---|---|"]
    for name, parameter in inspect.signature(callback, eval_str=True).parameters.items():
        info = parameter.annotation.__metadata__[0]
        is_option = type(info).__name__ == "OptionInfo"
        shown = f"--{name.replace('_', '-')}" if is_option else (info.metavar or name.upper())
        declared = [each for each in getattr(info, "param_decls", None) or () if each.startswith("--")]
        lines.append(f"| `{(declared or [shown])[0]}` | {info.help} |")
    return "\n".join(lines)


def errors() -> str:
    """The tree of errors, as its module says it."""
    return f"# Errors\n\n```text\n{inspect.getdoc(sys.modules['sash.errors'])}\n```\n"


def entry(name: str, thing: Any) -> str:
    """A heading with the signature, and the docstring."""
    signature = str(inspect.signature(thing)).replace("self, ", "").replace("(self)", "()")
    return f"### `{name}`\n\n```python\n{name}{_plain(signature)}\n```\n\n{rendered(inspect.getdoc(thing) or '')}\n\n"


def _plain(signature: str) -> str:
    """A signature whose annotations are no texts."""
    plain = re.sub(r": '([^']*)'", r": \1", re.sub(r" -> .*$", "", signature))
    return plain.replace("collections.abc.", "").replace("typing.", "")


def rendered(docstring: str) -> str:
    """A docstring as Markdown: examples fenced, parameters as a list."""
    return "\n\n".join(_block(block) for block in _blocks(docstring))


def _blocks(docstring: str) -> Iterable[str]:
    return re.split(r"\n\s*\n", docstring)


def _block(block: str) -> str:
    if block.startswith(">>>"):
        return f"```pycon\n{block}\n```"
    if block.startswith("    "):
        return f"```text\n{inspect.cleandoc(block)}\n```"
    said = re.match(r"(Parameters|Returns)\n-+\n", block)
    if said is None:
        return block
    items = re.sub(r"\n    +", " ", block[said.end() :])
    return f"**{said[1]}**\n\n" + "\n".join("- `{}`: {}".format(*line.split(" ", 1)) for line in items.splitlines())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/docs"))
