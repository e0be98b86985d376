"""Checks the chart and the container file: schemas of Kubernetes, rules, refused values, the real program."""

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time
import tomllib
from pathlib import Path

# No bytecode files next to the sources.
sys.dont_write_bytecode = True

import helm_python  # noqa: E402
import kubernetes_validate  # noqa: E402
import yaml  # noqa: E402

import containerfile  # noqa: E402
from broken import BROKEN, accepted_changes  # noqa: E402
from policy import Times, problems, workload  # noqa: E402
from refused import REFUSED  # noqa: E402
from release import CHART, ROOT, Release, RenderError, merge, read_values, replica  # noqa: E402

# The oldest version that the chart supports, and two that are maintained.
KUBERNETES = ("1.30", "1.35", "1.37")
VALUES = Path(__file__).parent / "values"
PAGE = ROOT / "docs/replicas.md"
# The most seconds of one run of the program.
LIMIT = 60
# Values of the keys of all Secrets: the program must not print them, and no document may contain them.
MARK = "f00dcafe"


def value_sets() -> dict[str, dict]:
    """Return the values of the files, and those that the page shows."""
    sets = {file.name: read_values([file]) for file in sorted(VALUES.glob("*.yaml"))}
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for number, block in enumerate(blocks, 1):
        sets[f"{PAGE.name}, block {number}"] = yaml.safe_load(textwrap.dedent(block))
    return sets


def secrets_of(release: Release) -> dict:
    """Return a value for each key of a Secret that the replicas use."""
    (container,) = workload(release.documents)["spec"]["template"]["spec"]["containers"]
    given: dict[str, dict[str, str]] = {}
    for number, entry in enumerate(container["env"]):
        source = entry.get("valueFrom", {}).get("secretKeyRef")
        if source:
            value = f"{MARK}{number:032}"
            is_redis = entry["name"] == "MCP_REDIS_URL"
            value = f"redis://user:{value}@redis.example.com:6379/0" if is_redis else value
            given.setdefault(source["name"], {})[source["key"]] = value
    return given


def drain_seconds() -> float:
    """Return the time for requests in flight at a shutdown."""
    text = (ROOT / "crates/innkeeper-gateway/src/options.rs").read_text()
    found = re.search(r"drain_timeout: Duration::from_secs\((\d+)\)", text)
    if not found:
        raise SystemExit("options.rs of the gateway has no default of `drain_timeout`")
    return float(found[1])


def run_program(program: Path, arguments: list[str], environment: dict) -> subprocess.CompletedProcess:
    line = [program, *arguments]
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=LIMIT)


def replica_problems(program: Path, release: Release, directory: Path) -> list[str]:
    """Run the rendered arguments, variables and mcp.json of a replica with the real program."""
    started = replica(release, 1, secrets_of(release))
    (path, text), *_ = started["files"].items()
    config = directory / "mcp.json"
    config.write_text(text)
    environment = {"PATH": os.environ["PATH"], **started["env"], "HOME": str(directory)}
    arguments = [str(config) if argument == path else argument for argument in started["args"]]
    found = []
    if path not in started["args"]:
        found.append(f"--config is not the mounted file {path}")
    checked = run_program(program, ["--config", str(config), "check"], environment)
    if checked.returncode != 0 or "warning" in checked.stderr:
        found.append(f"`check` fails: {checked.stdout}{checked.stderr}")
    printed = run_program(program, [*arguments, "--print-config"], environment)
    if printed.returncode != 0:
        return [*found, f"`serve --print-config` fails: {printed.stderr}"]
    if MARK in printed.stdout + printed.stderr + checked.stdout + checked.stderr:
        found.append("the program prints a secret")
    effective = json.loads(printed.stdout)
    expected = arguments[arguments.index("--listen") + 1]
    if effective["serve"]["listen"] != expected:
        found.append(f"the gateway listens on {effective['serve']['listen']}, not {expected}")
    if effective["connections"]["store"]["source"] != "MCP_REDIS_URL":
        found.append(f"the store is {effective['connections']['store']}")
    if effective["connections"]["storeTimeout"]["value"] != release.values["redis"]["timeoutSeconds"]:
        found.append(f"the time for Redis is {effective['connections']['storeTimeout']}")
    if started["env"]["MCP_LEASE_SECONDS"] != str(release.values["replication"]["leaseSeconds"]):
        found.append(f"the lease is {started['env']['MCP_LEASE_SECONDS']}")
    hosts = effective["serve"]["allowedHosts"]
    public = [each for each in release.of_kind("Service") if each["spec"].get("clusterIP") != "None"]
    wanted = [f"{each['metadata']['name']}.{each['metadata']['namespace']}.svc" for each in public]
    wanted += [rule["host"] for document in release.of_kind("Ingress") for rule in document["spec"]["rules"]]
    wanted += release.values["config"]["serve"].get("allowedHosts", [])
    if not set(wanted) <= set(hosts):
        found.append(f"the gateway refuses the hosts {sorted(set(wanted) - set(hosts))}")
    if not effective["serve"].get("auth") or effective["serve"]["allowUnauthenticated"]:
        found.append("the gateway serves clients without authentication")
    without = run_program(program, ["--config", str(config), "check"], {"PATH": os.environ["PATH"]})
    if "${" in text and without.returncode == 0:
        found.append("mcp.json needs no variable, so that a missing Secret stays unseen")
    return found


