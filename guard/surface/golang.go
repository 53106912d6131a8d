package surface

// goEntries returns the rows of this file. Go and its tools.
func goEntries() []Entry {
	return []Entry{
		{
			ID:        "go-mod",
			Title:     "the Go module",
			Ecosystem: "go",
			Patterns:  anywhere("go.mod"),
			Trigger:   "go build/test/run, gopls on open",
			Why:       "what counts: replace, tool, toolchain; edited with every dependency: judge by key",
			Source:    "https://go.dev/ref/mod#go-mod-file",
			Strict:    Review,
			Balanced:  Review,
			Keys: []string{
				"replace", "toolchain",
				"go (a newer version makes the go command download and run another toolchain)",
				"tool", "exclude", "godebug",
			},
		},
		{
			ID:        "go-work",
			Title:     "the Go workspace",
			Ecosystem: "go",
			Patterns:  anywhere("go.work"),
			Trigger:   "any go command below it",
			Why:       "what counts: use, replace, toolchain; an agent rarely has to change it",
			Source:    "https://go.dev/ref/mod#workspaces",
			Balanced:  Review,
			Keys: []string{
				"use", "replace", "toolchain", "go",
			},
		},
		{
			ID:        "go-sum",
			Title:     "sums of Go modules",
			Ecosystem: "go",
			Patterns:  anywhere("go.sum", "go.work.sum"),
			Trigger:   "any build that downloads",
			Why:       "what counts: expected hashes; changes with dependencies",
			Source:    "https://go.dev/ref/mod#go-sum-files",
			Strict:    Note,
			Balanced:  Note,
			Keys: []string{
				"hash of an unchanged version changed",
			},
		},
		{
			ID:        "go-vendor",
			Title:     "the list of vendored Go modules",
			Ecosystem: "go",
			Patterns:  anywhere("vendor/modules.txt"),
			Trigger:   "go build/test with -mod=vendor (default when present)",
			Why:       "says which vendored code is compiled; the code itself is source like other source",
			Source:    "https://go.dev/ref/mod#vendoring",
			Balanced:  Review,
		},
		{
			ID:        "go-magefile",
			Title:     "mage's tasks",
			Ecosystem: "go",
			Patterns:  anywhere("magefile.go", "magefiles/**", "Magefile.go"),
			Trigger:   "mage <target>",
			Why:       "what counts: whole file; an agent rarely has to change it",
			Source:    "https://magefile.org/magefiles/",
			Balanced:  Review,
		},
		{
			ID:        "golangci",
			Title:     "golangci-lint's configuration",
			Ecosystem: "go",
			Patterns: anywhere(
				".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json",
				".custom-gcl.yml", ".custom-gcl.yaml",
			),
			Trigger:  "golangci-lint run, editor",
			Why:      "what counts: linters.settings.custom.*.path plugins (.so), custom build plugins; sometimes",
			Source:   "https://golangci-lint.run/docs/plugins/go-plugins/",
			Balanced: Review,
			Keys: []string{
				"linters.settings.custom.*.path", "linters-settings.custom.*.path", "plugins",
			},
		},
		{
			ID:        "go-runners",
			Title:     "configuration of Go runners and generators",
			Ecosystem: "go",
			Patterns: anywhere(
				".air.toml", "air.toml", ".goreleaser.yml", ".goreleaser.yaml", ".ko.yaml",
				"reflex.conf", "modd.conf", ".realize.yaml", "wails.json", "buf.gen.yaml",
				"sqlc.yaml", "gqlgen.yml",
			),
			Trigger:  "air, goreleaser, buf generate …",
			Why:      "what counts: build.cmd, hooks, plugin paths; an agent rarely has to change it",
			Source:   "https://goreleaser.com/customization/hooks/",
			Balanced: Review,
		},
		{
			ID:        "go-env-file",
			Title:     "Go's environment file",
			Ecosystem: "go",
			Patterns:  anywhere("go.env"),
			Trigger:   "go command when GOENV points at it (GOROOT/go.env otherwise)",
			Why:       "what counts: GOFLAGS=-toolexec, GOPROXY, GONOSUMDB, GOINSECURE; an agent never has to change it",
			Source:    "https://pkg.go.dev/cmd/go#hdr-Environment_variables",
			Keys: []string{
				"GOFLAGS", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOINSECURE", "GOTOOLCHAIN", "CC",
				"CXX", "CGO_*", "GOAUTH",
			},
		},
	}
}
