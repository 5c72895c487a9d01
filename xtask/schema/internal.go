package main

import (
	"fmt"
	"go/ast"
	"io"
	"reflect"
	"slices"
	"sort"
	"strings"
)

// internalVersion is the release of Kubernetes whose internal types are tabled.
const internalVersion = "v1.36.1"

// internalRoots lists the internal types that messages of a kube-apiserver quote, by package below pkg/apis. Everything
// that they refer to comes along.
var internalRoots = []root{
	{path: "k8s.io/kubernetes/pkg/apis/core", types: []string{
		"ContainerPort", "EndpointPort", "EndpointSubset", "EnvVar", "HostIP", "NodeSpec", "PersistentVolumeClaimSpec",
		"PersistentVolumeSource", "PersistentVolumeSpec", "PodIP", "PodTemplateSpec", "ResourceQuotaSpec", "ServiceSpec", "Taint", "Volume",
	}},
	{path: "k8s.io/kubernetes/pkg/apis/apps", types: []string{
		"DaemonSetSpec", "DeploymentSpec", "ReplicaSetSpec", "StatefulSetSpec",
	}},
	{path: "k8s.io/kubernetes/pkg/apis/autoscaling", types: []string{"HorizontalPodAutoscalerSpec"}},
	{path: "k8s.io/kubernetes/pkg/apis/batch", types: []string{"CronJobSpec", "JobSpec", "JobStatus"}},
	{path: "k8s.io/kubernetes/pkg/apis/discovery", types: []string{"EndpointSlice"}},
	{path: "k8s.io/kubernetes/pkg/apis/flowcontrol", types: []string{
		"FlowDistinguisherMethod", "FlowSchemaSpec", "PriorityLevelConfigurationSpec",
	}},
	{path: "k8s.io/kubernetes/pkg/apis/networking", types: []string{
		"IngressClassSpec", "IngressSpec", "NetworkPolicySpec",
	}},
	{path: "k8s.io/kubernetes/pkg/apis/policy", types: []string{"PodDisruptionBudgetSpec"}},
	{path: "k8s.io/kubernetes/pkg/apis/rbac", types: []string{"RoleRef", "Subject"}},
	{path: "k8s.io/kubernetes/pkg/apis/resource", types: []string{
		"AllocationResult", "Device", "DeviceClassSpec", "ResourceClaimConsumerReference", "ResourceClaimSpec",
		"ResourceClaimTemplateSpec", "ResourceSliceSpec",
	}},
	{path: "k8s.io/kubernetes/pkg/apis/storage", types: []string{
		"CSIDriverSpec", "CSINodeDriver", "CSINodeSpec", "StorageClass", "VolumeAttachmentSpec",
	}},
}

// internalTable collects the internal types reachable from the roots: one line each, fields in the order of their
// declaration, which is the order in which messages show them.
type internalTable struct {
	table
	rows map[string]string
}

func writeInternal(out io.Writer, source *source, roots []root) error {
	t := &internalTable{table: table{source: source}, rows: map[string]string{}}
	for _, r := range roots {
		p, err := source.load(r.path)
		if err != nil {
			return err
		}
		for _, name := range r.types {
			if p.types[name] == nil {
				return fmt.Errorf("%s has no type %s", r.path, name)
			}
			if err := t.add(p.types[name]); err != nil {
				return err
			}
		}
	}
	names := make([]string, 0, len(t.rows))
	for name := range t.rows {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(out, "%s%s\n", name, t.rows[name])
	}
	return nil
}

func (t *internalTable) add(d *decl) error {
	name := alias(d.pkg.path) + "." + d.name
	if _, seen := t.rows[name]; seen {
		return nil
	}
	t.rows[name] = ""
	structure, ok := d.expr.(*ast.StructType)
	if !ok {
		return fmt.Errorf("%s is no struct", name)
	}
	var row strings.Builder
	if err := t.addFields(&row, d, structure); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	t.rows[name] = row.String()
	return nil
}

// addFields writes fields as encoding/json would name them: by tag, or else by the name in Go. "?" marks omitempty.
func (t *internalTable) addFields(row *strings.Builder, d *decl, structure *ast.StructType) error {
	for _, field := range structure.Fields.List {
		var tag reflect.StructTag
		if field.Tag != nil {
			tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
		}
		tagged, options, _ := strings.Cut(tag.Get("json"), ",")
		if tagged == "-" || isTypeMeta(field) {
			continue
		}
		if len(field.Names) == 0 && tagged == "" {
			target, err := t.resolve(d, field.Type)
			if err != nil {
				return err
			}
			inner, ok := target.expr.(*ast.StructType)
			if !ok {
				return fmt.Errorf("inlined %s is no struct", target.name)
			}
			if err := t.addFields(row, target, inner); err != nil {
				return err
			}
			continue
		}
		typeName, err := t.typeName(d, field.Type)
		if err != nil {
			return err
		}
		omitted := ""
		if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
			omitted = "?"
		}
		names := []string{tagged}
		if tagged == "" {
			names = names[:0]
			for _, name := range field.Names {
				names = append(names, name.Name)
			}
		}
		for _, name := range names {
			fmt.Fprintf(row, " %s%s:%s", name, omitted, typeName)
		}
	}
	return nil
}

// typeName is the type with every name of something that is no struct replaced by what it stands for.
func (t *internalTable) typeName(d *decl, expr ast.Expr) (string, error) {
	switch expr := expr.(type) {
	case *ast.StarExpr:
		name, err := t.typeName(d, expr.X)
		return "*" + name, err
	case *ast.ArrayType:
		if element, ok := expr.Elt.(*ast.Ident); ok && element.Name == "byte" {
			return "bytes", nil
		}
		name, err := t.typeName(d, expr.Elt)
		return "[]" + name, err
	case *ast.MapType:
		name, err := t.typeName(d, expr.Value)
		return "{}" + name, err
	case *ast.Ident:
		if expr.Name == "int" || slices.Contains(basic, expr.Name) {
			return expr.Name, nil
		}
	}
	target, err := t.resolve(d, expr)
	if err != nil {
		return "", err
	}
	if name, ok := special[target.pkg.path+"."+target.name]; ok {
		return name, nil
	}
	if _, ok := target.expr.(*ast.StructType); !ok {
		return t.typeName(target, target.expr)
	}
	return alias(target.pkg.path) + "." + target.name, t.add(target)
}
