"""The rules of the project for the documents of a release, beside the schemas of Kubernetes."""

import json
import re

KINDS = {
    "ConfigMap",
    "Service",
    "StatefulSet",
    "PodDisruptionBudget",
    "NetworkPolicy",
    "HorizontalPodAutoscaler",
    "Ingress",
}
# The volumes of the restricted pod security standard.
VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
SECRET_NAME = re.compile(r"(^|_)(TOKEN|PASSWORD|PASSWD|SECRET|CREDENTIALS?|APIKEY|KEY|REDIS_URL)$")
URL_WITH_PASSWORD = re.compile(r"://[^/\s\"]*:[^/\s\"]*@")
# The metric of the autoscaler, with the prefix of the gateway's metrics.
METRIC = "innkeeper_gateway_requests_in_flight"


class Times:
    """Seconds that the program needs, from its own defaults."""

    def __init__(self, drain: float, schema: dict):
        host = schema["$defs"]["Host"]["properties"]
        self.drain = drain
        self.start = host["startTimeout"]["default"]
        self.install = host["installTimeout"]["default"]
        self.shutdown = host["shutdownTimeout"]["default"]


def workload(documents: list[dict]) -> dict:
    (found,) = [document for document in documents if document["kind"] == "StatefulSet"]
    return found


def problems(documents: list[dict], times: Times) -> list[str]:
    """Return what the documents violate."""
    found: list[str] = []

    def require(condition: bool, text: str) -> None:
        if not condition:
            found.append(text)

    kinds = [document["kind"] for document in documents]
    require(set(kinds) <= KINDS, f"unexpected kinds: {sorted(set(kinds) - KINDS)}")
    if kinds.count("StatefulSet") != 1:
        return [*found, "not one StatefulSet"]
    spec = workload(documents)["spec"]
    check_secrets(documents, require)
    check_pod_security(spec["template"]["spec"], require)
    check_probes(documents, times, require)
    check_services(documents, require)
    check_selectors(documents, require)
    check_network_policy(documents, require)
    check_scaling(documents, require)
    require(spec["podManagementPolicy"] == "Parallel", "replicas start one after the other")
    return found


def container_of(documents: list[dict]) -> dict:
    (container,) = workload(documents)["spec"]["template"]["spec"]["containers"]
    return container


def check_secrets(documents: list[dict], require) -> None:
    for document in documents:
        text = json.dumps(document)
        name = f"{document['kind']} {document['metadata']['name']}"
        require(not URL_WITH_PASSWORD.search(text), f"{name} contains a URL with a password")
    for entry in container_of(documents)["env"]:
        if SECRET_NAME.search(entry["name"]):
            is_reference = "secretKeyRef" in entry.get("valueFrom", {})
            require(is_reference, f"the variable {entry['name']} is not from a Secret")
    names = [entry["name"] for entry in container_of(documents)["env"]]
    require(len(names) == len(set(names)), f"a variable is set twice: {names}")
    if "MCP_REPLICA_URL" in names:
        url = next(e["value"] for e in container_of(documents)["env"] if e["name"] == "MCP_REPLICA_URL")
        before = names[: names.index("MCP_REPLICA_URL")]
        require("$(POD_NAME)" in url and "POD_NAME" in before, "MCP_REPLICA_URL is equal in all replicas")
    for config in configurations(documents):
        for key in config["serve"].get("auth", {}).get("apiKeys", []):
            require(key.get("key", "${").startswith("${"), "an API key is in mcp.json")


def configurations(documents: list[dict]) -> list[dict]:
    maps = [document for document in documents if document["kind"] == "ConfigMap"]
    return [json.loads(document["data"]["mcp.json"]) for document in maps]


