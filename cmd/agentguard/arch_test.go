package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The tests of this file read the module's sources in process and not by
// `go list`: so Go's test cache knows which files the verdict depends on, and
// files for other systems are judged too.

const module = "agentguard"

// mayImport is the table of layers: which packages of this module a package
// may import. A package without a row is refused, so a new one states its
// place. "cmd/agentguard" stands for the main program.
var mayImport = map[string][]string{
	// L0: the vocabulary.
	"guard/event":   {},
	"guard/surface": {},
	// L1: the only readers of YAML and of git.
	"guard/policy": {"guard/surface"},
	"guard/git":    {"guard/surface"},
	// L2: the mechanisms, of which none knows another.
	"hooks":               {"guard/git"},
	"integrity":           {"guard/surface"},
	"egress":              {"guard/event", "guard/policy"},
	"guard/watch":         {"guard/event", "guard/surface"},
	"sandbox":             {"sandbox/broker", "sandbox/seccomp", "sandbox/stage"},
	"sandbox/broker":      {"sandbox/seccomp"},
	"sandbox/probe":       {"guard/surface"},
	"sandbox/seccomp":     {},
	"sandbox/seccomp/gen": {"sandbox/seccomp"},
	"sandbox/stage":       {"guard/surface", "sandbox/broker", "sandbox/seccomp"},
	// L3: puts them in order.
	"guard": {
		"guard/event", "guard/git", "guard/policy", "guard/surface", "guard/watch",
		"hooks", "integrity", "egress", "sandbox", "sandbox/broker", "sandbox/probe", "sandbox/seccomp",
	},
	// L4: flags in, hints and statuses out. The stage is imported for its
	// start-up, hooks and integrity for their error types.
	"cmd/agentguard": {
		"guard", "guard/event", "guard/git", "guard/policy", "guard/surface", "guard/watch",
		"hooks", "integrity", "sandbox", "sandbox/probe", "sandbox/stage",
	},
}

// owner tells which packages may import a module of others. Tests of any
// package may import those of testModules besides.
var owner = map[string][]string{
	"gopkg.in/yaml.v3":                     {"guard/policy"},
	"github.com/go-git/go-git/v5":          {"guard/git"},
	"github.com/pjbgf/sha1cd":              {"guard/git"},
	"github.com/fsnotify/fsnotify":         {"guard/watch"},
	"github.com/seccomp/libseccomp-golang": {"sandbox/seccomp", "sandbox/seccomp/gen"},
	"github.com/landlock-lsm/go-landlock":  {"sandbox", "sandbox/stage"},
	"github.com/spf13/cobra":               {"cmd/agentguard"},
	"golang.org/x/net":                     {"guard/policy"},
	"golang.org/x/text":                    {"guard/surface"},
	"golang.org/x/sys": {
		"guard/surface", "guard/watch", "integrity", "egress",
		"sandbox", "sandbox/broker", "sandbox/probe", "sandbox/seccomp", "sandbox/stage",
	},
}

var testModules = []string{"github.com/rogpeppe/go-internal", "golang.org/x/sys"}

// stageRoot is the package whose start-up every sandboxed process pays for,
// before main and before most other packages are initialised.
const stageRoot = "sandbox/stage"

// stageForbids are the packages that it and what it imports of this module
// must not import, each because of what its start-up or its size costs.
var stageForbids = map[string]string{
	"crypto/tls":    "initialises certificates and ciphers",
	"flag":          "the stage's arguments are positional",
	"html/template": "pulls in reflection and parsers",
	"log":           "a logger; the stage reports by status and one line",
	"net":           "starts the resolver and its tables; sockets come from x/sys",
	"net/http":      "the largest start-up of the standard library",
	"os/exec":       "the stage executes in place",
	"os/user":       "reads the account database",
	"regexp":        "compiles at start-up",
	"text/template": "pulls in reflection and parsers",
	"go/ast":        "a parser",
}

// stageModules are the only modules of others below the stage.
var stageModules = []string{
	"golang.org/x/sys/unix",
	"github.com/landlock-lsm/go-landlock/landlock/syscall",
	"golang.org/x/text/unicode/norm", // names are compared after normalisation, by the broker too
}

// vagueNames say nothing of what is in a package.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "base", "shared", "manager", "lib", "types", "tools", "internal", "pkg"}

// topLevel is everything that may lie at the top besides dot-files. bin and
// dist are what the build leaves, never tracked.
var topLevel = []string{
	"cmd", "guard", "hooks", "sandbox", "egress", "integrity", "testdata", "docs",
	"go.mod", "go.sum", "Makefile", "README.md", "LICENSE",
	"bin", "dist",
}

// source is one Go file of the module.
type source struct {
	file string // relative to the root, with slashes
	pkg  string // directory of the same
	name string // of its package clause
	test bool
	doc  string // package comment
	imps []string
}

// root is the module's top, seen from this package's directory.
const root = "../.."

// sources parses every Go file that is part of the module.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := relative(name)
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || rel == "bin" || rel == "dist") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		src, err := parseSource(fset, name)
		if err != nil {
			return err
		}
		all = append(all, src)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("no Go file below %s", root)
	}
	return all
}

