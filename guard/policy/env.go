package policy

import (
	"errors"
	"strings"
)

// ownedEnv are the names that agentguard sets itself for the command.
var ownedEnv = map[string]bool{
	"HTTP_PROXY": true, "HTTPS_PROXY": true, "ALL_PROXY": true, "NO_PROXY": true, "FTP_PROXY": true,
}

// loaderEnv are names whose value makes ordinary programs run other code, with
// the program that does.
var loaderEnv = map[string]string{
	"BASH_ENV":              "every bash script",
	"BASH_FUNC_":            "every bash",
	"CC":                    "builds",
	"CXX":                   "builds",
	"DYLD_":                 "the dynamic loader",
	"EDITOR":                "git and others",
	"ENV":                   "every sh",
	"GCONV_PATH":            "the C library",
	"GIT_":                  "git",
	"GOFLAGS":               "go",
	"JAVA_TOOL_OPTIONS":     "java",
	"JDK_JAVA_OPTIONS":      "java",
	"_JAVA_OPTIONS":         "java",
	"LD_":                   "the dynamic loader",
	"LESSOPEN":              "less",
	"MAKEFLAGS":             "make",
	"NODE_OPTIONS":          "node",
	"NODE_PATH":             "node",
	"NPM_CONFIG_":           "npm",
	"PAGER":                 "git and others",
	"PATH":                  "every command",
	"PERL5LIB":              "perl",
	"PERL5OPT":              "perl",
	"PIP_":                  "pip",
	"PROMPT_COMMAND":        "bash",
	"PYTHONHOME":            "python",
	"PYTHONINSPECT":         "python",
	"PYTHONPATH":            "python",
	"PYTHONSTARTUP":         "python",
	"RUBYLIB":               "ruby",
	"RUBYOPT":               "ruby",
	"RUSTC_WRAPPER":         "cargo",
	"RUSTC":                 "cargo",
	"SHELL":                 "programs that start a shell",
	"VISUAL":                "git and others",
	"ZDOTDIR":               "zsh",
	"CARGO_":                "cargo",
	"GRADLE_OPTS":           "gradle",
	"MAVEN_OPTS":            "maven",
	"GOENV":                 "go",
	"GOTOOLCHAIN":           "go",
	"GOPROXY":               "go",
	"SSH_ASKPASS":           "ssh",
	"COMPOSER_HOME":         "composer",
	"PYTEST_ADDOPTS":        "pytest",
	"COREPACK_NPM_REGISTRY": "corepack",
}

// loads says which programs run what the variable name points at.
func loads(name string) (string, bool) {
	if what, ok := loaderEnv[name]; ok {
		return what, true
	}
	upper := strings.ToUpper(name) // npm reads npm_config_ too
	for i := range upper {
		if upper[i] == '_' {
			if what, ok := loaderEnv[upper[:i+1]]; ok {
				return what, true
			}
		}
	}
	return "", false
}

// checkEnvName accepts the names that every shell can set.
func checkEnvName(s string) error {
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return errors.New("want the name of a variable: letters, digits and underscores")
		}
	}
	upper := strings.ToUpper(s)
	switch {
	case s == "":
		return errors.New("the name is empty")
	case ownedEnv[upper] || strings.HasPrefix(upper, "AGENTGUARD_"):
		return errors.New(s + " is set by agentguard itself")
	}
	return nil
}
