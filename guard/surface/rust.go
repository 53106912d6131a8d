package surface

// rustEntries returns the rows of this file. Rust and cargo.
func rustEntries() []Entry {
	return []Entry{
		{
			ID:        "rust-build-rs",
			Title:     "cargo's build script",
			Ecosystem: "rust",
			Patterns:  anywhere("build.rs"),
			Trigger:   "cargo build/check/test, rust-analyzer on folder open",
			Why:       "what counts: whole file; an agent rarely has to change it",
			Source:    "https://doc.rust-lang.org/cargo/reference/build-scripts.html",
			Balanced:  Review,
		},
		{
			ID:        "rust-cargo-toml",
			Title:     "the cargo package",
			Ecosystem: "rust",
			Patterns:  anywhere("Cargo.toml"),
			Trigger:   "cargo anything, rust-analyzer",
			Why:       "what counts: build=, proc-macro, patch, path/git dependencies, workspace members; edited with every dependency: judge by key",
			Source:    "https://doc.rust-lang.org/cargo/reference/manifest.html",
			Balanced:  Review,
			Keys: []string{
				"package.build", "lib.proc-macro", "patch.*", "replace",
				"dependencies.*.{path,git,registry}", "build-dependencies", "workspace.members",
				"package.links", "profile.*.rustflags",
			},
		},
		{
			ID:        "rust-cargo-config",
			Title:     "cargo's configuration",
			Ecosystem: "rust",
			Patterns:  anywhere(".cargo/config.toml", ".cargo/config"),
			Trigger:   "any cargo command at or below the folder, rust-analyzer",
			Why:       "what counts: rustc, rustc-wrapper, runner, linker, alias, env, source replacement, credential-provider; an agent rarely has to change it",
			Source:    "https://doc.rust-lang.org/cargo/reference/config.html",
			Keys: []string{
				"build.{rustc,rustc-wrapper,rustc-workspace-wrapper,rustdoc,rustflags,rustdocflags,target-dir}",
				"target.*.{runner,linker,rustflags}", "host.*", "alias.* (overrides b, c, t, r)",
				"env.*", "source.*", "registries.*",
				"registry.{credential-provider,global-credential-providers}", "credential-alias.*",
				"net.git-fetch-with-cli", "doc.browser", "include", "paths", "patch.*", "unstable.*",
			},
		},
		{
			ID:        "rust-toolchain",
			Title:     "the Rust toolchain",
			Ecosystem: "rust",
			Patterns:  anywhere("rust-toolchain.toml", "rust-toolchain"),
			Trigger:   "any cargo/rustc through rustup",
			Why:       "what counts: channel (downloads), path (runs a local toolchain); an agent rarely has to change it",
			Source:    "https://rust-lang.github.io/rustup/overrides.html#the-toolchain-file",
			Balanced:  Review,
			Keys: []string{
				"toolchain.path", "toolchain.channel", "toolchain.components",
			},
		},
		{
			ID:        "rust-lint-tools",
			Title:     "configuration of Rust tools",
			Ecosystem: "rust",
			Patterns: anywhere(
				"clippy.toml", ".clippy.toml", "rustfmt.toml", "dylint.toml", "deny.toml",
				".config/nextest.toml", "rust-analyzer.toml", ".cargo/mutants.toml", "Cross.toml",
				"Trunk.toml", "Dioxus.toml",
			),
			Trigger:  "nextest setup scripts, cross pre-build, trunk hooks, dylint libraries",
			Why:      "what counts: named keys; an agent rarely has to change it",
			Source:   "https://nexte.st/docs/configuration/setup-scripts/",
			Balanced: Review,
			Keys: []string{
				"script.*", "scripts.*", "profile.*.scripts", "target.*.pre-build", "hooks.*",
				"workspace.metadata.dylint.libraries",
			},
		},
		{
			ID:        "rust-xtask",
			Title:     "tasks in Rust",
			Ecosystem: "rust",
			Patterns:  anywhere("xtask/**", "Makefile.toml", "bacon.toml"),
			Trigger:   "cargo xtask, cargo make, bacon",
			Why:       "what counts: whole file / tasks.*.command/script; an agent rarely has to change it",
			Source:    "https://github.com/matklad/cargo-xtask",
			Balanced:  Review,
		},
	}
}
