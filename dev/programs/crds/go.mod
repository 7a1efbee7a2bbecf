// Not built: the custom resources of others, as their modules bring them.
module casewarden.dev/development-cluster/crds

go 1.25.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