func relative(name string) string {
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}

func parseSource(fset *token.FileSet, name string) (source, error) {
	file, err := parser.ParseFile(fset, name, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	rel := relative(name)
	src := source{
		file: rel,
		pkg:  path.Dir(rel),
		name: file.Name.Name,
		test: strings.HasSuffix(rel, "_test.go"),
		doc:  docText(file.Doc),
	}
	for _, imp := range file.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			return source{}, fmt.Errorf("%s: import %s: %w", rel, imp.Path.Value, err)
		}
		src.imps = append(src.imps, p)
	}
	return src, nil
}

func docText(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	return strings.TrimSpace(doc.Text())
}

// own gives the package of this module that an import path names.
func own(imp string) (string, bool) {
	return strings.CutPrefix(imp, module+"/")
}

// foreign tells whether an import path is of another module: the standard
// library has no dot in its first element.
func foreign(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return strings.Contains(first, ".")
}

func inModule(imp, mod string) bool {
	return imp == mod || strings.HasPrefix(imp, mod+"/")
}

func TestLayers(t *testing.T) {
	for _, src := range sources(t) {
		for _, problem := range layerProblems(src) {
			t.Error(problem)
		}
	}
}

// layerProblems judges the imports of one file by mayImport and owner.
func layerProblems(src source) []string {
	var problems []string
	row, known := mayImport[src.pkg]
	if !known {
		return []string{fmt.Sprintf("%s: package %s has no row in mayImport", src.file, src.pkg)}
	}
	for _, imp := range src.imps {
		if imp == "C" {
			continue
		}
		if pkg, ok := own(imp); ok {
			// An external test imports its own package, and a test may reach
			// for the vocabulary.
			if !slices.Contains(row, pkg) && !(src.test && pkg == src.pkg) {
				problems = append(problems, fmt.Sprintf("%s: %s may not import %s", src.file, src.pkg, pkg))
			}
			continue
		}
		if foreign(imp) && !mayUse(src, imp) {
			problems = append(problems, fmt.Sprintf("%s: %s does not own %s", src.file, src.pkg, imp))
		}
	}
	return problems
}

func mayUse(src source, imp string) bool {
	if src.test && slices.ContainsFunc(testModules, func(mod string) bool { return inModule(imp, mod) }) {
		return true
	}
	for mod, pkgs := range owner {
		if inModule(imp, mod) && slices.Contains(pkgs, src.pkg) {
			return true
		}
	}
	return false
}

func TestLayerProblems(t *testing.T) {
	for _, tc := range []struct {
		name string
		src  source
		want int
	}{
		{"downward", source{pkg: "hooks", imps: []string{"os", "agentguard/guard/git"}}, 0},
		{"a mechanism and another", source{pkg: "hooks", imps: []string{"agentguard/sandbox"}}, 1},
		{"upward", source{pkg: "guard/git", imps: []string{"agentguard/guard"}}, 1},
		{"a package without a row", source{pkg: "guard/extra"}, 1},
		{"a module owned", source{pkg: "guard/policy", imps: []string{"gopkg.in/yaml.v3"}}, 0},
		{"a module owned by another", source{pkg: "egress", imps: []string{"gopkg.in/yaml.v3"}}, 1},
		{"a package below a module owned", source{pkg: "guard/git", imps: []string{"github.com/go-git/go-git/v5/plumbing"}}, 0},
		{"a module that begins alike", source{pkg: "guard/git", imps: []string{"github.com/go-git/go-git/v55"}}, 1},
		{"a module nobody owns", source{pkg: "guard/git", imps: []string{"example.com/x"}}, 1},
		{"a test's module in a test", source{pkg: "hooks", test: true, imps: []string{"github.com/rogpeppe/go-internal/testscript"}}, 0},
		{"a test's module outside", source{pkg: "hooks", imps: []string{"github.com/rogpeppe/go-internal/testscript"}}, 1},
		{"an external test", source{pkg: "hooks", test: true, imps: []string{"agentguard/hooks"}}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := layerProblems(tc.src); len(got) != tc.want {
				t.Errorf("layerProblems = %q, want %d", got, tc.want)
			}
		})
	}
}

// TestMechanismsApart holds the rule of the house against the table itself:
// a row that lets one mechanism import another is the mistake.
func TestMechanismsApart(t *testing.T) {
	mechanisms := []string{"hooks", "sandbox", "egress", "integrity"}
	top := func(pkg string) string { first, _, _ := strings.Cut(pkg, "/"); return first }
	for pkg, row := range mayImport {
		for _, imp := range row {
			if slices.Contains(mechanisms, top(pkg)) && slices.Contains(mechanisms, top(imp)) && top(pkg) != top(imp) {
				t.Errorf("mayImport lets %s import %s", pkg, imp)
			}
		}
	}
}

