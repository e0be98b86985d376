"""The build backend: maturin, with the command `innkeeper` in the wheel.

maturin builds the native module. The command is the same program as everywhere else, built by cargo with
the same profile, so that both share every dependency that cargo has compiled.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_ROOT = Path(__file__).resolve().parents[2]
_PROFILE = "dist"


def _build_command() -> None:
    """Builds the command, and puts it where maturin takes scripts from."""
    suffix = ".exe" if sys.platform == "win32" else ""
    target = Path(os.environ.get("CARGO_TARGET_DIR", _ROOT / "target"))
    build = ["cargo", "build", "--locked", "--profile", _PROFILE, "--package", "innkeeper-cli"]
    subprocess.run(build, cwd=_ROOT, check=True)
    scripts = _ROOT / "target/python/innkeeper.data/scripts"
    scripts.mkdir(parents=True, exist_ok=True)
    shutil.copy2(target / _PROFILE / f"innkeeper{suffix}", scripts / f"innkeeper{suffix}")


def _without_command(build: Any, *arguments: Any) -> Any:
    """Runs a step of maturin that needs the folder of the scripts, but not the command."""
    (_ROOT / "target/python/innkeeper.data/scripts").mkdir(parents=True, exist_ok=True)
    return build(*arguments)


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds the wheel with the native module and the command."""
    _build_command()
    name: str = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds an editable wheel with the native module and the command."""
    _build_command()
    name: str = maturin.build_editable(wheel_directory, config_settings, metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """Builds the source distribution, also in a checkout that has built nothing."""
    name: str = _without_command(maturin.build_sdist, sdist_directory, config_settings)
    return name


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: dict[str, Any] | None = None
) -> str:
    """Writes the metadata without a build."""
    prepare = maturin.prepare_metadata_for_build_wheel
    name: str = _without_command(prepare, metadata_directory, config_settings)
    return name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel
