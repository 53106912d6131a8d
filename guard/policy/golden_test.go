package policy

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the .want files of testdata/policy")

// goldenInput places a repository's file where nothing else is, so that the
// printed paths are the same everywhere.
func goldenInput(data []byte) Input {
	return Input{
		Home: "/nonexistent/home", WorkspaceRoot: "/nonexistent/home/repo", Own: []string{"/nonexistent/home/.local/state/agentguard"},
		Repo: &Source{Name: FileName, Data: data}, RepoTrusted: true,
	}
}

// TestGood loads every good file and compares what `policy show` prints.
func TestGood(t *testing.T) {
	eachFile(t, "good", func(t *testing.T, data []byte) string {
		p, err := Load(goldenInput(data))
		if err != nil {
			t.Fatalf("refused:\n%v", err)
		}
		return p.String()
	})
}

// TestBad loads every bad file, trusted and not: the errors are the same.
func TestBad(t *testing.T) {
	eachFile(t, "bad", func(t *testing.T, data []byte) string {
		in := goldenInput(data)
		_, err := Load(in)
		in.RepoTrusted = false
		_, untrusted := Load(in)
		if err == nil || untrusted == nil || err.Error() != untrusted.Error() {
			t.Fatalf("trusted: %v\nuntrusted: %v\nwant the same errors", err, untrusted)
		}
		return err.Error() + "\n"
	})
}

func eachFile(t *testing.T, kind string, run func(*testing.T, []byte) string) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "policy", kind, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			got := run(t, read(t, file))
			golden := strings.TrimSuffix(file, ".yaml") + ".want"
			if *update {
				must(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			if want := string(read(t, golden)); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// TestGaps holds that each key that is not built is refused by its row alone:
// with the row gone the same file loads.
func TestGaps(t *testing.T) {
	samples := map[gap]string{
		{"sandbox.workspace", "clone"}: "sandbox: {workspace: clone}",
		{"sandbox.keys", "benign"}:     "sandbox: {keys: benign}",
		{"sandbox.sockets", ""}:        "sandbox: {sockets: [/nonexistent/agent.sock]}",
		{"sandbox.limits", ""}:         "sandbox: {limits: {memory: 8G, pids: 4096, open_files: 65536}}",
		{"egress.allow.budget", ""}:    "egress: {allow: [{host: a.com, budget: {requests: 5, bytes_out: 1M}}]}",
		{"egress.allow.git", ""}:       "egress: {allow: [{git: {host: github.com, fetch: [a/b], push: [a/b refs/heads/*]}}]}",
		{"egress.deny.git", ""}:        "egress: {deny: [{git: {host: github.com, push: [a/b refs/heads/main]}}]}",
		{"egress.passthrough", ""}:     "egress: {passthrough: [a.com]}",
		{"egress.upstream_proxy", ""}:  "egress: {upstream_proxy: 'http://proxy.example.com:3128'}",
		{"egress.upstream_ca", ""}:     "egress: {upstream_ca: [/nonexistent/ca.pem]}",
		{"egress.ask", "true"}:         "egress: {ask: true}",
		{"credentials", ""}:            "credentials: [{name: github, hosts: [api.github.com], source: {env: GITHUB_TOKEN}, inject: {header: Authorization, format: 'Bearer {{secret}}'}, env: GITHUB_TOKEN}]",
		{"hooks.mode", "tracked"}:      "hooks: {path: .githooks, mode: tracked}",
		{"approvals", ""}:              "approvals: {signers: .allowed, require: signature, not_author: true}",
		{"watch.quarantine", "true"}:   "watch: {quarantine: true}",
		{"watch.exec", ""}:             "watch: {exec: [notify, x]}",
		{"audit.keep", ""}:             "audit: {keep: 30d}",
		{"audit.otlp", "true"}:         "audit: {otlp: true}",
		{"extends", ""}:                "extends: ['team@sha256:00']",
	}
	for _, g := range notYet {
		t.Run(g.key+" "+g.value, func(t *testing.T) {
			sample, ok := samples[g]
			if !ok {
				t.Fatal("no sample for this row")
			}
			in := goldenInput([]byte("version: 1\n" + sample + "\n"))
			_, err := Load(in)
			if err == nil || !strings.Contains(err.Error(), g.key) || !strings.HasSuffix(err.Error(), "is not built yet") {
				t.Errorf("Load() = %v, want that %s is not built yet", err, g.key)
			}
			var others []gap
			for _, o := range notYet {
				if o != g {
					others = append(others, o)
				}
			}
			plain, err := load(goldenInput([]byte("version: 1\n")), others)
			must(t, err)
			built, err := load(in, others)
			if err != nil {
				t.Fatalf("without its row: %v", err)
			}
			if built.Digest() == plain.Digest() {
				t.Error("without its row the key has no effect on the policy")
			}
		})
	}
}

func TestInitTemplate(t *testing.T) {
	in := goldenInput(InitTemplate())
	in.RepoTrusted = false
	p, err := Load(in)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Pending) > 0 || len(p.Warnings()) > 0 {
		t.Errorf("the template asks for something: %v %v", p.Pending, p.Warnings())
	}
	bare, err := Load(goldenInput([]byte("version: 1\n")))
	must(t, err)
	if p.Digest() != bare.Digest() {
		t.Error("the template changes the built-in policy")
	}

	// What it shows in comments must be right as well.
	head, examples, _ := strings.Cut(string(InitTemplate()), "version: 1\n")
	uncommented := "version: 1\n" + strings.ReplaceAll(examples, "\n# ", "\n")
	if !strings.HasPrefix(head, "# ") {
		t.Error("the template does not begin with a comment")
	}
	p, err = Load(goldenInput([]byte(uncommented)))
	if err != nil {
		t.Fatalf("the examples are refused:\n%v\n%s", err, uncommented)
	}
	if len(p.Egress.Allow) != 3 || len(p.Sandbox.Read) != 1 {
		t.Errorf("the examples were not read:\n%s", p)
	}
}

func TestShowHidesValues(t *testing.T) {
	const secret = "s3cr3t-value"
	in := goldenInput([]byte("version: 1\nsandbox: {env: {set: {TOKEN: " + secret + "}}}\n"))
	p, err := Load(in)
	must(t, err)
	data, err := json.Marshal(p)
	must(t, err)
	for _, out := range []string{p.String(), string(data), strings.Join(p.Warnings(), "\n")} {
		if strings.Contains(out, secret) {
			t.Errorf("the value of a variable is shown:\n%s", out)
		}
	}
	if !strings.Contains(p.String(), "TOKEN") || !strings.Contains(string(data), "TOKEN") {
		t.Error("the name of a variable is not shown")
	}
}

// TestErrorsHideValues holds that values which may be secrets are in no error.
func TestErrorsHideValues(t *testing.T) {
	for _, text := range []string{
		"sandbox: {env: {set: {TOKEN: [s3cr3t]}}}",
		"sandbox: {env: {set: {TOKEN: \"s3cr3t\\0\"}}}",
		"egress: {upstream_proxy: 'http://u:s3cr3t@proxy'}\nx: 1",
		"egress: {upstream_proxy: 's3cr3t'}",
	} {
		_, err := Load(goldenInput([]byte("version: 1\n" + text + "\n")))
		if err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
