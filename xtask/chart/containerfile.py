"""Checks deploy/Containerfile without building it."""

import json
import re
import shlex
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

from release import ROOT

FILE = ROOT / "deploy/Containerfile"
# The most seconds of one program.
LIMIT = 60


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a file with their arguments, without comments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split(None, 1)[0].upper(), line.split(None, 1)[1]) for line in joined.splitlines() if line.strip()]


def stages(parsed: list[tuple[str, str]]) -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Return the stages by name: the image or stage below, and the instructions."""
    found: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    defaults = dict(value.split("=", 1) for name, value in parsed if name == "ARG" and "=" in value)
    current = None
    for name, value in parsed:
        if name == "FROM":
            base, stage = re.fullmatch(r"(\S+) AS (\S+)", value).groups()
            base = re.sub(r"\$\{(\w+)\}", lambda match: defaults[match[1]], base)
            current = found[stage] = (base, [])
        elif current:
            current[1].append((name, value))
    return found


def ignored(path: str, patterns: list[str]) -> bool:
    """Whether the build cannot see a path of the root: the last pattern that matches decides."""
    result = False
    for pattern in patterns:
        if pattern.lstrip("!") in ("*", path.split("/")[0]):
            result = not pattern.startswith("!")
    return result


def problems(program: Path, config: Path, environment: dict, user: int, hadolint: Path) -> list[str]:
    """Return what is wrong; `config` and `environment` are those of a rendered replica."""
    found: list[str] = []

    def require(condition: bool, text: str) -> None:
        if not condition:
            found.append(f"deploy/Containerfile: {text}")

    lint = subprocess.run([hadolint, FILE], capture_output=True, text=True, timeout=LIMIT)
    require(lint.returncode == 0, f"hadolint: {lint.stdout}{lint.stderr}")
    all_stages = stages(instructions(FILE.read_text()))
    last = list(all_stages)[-1]
    require(last == "gateway", f"the last stage is `{last}`")
    if not {"build", "base", "runners", "gateway"} <= set(all_stages):
        return [*found, f"deploy/Containerfile: the stages are {list(all_stages)}"]

    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    for stage, (base, lines) in all_stages.items():
        has_tag = base in all_stages or re.search(r":[^/:]+$", base) and not base.endswith(":latest")
        require(bool(has_tag), f"`{stage}` is based on `{base}`, which has no fixed tag")
        for name, value in lines:
            if name == "COPY" and not value.startswith("--from="):
                for source in value.split()[:-1]:
                    require((ROOT / source).exists(), f"`COPY {source}`: the source does not exist")
                    require(not ignored(source, patterns), f"`COPY {source}`: .dockerignore hides the source")
            if name in ("ENV", "ARG"):
                is_secret = re.search(r"(TOKEN|PASSWORD|SECRET|_KEY)\w*=", value)
                require(not is_secret, f"`{name} {value}` is a secret in a layer")

    base, lines = all_stages["build"]
    require(f":{workspace['rust-version']}." in base, f"`{base}` is not Rust {workspace['rust-version']}")
    (build,) = [value for name, value in lines if name == "RUN"]
    cargo = shlex.split(build[build.index("cargo build") :].split("&&")[0])
    require("--locked" in cargo, "cargo builds without --locked")
    binaries = [cargo[at + 1] for at, word in enumerate(cargo) if word == "--bin"]
    copied = [word.rpartition("/")[2] for word in build.split() if word.startswith("target/dist/")]
    require(binaries == copied, f"cargo builds {binaries}, the stage copies {copied}")
    for binary in binaries:
        require((program.parent / binary).is_file(), f"the build has no program `{binary}`")
    sources = [word for name, value in lines if name == "COPY" for word in value.split()[:-1]]
    require(not (problem := workspace_problem(sources, cargo)), f"the copied files are no workspace: {problem}")

    _, runtime = all_stages["base"]
    settings = {name: value for name, value in runtime if name not in ("RUN", "COPY", "ARG")}
    require(settings["STOPSIGNAL"] == "SIGTERM", "another STOPSIGNAL than SIGTERM")
    require(settings["LABEL"].count("org.opencontainers.image.") >= 4, "labels are missing")
    require(f"VERSION={workspace['version']}" in [value for _, value in runtime], "VERSION is not the workspace's")
    for stage in ("base", "runners", "gateway"):
        users = [value for name, value in all_stages[stage][1] if name == "USER"]
        require(stage == "gateway" or users[-1:] == [f"{user}:{user}"], f"`{stage}` ends with the user {users[-1:]}")
    outputs = [value.split() for name, value in runtime if name == "COPY" and value.startswith("--from=build")]
    require(all(paths[1] == f"/out/{binaries[0]}" for paths in outputs), f"copies {outputs} of the build")
    entry, command = json.loads(settings["ENTRYPOINT"]), json.loads(settings["CMD"])
    require([paths[2] for paths in outputs] == entry, f"the entry point is {entry}, copied are {outputs}")
    command[command.index("/etc/innkeeper/mcp.json")] = str(config)
    run = subprocess.run(
        [program, *command, "--print-config"], env=environment, capture_output=True, text=True, timeout=LIMIT
    )
    require(run.returncode == 0, f"`innkeeper {shlex.join(command)}` fails: {run.stderr}")
    return found


def workspace_problem(sources: list[str], cargo: list[str]) -> str:
    """Return why cargo does not load the workspace from the copied files alone."""
    with tempfile.TemporaryDirectory() as directory:
        for source in filter(lambda name: (ROOT / name).exists(), sources):
            target = Path(directory) / source
            if (ROOT / source).is_dir():
                target.symlink_to(ROOT / source)
            else:
                shutil.copy(ROOT / source, target)
        package = cargo[cargo.index("--package") + 1]
        line = ["cargo", "tree", "--locked", "--offline", "--depth", "0", "--package", package]
        run = subprocess.run(line, cwd=directory, capture_output=True, text=True, timeout=LIMIT)
        return "" if run.returncode == 0 else run.stderr
