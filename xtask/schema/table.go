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

// special are the types with a JSON form of their own; the table names them in lower case and the server knows them.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        "microtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":                                         "duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         "fields",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         "quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       "intorstring",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          "raw",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "json",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "schemaorarray",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "schemaorbool",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "schemaorstrings",
}

// basic are Go's own types that fields have. An unsigned or sized integer that is not here stops the program.
var basic = []string{"string", "bool", "int32", "int64", "float64"}

// table collects the types reachable from the roots.
type table struct {
	source *source
	seen   map[string]bool
	lines  map[string][]string // package path -> lines of its types, each type one string
}

func writeTable(out io.Writer, source *source, roots []root) error {
	t := &table{source: source, seen: map[string]bool{}, lines: map[string][]string{}}
	groups := map[string]string{}
	for _, r := range roots {
		groups[r.path] = r.group
		p, err := source.load(r.path)
		if err != nil {
			return err
		}
		for _, name := range withLists(p, r.types) {
			if p.types[name] == nil {
				return fmt.Errorf("%s has no type %s", r.path, name)
			}
			if err := t.add(p.types[name]); err != nil {
				return err
			}
		}
	}
	paths := make([]string, 0, len(t.lines))
	for path := range t.lines {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		fmt.Fprintf(out, "\npackage %s %s", alias(path), openAPIName(path))
		if group, ok := groups[path]; ok && group != everyGroup {
			fmt.Fprintf(out, " group=%s", group)
		}
		fmt.Fprintln(out)
		sort.Strings(t.lines[path])
		fmt.Fprint(out, strings.Join(t.lines[path], ""))
	}
	return nil
}

func withLists(p *pkg, names []string) []string {
	var all []string
	for _, name := range names {
		all = append(all, name)
		if p.types[name+"List"] != nil && !slices.Contains(names, name+"List") {
			all = append(all, name+"List")
		}
	}
	return all
}

// add writes one declared type and everything it refers to.
func (t *table) add(d *decl) error {
	full := d.pkg.path + "." + d.name
	if t.seen[full] {
		return nil
	}
	t.seen[full] = true
	structure, ok := d.expr.(*ast.StructType)
	if !ok {
		return t.addNamed(d)
	}
	var line strings.Builder
	fmt.Fprintf(&line, "type %s", d.name)
	if slices.ContainsFunc(structure.Fields.List, isTypeMeta) {
		line.WriteString(" kind")
	}
	if d.markers.first("structType") == "atomic" || d.markers.first("mapType") == "atomic" {
		line.WriteString(" atomic")
	}
	line.WriteString("\n")
	if err := t.addFields(&line, d, structure, ""); err != nil {
		return fmt.Errorf("%s: %w", full, err)
	}
	t.lines[d.pkg.path] = append(t.lines[d.pkg.path], line.String())
	return nil
}

// isTypeMeta tells whether a field inlines apiVersion and kind. The table says so once, in the type's line.
func isTypeMeta(field *ast.Field) bool {
	if len(field.Names) > 0 {
		return false
	}
	switch embedded := field.Type.(type) {
	case *ast.Ident:
		return embedded.Name == "TypeMeta"
	case *ast.SelectorExpr:
		return embedded.Sel.Name == "TypeMeta"
	}
	return false
}

// addNamed writes a named type that is no struct: a kind of string, a list or a map.
func (t *table) addNamed(d *decl) error {
	underlying, err := t.typeName(d, d.expr)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("named %s %s", d.name, underlying)
	if d.markers.has("protobuf.nullable") {
		line += " wrapped"
	}
	if d.markers.has("enum") {
		values, err := t.enumValues(d)
		if err != nil {
			return err
		}
		line += " enum=" + strings.Join(values, ",")
	}
	t.lines[d.pkg.path] = append(t.lines[d.pkg.path], line+"\n")
	return nil
}

