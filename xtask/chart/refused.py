"""Values that the chart must refuse, each merged over a correct set (`...` removes a key), with a part of the error."""


def serve(**settings) -> dict:
    return {"config": {"serve": settings}}


def server(**settings) -> dict:
    return {"config": {"servers": {"one": {"url": "https://one.example.com/mcp", **settings}}}}


REFUSED = [
    # Secrets.
    (serve(auth={"apiKeys": [{"principal": "ci", "key": "0123456789abcdef0123456789"}]}), "/apiKeys/0/key"),
    (serve(auth={"apiKeys": [{"principal": "ci", "key": "${CI_KEY:-0123456789abcdef0123}"}]}), "/apiKeys/0/key"),
    (server(headers={"Authorization": "Bearer 0123456789abcdef"}), "/headers/Authorization"),
    (server(oauth={"clientSecret": "0123456789abcdef"}), "/oauth/clientSecret"),
    (server(env={"GITHUB_TOKEN": "0123456789abcdef"}), "/env/GITHUB_TOKEN"),
    ({"env": {"GITHUB_TOKEN": "0123456789abcdef"}}, "propertyName 'GITHUB_TOKEN'"),
    ({"env": {"MCP_REDIS_URL": "redis://r"}}, "propertyName 'MCP_REDIS_URL'"),
    ({"secretEnv": {"MCP_REPLICA_SECRET": {"secret": "a", "key": "b"}}}, "propertyName 'MCP_REPLICA_SECRET'"),
    ({"secretEnv": {"CI_KEY": "0123456789abcdef"}}, "/secretEnv/CI_KEY"),
    ({"redis": {"url": "redis://:password@redis"}}, "'url' not allowed"),
    ({"redis": ...}, "/redis/secret/name"),
    ({"redis": {"secret": {"name": ""}}}, "/redis/secret/name"),
    ({"replication": ...}, "/replication/secret/name"),
    ({"replication": {"secret": {"name": "", "value": "0123456789abcdef"}}}, "'value' not allowed"),
    # Authentication.
    (serve(auth=...), "missing property 'auth'"),
    (serve(auth=None), "/serve/auth"),
    (serve(auth={"apiKeys": ...}), "/serve/auth"),
    (serve(auth={"apiKeys": None}), "/auth/apiKeys"),
    (serve(auth={"apiKeys": []}), "/auth/apiKeys"),
    (serve(allowUnauthenticated=True), "/serve/allowUnauthenticated"),
    (serve(listen="0.0.0.0:8080"), "/serve/listen"),
    # Security and placement.
    ({"volumes": [{"name": "host", "hostPath": {"path": "/"}}]}, "'hostPath' not allowed"),
    ({"podSecurityContext": {"runAsUser": 0}}, "'podSecurityContext' not allowed"),
    ({"networkPolicy": {"from": []}}, "/networkPolicy/from"),
    ({"networkPolicy": {"from": [{}]}}, "/networkPolicy/from/0"),
    ({"topologySpread": {"zone": "Sometimes"}}, "/topologySpread/zone"),
    ({"ports": {"http": 80}}, "/ports/http"),
    ({"image": ...}, "/image/repository"),
    ({"image": {"repository": ""}}, "/image/repository"),
    ({"image": {"tag": "latest"}}, "/image/tag"),
    ({"image": {"digest": "sha256:1"}}, "/image/digest"),
    # Times and numbers.
    ({"replicas": -1}, "/replicas"),
    ({"replicas": 1.5}, "/replicas"),
    ({"preStopSeconds": 0}, "/preStopSeconds"),
    ({"terminationGracePeriodSeconds": 25}, "terminationGracePeriodSeconds is 25"),
    ({"terminationGracePeriodSeconds": 45, **server(shutdownTimeout=60)}, "take up to 75 s"),
    ({"replication": {"leaseSeconds": 0}}, "/replication/leaseSeconds"),
    ({"podDisruptionBudget": {"maxUnavailable": 0}}, "/podDisruptionBudget/maxUnavailable"),
    ({"autoscaling": {"enabled": True, "minReplicas": 11}}, "autoscaling.minReplicas is larger"),
    ({"resources": {"limits": None}}, "/resources"),
    # Names.
    ({"replica": 3}, "'replica' not allowed"),
    ({"ingress": {"enabled": True}}, "/ingress/hosts"),
    ({"log": {"level": "verbose"}}, "/log/level"),
]
