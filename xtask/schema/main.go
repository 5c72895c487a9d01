// Command schema writes the table of Kubernetes' built-in types that the embedded API server is driven by.
//
//	modules (go mod download) -> syntax trees -> types reachable from the served kinds -> builtin.txt
//
// Only facts are taken: names, types, field numbers, tags and markers. No description or sentence leaves this program.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
)

// version is the release of Kubernetes' libraries whose types are tabled; 0.36 belongs to Kubernetes 1.36.
const version = "v0.36.6"

// modules are the libraries that the types live in, by import path.
var modules = []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver", "k8s.io/kube-aggregator"}

// everyGroup stands for the group of types that belong to all of them, such as DeleteOptions.
const everyGroup = "*"

// served lists, per package, the types from which everything else is reached. A type that has a list type
// (Pod, PodList) brings it along.
var served = []root{
	{path: "k8s.io/apimachinery/pkg/apis/meta/v1", group: everyGroup, types: []string{
		"APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Condition", "CreateOptions", "DeleteOptions",
		"GetOptions", "LabelSelector", "ListMeta", "ListOptions", "ObjectMeta", "PartialObjectMetadata", "PatchOptions",
		"Status", "Table", "UpdateOptions", "WatchEvent",
	}},
	{path: "k8s.io/api/core/v1", group: "", types: []string{
		"Binding", "ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume",
		"PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController", "ResourceQuota", "Secret", "Service",
		"ServiceAccount",
	}},
	{path: "k8s.io/api/admissionregistration/v1", group: "admissionregistration.k8s.io", types: []string{
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	}},
	{path: "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", group: "apiextensions.k8s.io", types: []string{
		"CustomResourceDefinition",
	}},
	{path: "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1", group: "apiregistration.k8s.io", types: []string{
		"APIService",
	}},
	{path: "k8s.io/api/apps/v1", group: "apps", types: []string{
		"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet",
	}},
	{path: "k8s.io/api/authentication/v1", group: "authentication.k8s.io", types: []string{
		"SelfSubjectReview", "TokenRequest", "TokenReview",
	}},
	{path: "k8s.io/api/authorization/v1", group: "authorization.k8s.io", types: []string{
		"LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview",
	}},
	{path: "k8s.io/api/autoscaling/v1", group: "autoscaling", types: []string{"HorizontalPodAutoscaler", "Scale"}},
	{path: "k8s.io/api/autoscaling/v2", group: "autoscaling", types: []string{"HorizontalPodAutoscaler"}},
	{path: "k8s.io/api/batch/v1", group: "batch", types: []string{"CronJob", "Job"}},
	{path: "k8s.io/api/certificates/v1", group: "certificates.k8s.io", types: []string{"CertificateSigningRequest"}},
	{path: "k8s.io/api/coordination/v1", group: "coordination.k8s.io", types: []string{"Lease"}},
	{path: "k8s.io/api/discovery/v1", group: "discovery.k8s.io", types: []string{"EndpointSlice"}},
	{path: "k8s.io/api/events/v1", group: "events.k8s.io", types: []string{"Event"}},
	{path: "k8s.io/api/flowcontrol/v1", group: "flowcontrol.apiserver.k8s.io", types: []string{
		"FlowSchema", "PriorityLevelConfiguration",
	}},
	{path: "k8s.io/api/networking/v1", group: "networking.k8s.io", types: []string{
		"Ingress", "IngressClass", "NetworkPolicy",
	}},
	{path: "k8s.io/api/node/v1", group: "node.k8s.io", types: []string{"RuntimeClass"}},
	{path: "k8s.io/api/policy/v1", group: "policy", types: []string{"Eviction", "PodDisruptionBudget"}},
	{path: "k8s.io/api/rbac/v1", group: "rbac.authorization.k8s.io", types: []string{
		"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
	}},
	{path: "k8s.io/api/resource/v1", group: "resource.k8s.io", types: []string{
		"DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice",
	}},
	{path: "k8s.io/api/scheduling/v1", group: "scheduling.k8s.io", types: []string{"PriorityClass"}},
	{path: "k8s.io/api/storage/v1", group: "storage.k8s.io", types: []string{
		"CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment",
		"VolumeAttributesClass",
	}},
}

// root names types of one package.
type root struct {
	path  string
	group string
	types []string
}

func main() {
	out := flag.String("out", "../../crates/schema/src/builtin.txt", "where the table is written")
	internalOut := flag.String("internal", "../../crates/admission/src/internal/types.txt", "where the table of internal types is written")
	flag.Parse()
	source, err := openSource(modules, version)
	if err != nil {
		log.Fatal(err)
	}
	var table bytes.Buffer
	fmt.Fprintf(&table, "# Kubernetes' built-in types, from its libraries at %s. Generated: do not edit.\n", version)
	fmt.Fprintln(&table, "# Regenerate: (cd xtask/schema && go run .)")
	fmt.Fprintln(&table, "# What the lines mean is written in table.rs.")
	if err := writeTable(&table, source, served); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*out, table.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
	writeInternalFile(source, *internalOut)
}

// writeInternalFile writes the table of internal types, which refer to those of the libraries.
func writeInternalFile(source *source, out string) {
	if err := source.add("k8s.io/kubernetes", internalVersion); err != nil {
		log.Fatal(err)
	}
	var table bytes.Buffer
	fmt.Fprintf(&table, "# Kubernetes' internal types that messages quote, at %s. Generated: do not edit.\n", internalVersion)
	fmt.Fprintln(&table, "# Regenerate: (cd xtask/schema && go run .)")
	fmt.Fprintln(&table, "# What the lines mean is written in mod.rs.")
	if err := writeInternal(&table, source, internalRoots); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(out, table.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
