"""Renders the chart, and resolves one replica of the result as Kubernetes starts it."""

import re
from pathlib import Path

import helm_python
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/chart"

# `$(NAME)` in a value is an earlier variable; `$$(NAME)` is the text.
VARIABLE = re.compile(r"\$(\$?)\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


class RenderError(Exception):
    """The chart refuses the values, or a replica cannot start with them."""


def merge(base: dict, over: dict) -> dict:
    """Merge values as Helm does: objects by key, everything else is replaced; `...` removes a key."""
    merged = {key: value for key, value in base.items() if over.get(key) is not ...}
    over = {key: value for key, value in over.items() if value is not ...}
    for key, value in over.items():
        both = isinstance(merged.get(key), dict) and isinstance(value, dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged


def read_values(files: list[str | Path]) -> dict:
    values: dict = {}
    for file in files:
        values = merge(values, yaml.safe_load(Path(file).read_text()) or {})
    return values


class Release:
    """The documents of one release."""

    def __init__(self, values: dict, name: str = "team", namespace: str = "tools"):
        self.name, self.namespace = name, namespace
        try:
            with helm_python.Chart.load(CHART) as chart:
                texts = chart.render(values, name=name, namespace=namespace)
                self.values = chart.merge_values(values)
        except helm_python.HelmError as error:
            raise RenderError(str(error)) from error
        manifests = [text for path, text in sorted(texts.items()) if path.endswith(".yaml")]
        documents = [document for text in manifests for document in yaml.safe_load_all(text)]
        self.documents = [document for document in documents if document]

    def of_kind(self, kind: str) -> list[dict]:
        return [document for document in self.documents if document["kind"] == kind]


def expand(text: str, variables: dict[str, str]) -> str:
    """Replace the variables of a text; an unknown variable stays."""

    def value(match: re.Match) -> str:
        escaped, name = match.groups()
        return match[0][1:] if escaped else variables.get(name, match[0])

    return VARIABLE.sub(value, text)


def resolve_environment(container: dict, fields: dict, secrets: dict) -> dict:
    """Return the variables of a container, with fields of its pod and keys of Secrets."""
    variables: dict[str, str] = {}
    for entry in container.get("env", []):
        source = entry.get("valueFrom", {})
        if "secretKeyRef" in source:
            name, key = source["secretKeyRef"]["name"], source["secretKeyRef"]["key"]
            if key not in secrets.get(name, {}):
                raise RenderError(f"{entry['name']}: no key `{key}` of a Secret `{name}` is given")
            variables[entry["name"]] = secrets[name][key]
        elif "fieldRef" in source:
            variables[entry["name"]] = fields[source["fieldRef"]["fieldPath"]]
        else:
            variables[entry["name"]] = expand(entry.get("value", ""), variables)
    return variables


def resolve_probe(probe: dict, ports: dict) -> dict:
    """Return a probe with its port as a number, and the defaults of Kubernetes."""
    get = probe["httpGet"]
    defaults = {"periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3, "successThreshold": 1}
    times = {key: probe.get(key, default) for key, default in defaults.items()}
    return {"path": get["path"], "port": ports.get(get["port"], get["port"]), **times}


def replica(release: Release, ordinal: int, secrets: dict, address: str = "127.0.0.1") -> dict:
    """Return what Kubernetes starts for the replica with this number."""
    (workload,) = release.of_kind("StatefulSet")
    spec = workload["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    pod = f"{workload['metadata']['name']}-{ordinal}"
    fields = {
        "metadata.name": pod,
        "metadata.namespace": release.namespace,
        "status.podIP": address,
    }
    maps = {map["metadata"]["name"]: map["data"] for map in release.of_kind("ConfigMap")}
    volumes = {v["name"]: v["configMap"]["name"] for v in spec["volumes"] if "configMap" in v}
    files, writable = {}, []
    for mount in container["volumeMounts"]:
        if not mount.get("readOnly"):
            writable.append(mount["mountPath"])
        for name, text in maps.get(volumes.get(mount["name"]), {}).items():
            files[f"{mount['mountPath']}/{name}"] = text
    environment = resolve_environment(container, fields, secrets)
    return {
        "name": pod,
        "args": [expand(argument, environment) for argument in container["args"]],
        "env": environment,
        "ports": ports,
        "probes": {
            kind: resolve_probe(container[f"{kind}Probe"], ports)
            for kind in ("startup", "readiness", "liveness")
        },
        "preStopSeconds": container["lifecycle"]["preStop"]["sleep"]["seconds"],
        "terminationGracePeriodSeconds": spec["terminationGracePeriodSeconds"],
        "files": files,
        "writable": writable,
    }
