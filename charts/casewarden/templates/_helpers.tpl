{{/* Names are fixed: the CLI, the network policies of case pods and the relay know them. */}}
{{- define "casewarden.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/name: casewarden
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- /* Not "casewarden": that marks what the operator makes for runs. */}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "casewarden.selector" -}}
app.kubernetes.io/name: casewarden
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* An image, behind image.registry where it names no registry of its own. Arguments: the root, the image. */}}
{{- define "casewarden.image" -}}
{{- $registry := (index . 0).Values.image.registry }}
{{- $image := index . 1 }}
{{- $first := first (splitList "/" $image) }}
{{- if and $registry (or (not (contains "/" $image)) (not (regexMatch "[.:]|^localhost$" $first))) -}}
{{ $registry }}/{{ $image }}
{{- else -}}
{{ $image }}
{{- end }}
{{- end }}

{{- define "casewarden.relayUrl" -}}
http://casewarden-relay.{{ .Release.Namespace }}.svc:8080
{{- end }}

{{- define "casewarden.store" -}}
{{- if eq .Values.relay.storage.type "s3" -}}
{{- $query := list (printf "path_style=%t" .Values.relay.storage.s3.pathStyle) -}}
{{- with .Values.relay.storage.s3.endpoint }}{{ $query = append $query (printf "endpoint=%s" (urlquery .)) }}{{ end -}}
{{- with .Values.relay.storage.s3.region }}{{ $query = append $query (printf "region=%s" (urlquery .)) }}{{ end -}}
s3://{{ required "relay.storage.s3.bucket: name the bucket that evidence is kept in" .Values.relay.storage.s3.bucket }}/{{ .Values.relay.storage.s3.prefix }}?{{ join "&" $query }}
{{- else -}}
file:///var/lib/casewarden
{{- end -}}
{{- end }}

{{- define "casewarden.catalogue" -}}
{{- $tasks := dict }}
{{- range $name, $task := .Values.catalogue.tasks }}
{{- if $task }}{{ $_ := set $tasks $name (merge (dict "image" (include "casewarden.image" (list $ $task.image))) $task) }}{{ end }}
{{- end }}
{{- $images := dict }}
{{- range $name, $image := .Values.catalogue.images }}
{{- if $image }}{{ $_ := set $images $name (include "casewarden.image" (list $ $image)) }}{{ end }}
{{- end }}
{{- $endpoints := dict }}
{{- range $name, $endpoint := .Values.catalogue.endpoints }}
{{- if $endpoint }}{{ $_ := set $endpoints $name $endpoint }}{{ end }}
{{- end }}
{{- dict "tasks" $tasks "images" $images "endpoints" $endpoints "allowedTaskImages" .Values.catalogue.allowedTaskImages "allowBaseline" .Values.catalogue.allowBaseline "pools" .Values.catalogue.pools "evidenceImage" (include "casewarden.image" (list . .Values.image.evidence)) "relayUrl" (include "casewarden.relayUrl" .) | toYaml }}
{{- end }}

{{- define "casewarden.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "casewarden.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "casewarden.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- end }}

{{/* More labels and annotations of the pods of operator or relay. */}}
{{- define "casewarden.podLabels" -}}
{{- with .podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Environment of operator and relay: proxies, authorities, extraEnv. Arguments: the root, the part's values. */}}
{{- define "casewarden.env" -}}
{{- $root := index . 0 }}
{{- $part := index . 1 }}
{{- with $root.Values.proxy }}
{{- if or .http .https }}
{{- with .http }}
- {name: HTTP_PROXY, value: {{ . | quote }}}
- {name: http_proxy, value: {{ . | quote }}}
{{- end }}
{{- with .https }}
- {name: HTTPS_PROXY, value: {{ . | quote }}}
- {name: https_proxy, value: {{ . | quote }}}
{{- end }}
{{- /* The kubelet puts the API server's address in. */}}
{{- $no := concat (list "$(KUBERNETES_SERVICE_HOST)" "localhost" "127.0.0.1" "::1" ".svc" ".cluster.local" "169.254.169.254") (.bypass | default list) }}
- {name: NO_PROXY, value: {{ join "," $no | quote }}}
- {name: no_proxy, value: {{ join "," $no | quote }}}
{{- end }}
{{- end }}
{{- with $root.Values.authorities }}
{{- if .configMap }}
# The folder has the usual ones: with it they are trusted, too.
- {name: SSL_CERT_FILE, value: /etc/casewarden-authorities/{{ .key | default "ca.crt" }}}
- {name: SSL_CERT_DIR, value: /etc/ssl/certs}
{{- end }}
{{- end }}
{{- with $part.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "casewarden.authoritiesVolume" -}}
{{- if (.Values.authorities).configMap }}
- name: authorities
  configMap: {name: {{ .Values.authorities.configMap }}}
{{- end }}
{{- end }}

{{- define "casewarden.authoritiesMount" -}}
{{- if (.Values.authorities).configMap }}
- {name: authorities, mountPath: /etc/casewarden-authorities, readOnly: true}
{{- end }}
{{- end }}