def check_pod_security(pod: dict, require) -> None:
    """Check the restricted pod security standard, and what the project adds."""
    require(pod.get("automountServiceAccountToken") is False, "the pod has a service account token")
    require(pod.get("enableServiceLinks") is False, "the pod has the variables of all Services")
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        require(not pod.get(key), f"the pod has {key}")
    general = pod.get("securityContext", {})
    for volume in pod["volumes"]:
        kinds = set(volume) - {"name"}
        require(kinds <= VOLUMES, f"the volume {volume['name']} is {sorted(kinds)}")
    for container in pod["containers"] + pod.get("initContainers", []):
        own = container.get("securityContext", {})
        effective = {**general, **own}
        dropped = own.get("capabilities", {}).get("drop", [])
        require(effective.get("runAsNonRoot") is True, "the container may run as root")
        require(effective.get("runAsUser") != 0, "the container runs as root")
        profile = effective.get("seccompProfile", {}).get("type")
        require(profile == "RuntimeDefault", "the container has no seccomp profile")
        require(own.get("allowPrivilegeEscalation") is False, "the container may gain privileges")
        require(own.get("privileged") is not True, "the container is privileged")
        require("ALL" in dropped, "the container has capabilities")
        require("add" not in own.get("capabilities", {}), "the container has added capabilities")
        require(own.get("readOnlyRootFilesystem") is True, "the root file system is writable")
        require(all("hostPort" not in port for port in container["ports"]), "the container has a host port")
        require("limits" in container["resources"], "the container has no limits")
        require("memory" in container["resources"].get("requests", {}), "the container requests no memory")
        image = container["image"].rpartition("/")[2]
        require(":" in image or "@" in image, "the image has no tag")
        require(not image.endswith(":latest"), "the image has the tag latest")
        writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
        require({"/tmp", "/var/lib/innkeeper"} <= writable, "HOME or /tmp is not writable")


def check_probes(documents: list[dict], times: Times, require) -> None:
    pod = workload(documents)["spec"]["template"]["spec"]
    container = container_of(documents)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for kind, path in (("startup", "/healthz"), ("readiness", "/readyz"), ("liveness", "/healthz")):
        get = container.get(f"{kind}Probe", {}).get("httpGet", {})
        require(get.get("path") == path, f"the {kind} probe does not read {path}")
        require(get.get("port") == "http" and "http" in ports, f"the {kind} probe has another port")
    variables = {entry["name"]: entry.get("value") for entry in container["env"]}
    listen = container["args"][container["args"].index("--listen") + 1]
    require(listen.endswith(f":{ports.get('http')}"), "the port http is not the port of --listen")
    replicas = variables["MCP_REPLICA_LISTEN"] or ""
    require(replicas.endswith(f":{ports.get('replicas')}"), "the port replicas is not MCP_REPLICA_LISTEN")
    (config,) = configurations(documents)
    host = config.get("host", {})
    startup = container.get("startupProbe", {})
    given = startup.get("failureThreshold", 3) * startup.get("periodSeconds", 10)
    install = host.get("installTimeout", times.install)
    needed = int(variables["MCP_STORE_TIMEOUT"]) + host.get("startTimeout", times.start) + install
    require(given > needed, f"the startup probe ends a start after {given} s, which may take {needed} s")
    sleep = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    require(sleep > 0, "the container stops before the pod leaves the endpoints")
    servers = {**config.get("servers", {}), **config.get("mcpServers", {})}
    shutdown = longest_shutdown(servers, host.get("shutdownTimeout", times.shutdown))
    needed = sleep + times.drain + shutdown
    grace = pod["terminationGracePeriodSeconds"]
    require(grace > needed, f"the grace period is {grace} s, a stop takes up to {needed} s")


def longest_shutdown(servers: dict, default: float) -> float:
    """Return the seconds of the longest chain of servers, each of which stops before the next."""

    def chain(name: str, seen: tuple = ()) -> float:
        server = servers.get(name, {})
        below = [chain(other, (*seen, name)) for other in server.get("dependencies", []) if other not in seen]
        return server.get("shutdownTimeout", default) + max(below, default=0)

    return max((chain(name) for name in servers), default=0)