func TestStageIsLight(t *testing.T) {
	byPkg := map[string][]source{}
	for _, src := range sources(t) {
		if !src.test && src.name != "main" {
			byPkg[src.pkg] = append(byPkg[src.pkg], src)
		}
	}
	if len(byPkg[stageRoot]) == 0 {
		t.Fatalf("package %s is gone: the stage's start-up is not held by anything", stageRoot)
	}
	seen := map[string]bool{stageRoot: true}
	for queue := []string{stageRoot}; len(queue) > 0; queue = queue[1:] {
		for _, src := range byPkg[queue[0]] {
			for _, imp := range src.imps {
				if why, bad := stageForbids[imp]; bad {
					t.Errorf("%s: imports %s, which is below the stage: %s", src.file, imp, why)
				}
				if foreign(imp) && !slices.Contains(stageModules, imp) {
					t.Errorf("%s: imports %s, which is below the stage", src.file, imp)
				}
				if pkg, ok := own(imp); ok && !seen[pkg] {
					seen[pkg] = true
					queue = append(queue, pkg)
				}
			}
		}
	}
}

func TestPackageComments(t *testing.T) {
	names := map[string]string{}
	docs := map[string][]source{}
	for _, src := range sources(t) {
		if src.test {
			continue
		}
		names[src.pkg] = src.name
		if src.doc != "" {
			docs[src.pkg] = append(docs[src.pkg], src)
		}
	}
	for pkg, name := range names {
		if len(docs[pkg]) != 1 {
			t.Errorf("%s has %d package comments, want 1", pkg, len(docs[pkg]))
			continue
		}
		begin := "Package " + name + " "
		doc := docs[pkg][0]
		if !strings.HasPrefix(doc.doc, begin) {
			t.Errorf("%s: the package comment does not begin with %q", doc.file, begin)
		}
		paragraphs := strings.Split(doc.doc, "\n\n")
		if last := paragraphs[len(paragraphs)-1]; !strings.HasPrefix(last, "Does not ") {
			t.Errorf("%s: the package comment does not end with a paragraph \"Does not …\"", doc.file)
		}
	}
}

func TestPackageNames(t *testing.T) {
	for _, src := range sources(t) {
		for _, elem := range strings.Split(src.pkg, "/") {
			if slices.Contains(vagueNames, elem) {
				t.Errorf("%s: %q says nothing of what is inside", src.file, elem)
			}
		}
		name := strings.TrimSuffix(src.name, "_test")
		if name != "main" && name != path.Base(src.pkg) {
			t.Errorf("%s: package %s in directory %s", src.file, name, src.pkg)
		}
	}
}

func TestTopLevel(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, e := range entries {
		found[e.Name()] = true
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(topLevel, e.Name()) {
			t.Errorf("%s does not belong at the top level", e.Name())
		}
	}
	for _, name := range append([]string{".agentguard.yaml"}, topLevel...) {
		if !found[name] && name != "bin" && name != "dist" {
			t.Errorf("%s is missing at the top level", name)
		}
	}
}

// localPath finds a path of the machine that something was written on. It is
// put together so that this file does not hold one.
var localPath = regexp.MustCompile(`(^|[\s"'=:(` + "`" + `])/(wo` + `rk/(main|shared|\.library)|ro` + `ot/(go|\.cache|\.npm|\.pyenv)|tm` + `p/brief)\b`)

// registries are the hosts that the environment of a build chooses, never a
// file of the project.
var registries = []string{
	"proxy." + "golang.org", "sum." + "golang.org", "registry." + "npmjs.org", "registry." + "yarnpkg.com",
	"deb." + "debian.org", "archive." + "ubuntu.com", "files." + "pythonhosted.org", "pypi." + "org", "static." + "crates.io",
}

func TestNoMachineInFiles(t *testing.T) {
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := relative(name)
		if d.IsDir() {
			if rel == ".git" || rel == "bin" || rel == "dist" {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if bytes.IndexByte(content, 0) >= 0 {
			return nil // not text
		}
		for _, problem := range machineProblems(rel, string(content)) {
			t.Error(problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func machineProblems(file, content string) []string {
	var problems []string
	if found := localPath.FindString(content); found != "" {
		problems = append(problems, fmt.Sprintf("%s: holds the machine path %q", file, strings.TrimSpace(found)))
	}
	for _, host := range registries {
		if strings.Contains(content, host) {
			problems = append(problems, fmt.Sprintf("%s: holds the registry host %s", file, host))
		}
	}
	return problems
}

func TestMachineProblems(t *testing.T) {
	for _, tc := range []struct {
		name, file, content string
		want                int
	}{
		{"nothing", "a.go", "the root of a work tree", 0},
		{"a machine path", "a.go", `cd "/wo` + `rk/main"`, 1},
		{"a path that only ends so", "a.go", "/srv/wo" + "rk/main", 0},
		{"a registry", "Makefile", "GOPROXY=https://proxy." + "golang.org", 1},
		{"a registry in a policy", ".agentguard.yaml", "host: proxy." + "golang.org", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := machineProblems(tc.file, tc.content); len(got) != tc.want {
				t.Errorf("machineProblems = %q, want %d", got, tc.want)
			}
		})
	}
}
