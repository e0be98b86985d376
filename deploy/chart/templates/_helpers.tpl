{{/* Names, labels, mcp.json and times that several templates use. */}}

{{/* At most 43 characters, so that `-replicas` and the ordinal of a pod fit into a label. */}}
{{- define "innkeeper.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains .Chart.Name $name) -}}
{{- $name = printf "%s-%s" $name .Chart.Name -}}
{{- end -}}
{{- $name | replace "." "-" | trunc 43 | trimSuffix "-" -}}
{{- end -}}

{{- define "innkeeper.replicaService" -}}
{{- printf "%s-replicas" (include "innkeeper.name" .) -}}
{{- end -}}

{{- define "innkeeper.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "innkeeper.labels" -}}
{{ include "innkeeper.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "innkeeper.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* mcp.json, with the names under which clients reach the Service and the Ingress. */}}
{{- define "innkeeper.config" -}}
{{- $name := include "innkeeper.name" . -}}
{{- $local := printf "%s.%s" $name .Release.Namespace -}}
{{- $cluster := printf "%s.svc.%s" $local .Values.clusterDomain -}}
{{- $hosts := list $name $local (printf "%s.svc" $local) $cluster -}}
{{- if .Values.ingress.enabled -}}
{{- $hosts = concat $hosts .Values.ingress.hosts -}}
{{- end -}}
{{- $config := deepCopy .Values.config -}}
{{- $hosts = concat $hosts ($config.serve.allowedHosts | default list) | uniq -}}
{{- $_ := set $config.serve "allowedHosts" $hosts -}}
{{- toPrettyJson $config -}}
{{- end -}}

{{/*
The least seconds between the start of the termination and SIGKILL: the sleep, 10 s for requests in
flight, and the shutdown of the servers. Servers stop before their dependencies, so that at most as
many servers stop one after the other as servers have dependencies, and one more.
*/}}
{{- define "innkeeper.shutdownSeconds" -}}
{{- $default := dig "host" "shutdownTimeout" 10 .Values.config -}}
{{- $longest := ceil $default | int -}}
{{- $waves := 1 -}}
{{- range $servers := list .Values.config.servers .Values.config.mcpServers -}}
{{- range $server := $servers -}}
{{- $longest = max $longest (ceil ($server.shutdownTimeout | default $default) | int) -}}
{{- if $server.dependencies -}}
{{- $waves = add1 $waves -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- add .Values.preStopSeconds 10 (mul $longest $waves) -}}
{{- end -}}

{{- define "innkeeper.gracePeriod" -}}
{{- $least := include "innkeeper.shutdownSeconds" . | int -}}
{{- $given := .Values.terminationGracePeriodSeconds -}}
{{- if kindIs "invalid" $given -}}
{{- add $least 20 -}}
{{- else if le ($given | int) $least -}}
{{- fail (printf "terminationGracePeriodSeconds is %d, but the sleep, the requests in flight and the shutdown of the servers take up to %d s: set a larger value, or none" ($given | int) $least) -}}
{{- else -}}
{{- $given | int -}}
{{- end -}}
{{- end -}}

{{/*
The number of checks, one each 5 s, until a starting replica must respond: it responds when Redis is
connected and the servers are started.
*/}}
{{- define "innkeeper.startupChecks" -}}
{{- $install := dig "host" "installTimeout" 300 .Values.config -}}
{{- $start := dig "host" "startTimeout" 60 .Values.config -}}
{{- ceil (divf (addf .Values.redis.timeoutSeconds $install $start 10) 5) | int -}}
{{- end -}}
