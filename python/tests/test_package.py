"""What a user installs: a module of one file for all Pythons, without dependencies, with types."""

import json
import subprocess
import sys
from pathlib import Path

import innkeeper
from innkeeper import _core

ROOT = Path(__file__).parents[2]

# What an import of the package loads beyond the standard library.
LOADED = """
import json, sys
before = set(sys.modules)
import innkeeper
loaded = {name.split(".")[0] for name in set(sys.modules) - before}
print(json.dumps(sorted(name for name in loaded if name not in sys.stdlib_module_names)))
"""


def test_the_native_module_is_one_file_for_all_pythons() -> None:
    """Proves: N6, TR1.2."""
    assert sys.version_info >= (3, 10)
    assert _core.__file__ is not None and _core.__file__.endswith(".abi3.so")
    assert innkeeper.__version__ == _core.__version__


def test_an_import_loads_nothing_but_the_standard_library() -> None:
    """Proves: TR1.7, G31."""
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == ["innkeeper"]
    project = (ROOT / "pyproject.toml").read_text()
    assert "\ndependencies = []\n" in project


def test_every_public_name_is_listed_and_documented() -> None:
    for name in innkeeper.__all__:
        public = getattr(innkeeper, name)
        assert name.startswith("__") or public.__doc__, f"{name} has no documentation"
