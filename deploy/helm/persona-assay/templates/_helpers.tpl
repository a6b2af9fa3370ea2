{{- define "assay.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "assay.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "assay.labels" -}}
{{ include "assay.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "assay.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* How long a worker that is told to stop awaits its calls, by itself: each may take as long as the call deadline. */}}
{{- define "assay.shutdownSeconds" -}}
{{- $settings := .Values.settings }}
{{- if hasKey $settings "ASSAY_SHUTDOWN_SECONDS" }}{{ $settings.ASSAY_SHUTDOWN_SECONDS }}{{ else }}{{ addf ($settings.ASSAY_CALL_DEADLINE_SECONDS | default 120 | float64) 5 }}{{ end }}
{{- end }}

{{/* Whom the API answers: the names of its Service and its Ingress, and yours. */}}
{{- define "assay.hosts" -}}
{{- $service := printf "%s-api" (include "assay.name" .) }}
{{- $hosts := list $service (printf "%s.%s" $service .Release.Namespace) (printf "%s.%s.svc" $service .Release.Namespace) (printf "%s.%s.svc.cluster.local" $service .Release.Namespace) }}
{{- if .Values.ingress.enabled }}{{ $hosts = append $hosts .Values.ingress.host }}{{ end }}
{{- concat $hosts .Values.hosts | uniq | join "," }}
{{- end }}

{{/* The secrets of a part as a list of variables and keys, each of which the part reads from a file. */}}
{{- define "assay.secrets" -}}
{{- $keys := .Values.secret.keys }}
- {variable: DATABASE_URL, key: {{ $keys.databaseUrl }}}
{{- if and (eq .part "migration") $keys.ownerDatabaseUrl }}
- {variable: ASSAY_OWNER_DATABASE_URL, key: {{ $keys.ownerDatabaseUrl }}}
{{- end }}
{{- if has .part (list "api" "worker" "sweeper") }}
- {variable: REDIS_URL, key: {{ $keys.redisUrl }}}
{{- if $keys.encryptionKeys }}
- {variable: ASSAY_ENCRYPTION_KEYS, key: {{ $keys.encryptionKeys }}}
{{- end }}
{{- end }}
{{- if has .part (list "api" "shell") }}
- {variable: ASSAY_KEY_PEPPER, key: {{ $keys.keyPepper }}}
{{- end }}
{{- if has .part (list "api" "worker") }}
{{- range .Values.secret.providerKeys }}
- {variable: {{ . }}, key: {{ . }}}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether a part is one of those that stay, with Redis and the operator's file. */}}
{{- define "assay.stays" -}}
{{- if has .part (list "api" "worker" "sweeper") }}yes{{ end }}
{{- end }}

{{- define "assay.env" -}}
{{- range include "assay.secrets" . | fromYamlArray }}
- {name: {{ .variable }}_FILE, value: /run/secrets/assay/{{ .variable }}}
{{- end }}
{{- if include "assay.stays" . }}
{{- if .Values.redisTls.secret }}
- {name: ASSAY_REDIS_CA_FILE, value: /run/secrets/redis/ca.crt}
{{- if .Values.redisTls.clientCertificate }}
- {name: ASSAY_REDIS_CERT_FILE, value: /run/secrets/redis/tls.crt}
- {name: ASSAY_REDIS_KEY_FILE, value: /run/secrets/redis/tls.key}
{{- end }}
{{- end }}
{{- if .Values.config }}
- {name: ASSAY_CONFIG, value: /etc/assay/assay.yaml}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.settings }}
{{- /* Helm has numbers from values as floats: 5000000 is not to become 5e+06. */}}
- {name: {{ $name }}, value: {{ if kindIs "float64" $value }}{{ if eq $value (floor $value) }}{{ $value | int64 | toString | quote }}{{ else }}{{ $value | toString | quote }}{{ end }}{{ else }}{{ $value | toString | quote }}{{ end }}}
{{- end }}
{{- end }}

{{- define "assay.mounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: secret, mountPath: /run/secrets/assay, readOnly: true}
{{- if include "assay.stays" . }}
{{- if .Values.redisTls.secret }}
- {name: redis-tls, mountPath: /run/secrets/redis, readOnly: true}
{{- end }}
{{- if .Values.config }}
- {name: config, mountPath: /etc/assay, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{- define "assay.volumes" -}}
- {name: tmp, emptyDir: {medium: Memory, sizeLimit: {{ .Values.tmp.sizeLimit }}}}
- name: secret
  secret:
    secretName: {{ required "secret.name is missing: the Secret that has DATABASE_URL, REDIS_URL and ASSAY_KEY_PEPPER" .Values.secret.name }}
    defaultMode: 0440
    items:
      {{- range include "assay.secrets" . | fromYamlArray }}
      - {key: {{ .key }}, path: {{ .variable }}}
      {{- end }}
{{- if include "assay.stays" . }}
{{- if .Values.redisTls.secret }}
- {name: redis-tls, secret: {secretName: {{ .Values.redisTls.secret }}, defaultMode: 0440}}
{{- end }}
{{- if .Values.config }}
- {name: config, configMap: {name: {{ include "assay.name" . }}}}
{{- end }}
{{- end }}
{{- end }}

{{/* Arguments: the context with `part`. Pods of all parts are alike but for their container. */}}
{{- define "assay.podMeta" -}}
labels:
  {{- include "assay.labels" . | nindent 2 }}
  app.kubernetes.io/component: {{ .part }}
  {{- with .Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  checksum/config: {{ .Values.config | sha256sum }}
  {{- with .Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "assay.podSpec" -}}
automountServiceAccountToken: false
# Else the variables that Kubernetes makes of Services would stand among the settings.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "assay.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "assay.selector" . | nindent 8 }}
        app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "assay.container" -}}
image: {{ include "assay.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "assay.heartbeatProbe" -}}
{{- $probe := printf "test -n \"$(find /tmp/heartbeat -newermt '-%d seconds')\"" (int .Values.heartbeat.seconds) }}
startupProbe:
  exec: {command: [sh, -c, {{ $probe | quote }}]}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  exec: {command: [sh, -c, {{ $probe | quote }}]}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
{{- end }}
