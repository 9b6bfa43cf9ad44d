// If this failed, `go doc` would show calls and options without a word.

package leat

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

func TestEverythingExportedIsDocumented(t *testing.T) {
	documented := 0
	check := func(name string, comments ...*ast.CommentGroup) {
		for _, comment := range comments {
			if comment != nil {
				documented++
				return
			}
		}
		t.Errorf("%s has no comment", name)
	}
	for _, name := range must(filepath.Glob("*.go")) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must(parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments))
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && isOfExported(d) {
					check(d.Name.Name, d.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					checkSpec(d, spec, check)
				}
			}
		}
	}
	expect(t, documented > 200, true)
}

// Whether it is a function, or a method of an exported type or of the handle that is in each of them.
func isOfExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	receiver := d.Recv.List[0].Type
	if pointer, isPointer := receiver.(*ast.StarExpr); isPointer {
		receiver = pointer.X
	}
	name := receiver.(*ast.Ident)
	return name.IsExported() || name.Name == "handle"
}

func checkSpec(d *ast.GenDecl, spec ast.Spec, check func(name string, comments ...*ast.CommentGroup)) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				check(name.Name, s.Doc, s.Comment, d.Doc)
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		check(s.Name.Name, s.Doc, d.Doc)
		fields, isStruct := s.Type.(*ast.StructType)
		if !isStruct {
			return
		}
		for _, field := range fields.Fields.List {
			for _, name := range field.Names {
				if name.IsExported() {
					check(s.Name.Name+"."+name.Name, field.Doc, field.Comment)
				}
			}
		}
	}
}
