"""Changes of a correct release, each of which violates a rule: a rule that accepts one is broken."""

import copy

from policy import Times, container_of, problems, workload


def pod(documents: list[dict]) -> dict:
    return workload(documents)["spec"]["template"]["spec"]


def service(documents: list[dict], is_headless: bool) -> dict:
    services = [document["spec"] for document in documents if document["kind"] == "Service"]
    return next(spec for spec in services if (spec.get("clusterIP") == "None") == is_headless)


def policy(documents: list[dict]) -> dict:
    return next(document["spec"] for document in documents if document["kind"] == "NetworkPolicy")


def set_variable(documents: list[dict], name: str, entry: dict) -> None:
    variables = container_of(documents)["env"]
    at = [variable["name"] for variable in variables].index(name)
    variables[at] = {"name": name, **entry}


# The changes with the texts of their problems.
BROKEN = [
    (lambda d: d.append({"kind": "Secret", "metadata": {"name": "s"}}), "unexpected kinds"),
    (lambda d: set_variable(d, "MCP_REPLICA_SECRET", {"value": "x"}), "MCP_REPLICA_SECRET is not from a Secret"),
    (lambda d: set_variable(d, "MCP_REDIS_URL", {"value": "redis://r"}), "MCP_REDIS_URL is not from a Secret"),
    (lambda d: set_variable(d, "HOME", {"value": "redis://:p@r"}), "URL with a password"),
    (lambda d: container_of(d)["env"].append({"name": "HOME", "value": "/"}), "set twice"),
    (lambda d: container_of(d)["env"].pop(0), "MCP_REPLICA_URL is equal in all replicas"),
    (lambda d: set_variable(d, "MCP_REPLICA_URL", {"value": "http://$(POD_NAME):9090"}), "MCP_REPLICA_URL is"),
    (lambda d: set_variable(d, "MCP_REPLICA_LISTEN", {"value": "0.0.0.0:1"}), "not MCP_REPLICA_LISTEN"),
    (lambda d: container_of(d)["args"].__setitem__(4, "0.0.0.0:1"), "not the port of --listen"),
    (lambda d: pod(d).pop("automountServiceAccountToken"), "service account token"),
    (lambda d: pod(d).pop("enableServiceLinks"), "variables of all Services"),
    (lambda d: pod(d).update(hostNetwork=True), "hostNetwork"),
    (lambda d: pod(d)["volumes"].append({"name": "h", "hostPath": {"path": "/"}}), "the volume h"),
    (lambda d: pod(d)["securityContext"].pop("runAsNonRoot"), "may run as root"),
    (lambda d: pod(d)["securityContext"].update(runAsUser=0), "runs as root"),
    (lambda d: pod(d)["securityContext"].pop("seccompProfile"), "no seccomp profile"),
    (lambda d: container_of(d)["securityContext"].pop("allowPrivilegeEscalation"), "gain privileges"),
    (lambda d: container_of(d)["securityContext"].update(privileged=True), "privileged"),
    (lambda d: container_of(d)["securityContext"].pop("capabilities"), "has capabilities"),
    (lambda d: container_of(d)["securityContext"]["capabilities"].update(add=["NET_RAW"]), "added capabilities"),
    (lambda d: container_of(d)["securityContext"].update(readOnlyRootFilesystem=False), "system is writable"),
    (lambda d: container_of(d)["ports"][0].update(hostPort=80), "host port"),
    (lambda d: container_of(d)["resources"].pop("limits"), "no limits"),
    (lambda d: container_of(d)["resources"].pop("requests"), "requests no memory"),
    (lambda d: container_of(d).update(image="a.example:5000/b"), "no tag"),
    (lambda d: container_of(d).update(image="a.example/b:latest"), "tag latest"),
    (lambda d: container_of(d)["volumeMounts"].pop(), "is not writable"),
    (lambda d: container_of(d).pop("startupProbe"), "the startup probe"),
    (lambda d: container_of(d)["startupProbe"].update(failureThreshold=3), "the startup probe ends a start"),
    (lambda d: container_of(d)["readinessProbe"]["httpGet"].update(path="/healthz"), "the readiness probe"),
    (lambda d: container_of(d)["livenessProbe"]["httpGet"].update(port="replicas"), "the liveness probe"),
    (lambda d: container_of(d).pop("lifecycle"), "before the pod leaves the endpoints"),
    (lambda d: pod(d).update(terminationGracePeriodSeconds=15), "the grace period is 15 s"),
    (lambda d: service(d, False)["ports"].append({"targetPort": 9090}), "the public Service leads to"),
    (lambda d: service(d, False).update(type="LoadBalancer"), "reachable from outside"),
    (lambda d: service(d, False).update(sessionAffinity="ClientIP"), "sessions are sticky"),
    (lambda d: service(d, True).pop("publishNotReadyAddresses"), "a stopping replica has no name"),
    (lambda d: service(d, True)["ports"][0].update(targetPort="http"), "the headless Service has"),
    (lambda d: workload(d)["spec"].update(serviceName="other"), "no names in the Service"),
    (lambda d: service(d, False).update(selector={"a": "b"}), "does not select the pods"),
    (lambda d: service(d, True)["selector"].popitem(), "pods of other releases"),
    (lambda d: service(d, True) and d[0]["metadata"].update(name="a" * 64), "no label of a name"),
    (lambda d: policy(d).update(policyTypes=["Ingress"]), "leaves a direction open"),
    (lambda d: policy(d)["ingress"][1].pop("from"), "admits everything"),
    (lambda d: policy(d)["ingress"][1].pop("ports"), "admits everything"),
    (lambda d: policy(d)["ingress"][0]["from"].append({"podSelector": {}}), "open to other pods"),
    (lambda d: policy(d)["ingress"][1]["ports"].append({"port": 9090}), "open to other pods"),
    (lambda d: policy(d)["egress"].append({}), "every destination"),
    (lambda d: policy(d)["egress"].pop(1), "lacks the name service"),
    (lambda d: workload(d)["spec"].pop("replicas"), "not one of replicas and autoscaler"),
    (lambda d: workload(d)["spec"].update(podManagementPolicy="OrderedReady"), "one after the other"),
    (lambda d: d.remove(next(x for x in d if x["kind"] == "PodDisruptionBudget")), "no disruption budget"),
]


def accepted_changes(documents: list[dict], times: Times) -> list[str]:
    """Return the texts of the changes that no rule reports."""
    accepted = []
    for change, text in BROKEN:
        changed = copy.deepcopy(documents)
        change(changed)
        if not any(text in problem for problem in problems(changed, times)):
            accepted.append(text)
    return accepted