func (t *table) enumValues(d *decl) ([]string, error) {
	var values []string
	for _, c := range d.pkg.constants {
		if c.typeName != d.name {
			continue
		}
		value, err := t.source.text(c)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	slices.Sort(values)
	return slices.Compact(values), nil
}

// addFields writes a struct's fields. Inlined structs are flattened; where one is a message of its own in protobuf,
// its fields carry the path of numbers that leads to them.
func (t *table) addFields(line *strings.Builder, d *decl, structure *ast.StructType, numbers string) error {
	for _, field := range structure.Fields.List {
		var tag reflect.StructTag
		if field.Tag != nil {
			tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`"))
		}
		name, options, _ := strings.Cut(tag.Get("json"), ",")
		if name == "-" || isTypeMeta(field) {
			continue
		}
		number, err := protobufNumber(tag)
		if err != nil {
			return err
		}
		if name == "" {
			if err := t.addInlined(line, d, field, inner(numbers, number)); err != nil {
				return err
			}
			continue
		}
		typeName, err := t.typeName(d, field.Type)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(line, "  %s %s %s", name, leaf(numbers, number), typeName)
		attributes, err := t.attributes(d, tag, options, readMarkers(field.Doc))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, attribute := range attributes {
			line.WriteString(" " + attribute)
		}
		line.WriteString("\n")
	}
	return nil
}

func (t *table) addInlined(line *strings.Builder, d *decl, field *ast.Field, numbers string) error {
	target, err := t.resolve(d, field.Type)
	if err != nil {
		return err
	}
	structure, ok := target.expr.(*ast.StructType)
	if !ok {
		return fmt.Errorf("inlined %s is no struct", target.name)
	}
	return t.addFields(line, target, structure, numbers)
}

// attributes puts a field's tags and markers into the table's words; the default comes last, as it may hold spaces.
func (t *table) attributes(d *decl, tag reflect.StructTag, options string, marks markers) ([]string, error) {
	var found []string
	add := func(key, value string) {
		if value != "" {
			found = append(found, key+"="+value)
		}
	}
	if strings.Contains(options, "omitempty") {
		found = append(found, "?")
	} else if marks.has("optional") {
		found = append(found, "optional")
	}
	if strings.Contains(options, "omitzero") {
		found = append(found, "omitzero")
	}
	add("patch", tag.Get("patchStrategy"))
	add("key", tag.Get("patchMergeKey"))
	add("list", marks.first("listType"))
	add("keys", strings.Join(marks["listMapKey"], ","))
	if marks.first("structType") == "granular" {
		found = append(found, "granular")
	}
	if marks.first("mapType") == "atomic" || marks.first("structType") == "atomic" {
		found = append(found, "atomic")
	}
	if value := marks.first("default"); value != "" {
		if reference, ok := strings.CutPrefix(value, "ref("); ok {
			text, err := t.source.text(d.pkg.constants[strings.TrimSuffix(reference, ")")])
			if err != nil {
				return nil, err
			}
			value = fmt.Sprintf("%q", text)
		}
		add("default", value)
	}
	return found, nil
}

// protobufNumber is the field number in a tag such as "bytes,2,opt,name=spec"; empty where a field is not encoded.
func protobufNumber(tag reflect.StructTag) (string, error) {
	value, ok := tag.Lookup("protobuf")
	if !ok || value == "-" {
		return "", nil
	}
	parts := strings.Split(value, ",")
	if len(parts) < 3 {
		return "", fmt.Errorf("protobuf tag %q is not understood", value)
	}
	return parts[1], nil
}

func inner(numbers, number string) string {
	if number == "" {
		return numbers
	}
	return numbers + number + "."
}

func leaf(numbers, number string) string {
	if number == "" {
		return "-"
	}
	return numbers + number
}

// typeName is how the table writes a type: *T, []T, {}T, a basic or special type, or package.Type.
func (t *table) typeName(d *decl, expr ast.Expr) (string, error) {
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
	case *ast.InterfaceType:
		return "any", nil
	case *ast.Ident:
		if slices.Contains(basic, expr.Name) {
			return expr.Name, nil
		}
	}
	target, err := t.resolve(d, expr)
	if err != nil {
		return "", err
	}
	if name, ok := special[target.pkg.path+"."+target.name]; ok {
		return name, t.addSpecial(target, name)
	}
	if err := t.add(target); err != nil {
		return "", err
	}
	if target.pkg == d.pkg {
		return target.name, nil
	}
	return alias(target.pkg.path) + "." + target.name, nil
}

// addSpecial brings along the type that a special type may hold: the three unions around JSON schemas.
func (t *table) addSpecial(target *decl, name string) error {
	if strings.HasPrefix(name, "schemaor") {
		return t.add(target.pkg.types["JSONSchemaProps"])
	}
	return nil
}

// resolve finds the declaration that an identifier names, in this package or an imported one.
func (t *table) resolve(d *decl, expr ast.Expr) (*decl, error) {
	p, name := d.pkg, ""
	switch expr := expr.(type) {
	case *ast.Ident:
		name = expr.Name
	case *ast.SelectorExpr:
		qualifier, ok := expr.X.(*ast.Ident)
		if !ok {
			return nil, fmt.Errorf("selector %v is not understood", expr)
		}
		loaded, err := t.source.load(d.imports[qualifier.Name])
		if err != nil {
			return nil, err
		}
		p, name = loaded, expr.Sel.Name
	default:
		return nil, fmt.Errorf("type expression %T is not understood", expr)
	}
	if found := p.types[name]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("type %s.%s is not declared", p.path, name)
}

// alias is a package's short name in the table: core.v1 for k8s.io/api/core/v1, types for .../pkg/types.
func alias(path string) string {
	parts := strings.Split(path, "/")
	last := parts[len(parts)-1]
	if strings.HasPrefix(last, "v") && len(parts) > 1 {
		return parts[len(parts)-2] + "." + last
	}
	return last
}

// openAPIName is a package's name in OpenAPI documents: io.k8s.api.core.v1 for k8s.io/api/core/v1.
func openAPIName(path string) string {
	host, rest, _ := strings.Cut(path, "/")
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".") + "." + strings.ReplaceAll(rest, "/", ".")
}