def check_services(documents: list[dict], require) -> None:
    services = [document for document in documents if document["kind"] == "Service"]
    public = [service for service in services if service["spec"].get("clusterIP") != "None"]
    headless = [service for service in services if service["spec"].get("clusterIP") == "None"]
    ports = {port["name"]: port["containerPort"] for port in container_of(documents)["ports"]}
    require(len(public) == 1 and len(headless) == 1, "not one public and one headless Service")
    for service in public:
        targets = [port["targetPort"] for port in service["spec"]["ports"]]
        require(targets == ["http"], f"the public Service leads to {targets}")
        require(service["spec"]["type"] == "ClusterIP", "the public Service is reachable from outside")
        require(service["spec"].get("sessionAffinity", "None") == "None", "sessions are sticky")
    for service in headless:
        targets = [(port["targetPort"], port["port"]) for port in service["spec"]["ports"]]
        require(targets == [("replicas", ports["replicas"])], f"the headless Service has {targets}")
        require(service["spec"].get("publishNotReadyAddresses") is True, "a stopping replica has no name")
        name, space = service["metadata"]["name"], service["metadata"]["namespace"]
        url = next(e["value"] for e in container_of(documents)["env"] if e["name"] == "MCP_REPLICA_URL")
        expected = f"http://$(POD_NAME).{name}.{space}.svc:{ports['replicas']}"
        require(url == expected, f"MCP_REPLICA_URL is {url}, not {expected}")
        require(workload(documents)["spec"]["serviceName"] == name, "the pods have no names in the Service")


def check_selectors(documents: list[dict], require) -> None:
    spec = workload(documents)["spec"]
    labels = spec["template"]["metadata"]["labels"]
    for document in documents:
        kind, body = document["kind"], document.get("spec", {})
        selectors = {
            "Service": [body.get("selector")],
            "StatefulSet": [body.get("selector", {}).get("matchLabels")]
            + [
                spread["labelSelector"]["matchLabels"]
                for spread in spec["template"]["spec"].get("topologySpreadConstraints", [])
            ],
            "PodDisruptionBudget": [body.get("selector", {}).get("matchLabels")],
            "NetworkPolicy": [body.get("podSelector", {}).get("matchLabels")],
        }
        for selector in selectors.get(kind, []):
            selects = bool(selector) and selector.items() <= labels.items()
            require(selects, f"{kind} {document['metadata']['name']} does not select the pods")
            both = {"app.kubernetes.io/name", "app.kubernetes.io/instance"}
            require(both <= set(selector or {}), f"{kind} selects pods of other releases")
    for document in documents:
        name = document["metadata"]["name"]
        require(len(name) <= 63 and "." not in name, f"`{name}` is no label of a name")


def check_network_policy(documents: list[dict], require) -> None:
    policies = [document["spec"] for document in documents if document["kind"] == "NetworkPolicy"]
    ports = {port["name"]: port["containerPort"] for port in container_of(documents)["ports"]}
    for policy in policies:
        require(set(policy["policyTypes"]) == {"Ingress", "Egress"}, "the policy leaves a direction open")
        own = [{"podSelector": policy["podSelector"]}]
        for rule in policy["ingress"]:
            numbers = [port["port"] for port in rule.get("ports", [])]
            require(bool(rule.get("from")) and bool(numbers), "a rule of the policy admits everything")
            if ports["replicas"] in numbers:
                is_own = rule.get("from") == own and numbers == [ports["replicas"]]
                require(is_own, "the port of the replicas is open to other pods")
        for rule in policy["egress"]:
            require(bool(rule.get("ports")) or bool(rule.get("to")), "the policy admits every destination")
        reached = {port["port"] for rule in policy["egress"] for port in rule.get("ports", [])}
        require({53, ports["replicas"]} <= reached, "the policy lacks the name service or the replicas")


def check_scaling(documents: list[dict], require) -> None:
    spec = workload(documents)["spec"]
    scalers = [document["spec"] for document in documents if document["kind"] == "HorizontalPodAutoscaler"]
    require(("replicas" in spec) != bool(scalers), "not one of replicas and autoscaler")
    for scaler in scalers:
        target = scaler["scaleTargetRef"]
        names = (target["kind"], target["name"])
        own = ("StatefulSet", workload(documents)["metadata"]["name"])
        require(names == own, f"the autoscaler scales {names}")
        metrics = [metric.get("pods", {}).get("metric", {}).get("name") for metric in scaler["metrics"]]
        require(metrics == [METRIC], f"the autoscaler reads {metrics}")
    budgets = [document for document in documents if document["kind"] == "PodDisruptionBudget"]
    require(len(budgets) == 1, "no disruption budget")
