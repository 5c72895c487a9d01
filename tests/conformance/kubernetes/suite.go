// Package kubernetes pins the parts of Kubernetes that scripts/conformance builds, unchanged: its end-to-end suite, and by
// the tool lines of go.mod agnhost, which the suite's pods run, and ginkgo's command, which runs a suite in parallel.
package kubernetes

import _ "k8s.io/kubernetes/test/e2e"
