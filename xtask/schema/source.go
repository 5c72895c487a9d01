package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// source finds packages in downloaded modules and keeps those already read.
type source struct {
	dirs     map[string]string // module path -> directory
	packages map[string]*pkg   // import path -> package
}

// pkg is what one package declares.
type pkg struct {
	path      string
	types     map[string]*decl
	constants map[string]constant
}

// constant is one constant declaration. Its type is empty where the value alone says it.
type constant struct {
	pkg      *pkg
	typeName string
	value    ast.Expr
	imports  map[string]string
}

// decl is one type declaration.
type decl struct {
	pkg     *pkg
	name    string
	expr    ast.Expr
	markers markers
	imports map[string]string // local name -> import path, of the declaring file
}

// openSource downloads the modules into Go's cache, which also checks them against the public checksum database.
func openSource(modules []string, version string) (*source, error) {
	s := &source{dirs: map[string]string{}, packages: map[string]*pkg{}}
	for _, module := range modules {
		if err := s.add(module, version); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// add downloads one more module.
func (s *source) add(module, version string) error {
	answer, err := exec.Command("go", "mod", "download", "-json", module+"@"+version).Output()
	if err != nil {
		return fmt.Errorf("download of %s@%s: %w", module, version, err)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(answer, &downloaded); err != nil {
		return err
	}
	s.dirs[module] = downloaded.Dir
	return nil
}

// load reads a package, once.
func (s *source) load(path string) (*pkg, error) {
	if p, ok := s.packages[path]; ok {
		return p, nil
	}
	for module, dir := range s.dirs {
		if rest, ok := strings.CutPrefix(path, module+"/"); ok {
			p, err := parsePackage(path, filepath.Join(dir, rest))
			if err != nil {
				return nil, err
			}
			s.packages[path] = p
			return p, nil
		}
	}
	return nil, fmt.Errorf("package %s is in none of the modules", path)
}

func parsePackage(path, dir string) (*pkg, error) {
	p := &pkg{path: path, types: map[string]*decl{}, constants: map[string]constant{}}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.addFile(file)
	}
	return p, nil
}

func (p *pkg) addFile(file *ast.File) {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = path
	}
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				doc := spec.Doc
				if doc == nil {
					doc = general.Doc
				}
				name := spec.Name.Name
				p.types[name] = &decl{pkg: p, name: name, expr: spec.Type, markers: readMarkers(doc), imports: imports}
			case *ast.ValueSpec:
				if general.Tok == token.CONST {
					p.addConstant(spec, imports)
				}
			}
		}
	}
}

func (p *pkg) addConstant(spec *ast.ValueSpec, imports map[string]string) {
	if len(spec.Names) != 1 || len(spec.Values) != 1 {
		return
	}
	c := constant{pkg: p, value: spec.Values[0], imports: imports}
	if named, ok := spec.Type.(*ast.Ident); ok {
		c.typeName = named.Name
	}
	// A conversion, T("value"), says the type in the value.
	if call, ok := c.value.(*ast.CallExpr); ok && len(call.Args) == 1 {
		if named, ok := call.Fun.(*ast.Ident); ok {
			c.typeName, c.value = named.Name, call.Args[0]
		}
	}
	p.constants[spec.Names[0].Name] = c
}

// text is the value of a string constant, which may be that of another package's constant.
func (s *source) text(c constant) (string, error) {
	switch value := c.value.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(value.Value)
	case *ast.SelectorExpr:
		if qualifier, ok := value.X.(*ast.Ident); ok {
			other, err := s.load(c.imports[qualifier.Name])
			if err != nil {
				return "", err
			}
			return s.text(other.constants[value.Sel.Name])
		}
	}
	return "", fmt.Errorf("constant %v of %s is not understood", c.value, c.pkg.path)
}

// markers are the "+name=value" lines of a comment.
type markers map[string][]string

func readMarkers(doc *ast.CommentGroup) markers {
	found := markers{}
	if doc == nil {
		return found
	}
	for _, comment := range doc.List {
		line := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
		if rest, ok := strings.CutPrefix(line, "+"); ok {
			name, value, _ := strings.Cut(rest, "=")
			found[name] = append(found[name], value)
		}
	}
	return found
}

func (m markers) has(name string) bool { return len(m[name]) > 0 }

func (m markers) first(name string) string {
	if values := m[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}
