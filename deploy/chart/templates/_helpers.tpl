{{- define "krafla.image" -}}
{{- with .Values.basic.image_registry }}{{ . }}/{{ end }}{{ .Values.basic.controller_image_name }}:{{ .Values.basic.image_tag_version }}
{{- end }}

{{- /* Where pods run, and with which pull secret. */ -}}
{{- define "krafla.placement" -}}
{{- with .Values.basic.image_pull_secret }}
      imagePullSecrets:
        - name: {{ . }}
{{- end }}
{{- with .Values.custom.default_ns }}
      nodeSelector: {{- toYaml . | nindent 8 }}
{{- end }}
{{- with .Values.custom.default_tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
{{- end }}
{{- with .Values.custom.default_affinity }}
      affinity: {{- toYaml . | nindent 8 }}
{{- end }}
{{- end }}