def schema_problems(documents: list[dict]) -> list[str]:
    """Validate documents with the schemas of Kubernetes, without unknown keys."""
    found = []
    for document in documents:
        for version in KUBERNETES:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
                where = "/".join(map(str, getattr(error, "path", [])))
                found.append(f"{document['kind']} in Kubernetes {version}: {where}: {error.message}")
    return found


def release_problems(values: dict, times: Times) -> list[str]:
    """Check the documents of one release."""
    lint = helm_python.lint(CHART, values, strict=True)
    found = [message["error"] for message in lint["messages"] if message["severity"] > 1]
    release = Release(values)
    found += schema_problems(release.documents)
    if found:
        return found
    found += problems(release.documents, times)
    changed = Release(merge(values, {"config": {"serve": {"names": "flat"}}}))
    checksums = [
        (workload(each.documents)["spec"]["template"]["metadata"]["annotations"] or {}).get("checksum/config")
        for each in (release, changed)
    ]
    if len(set(checksums)) != 2:
        found.append("a change of mcp.json does not replace the pods")
    return found


def name_problems(values: dict, times: Times) -> list[str]:
    """Check the names of objects for names of releases that are long, or no names of hosts."""
    found = []
    for name in ("a.b", "innkeeper", "x" * 53, "tools." + "x" * 47):
        documents = Release(values, name=name).documents
        found += [f"the release {name}: {problem}" for problem in problems(documents, times)]
    return found


def refused_problems(values: dict) -> list[str]:
    """Return the wrong values that the chart accepts, and those that it refuses for another reason."""
    found = []
    for change, text in REFUSED:
        try:
            Release(merge(values, change))
        except RenderError as error:
            if text not in str(error):
                found.append(f"{change} is refused for another reason than `{text}`: {error}")
        else:
            found.append(f"{change} is accepted")
    return found


def document_problems() -> list[str]:
    """Compare Chart.yaml and README.md with the workspace and the values."""
    found = []
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    if chart["appVersion"] != version:
        found.append(f"Chart.yaml: appVersion is {chart['appVersion']}, the workspace is {version}")
    readme = (CHART / "README.md").read_text()

    def keys(values: dict, prefix: str = "") -> list[str]:
        nested = {k: v for k, v in values.items() if isinstance(v, dict) and v and k != "resources"}
        own = [f"{prefix}{key}" for key in values if key not in nested]
        return own + [name for key, value in nested.items() for name in keys(value, f"{prefix}{key}.")]

    for name in keys(yaml.safe_load((CHART / "values.yaml").read_text())):
        if f"`{name}`" not in readme:
            found.append(f"README.md of the chart does not describe `{name}`")
    return found


def render_problems(release: Release, directory: Path) -> list[str]:
    """Compare the output of render.py with the replica of this process."""
    secrets = directory / "secrets.json"
    secrets.write_text(json.dumps(secrets_of(release)))
    line = [sys.executable, Path(__file__).with_name("render.py"), "--secrets", secrets]
    line += ["--values", VALUES / "minimal.yaml", "--ordinal", "2"]
    run = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT)
    if run.returncode != 0 or json.loads(run.stdout) != replica(release, 2, secrets_of(release)):
        return [f"render.py prints another replica: {run.stdout}{run.stderr}"]
    secrets.write_text("{}")
    run = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT)
    return [] if run.returncode == 1 else [f"render.py needs no Secrets: {run.stdout}"]


def image_problems(program: Path, release: Release, directory: Path) -> list[str]:
    """Check the container file with the configuration of a replica."""
    started = replica(release, 0, secrets_of(release))
    config = directory / "minimal.json"
    config.write_text(started["files"]["/etc/innkeeper/mcp.json"])
    environment = {"PATH": os.environ["PATH"], **started["env"], "HOME": str(directory)}
    user = workload(release.documents)["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    hadolint = Path(sys.executable).with_name("hadolint")
    return containerfile.problems(program, config, environment, user, hadolint)


def main() -> int:
    program = Path(sys.argv[1]).resolve()
    began = time.monotonic()
    schema = subprocess.run([program, "schema"], capture_output=True, text=True, check=True, timeout=LIMIT)
    times = Times(drain_seconds(), json.loads(schema.stdout))
    sets = value_sets()
    minimal = sets["minimal.yaml"]
    found = [*document_problems(), *refused_problems(minimal)]
    documents = 0
    with tempfile.TemporaryDirectory() as directory:
        for name, values in sets.items():
            release = Release(values)
            documents += len(release.documents)
            each = release_problems(values, times)
            each = each or replica_problems(program, release, Path(directory))
            found += [f"{name}: {problem}" for problem in each]
        if not found:
            found += name_problems(minimal, times)
            release = Release(minimal)
            accepted = accepted_changes(release.documents, times)
            found += [f"the rule `{text}` accepts a violation" for text in accepted]
            found += render_problems(release, Path(directory))
            found += image_problems(program, release, Path(directory))
    for problem in found:
        print(problem, file=sys.stderr)
    print(
        f"{len(sets)} sets of values, {documents} documents for Kubernetes {', '.join(KUBERNETES)}, "
        f"{len(REFUSED)} refused values, {len(BROKEN)} refused changes, {time.monotonic() - began:.1f} s"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
