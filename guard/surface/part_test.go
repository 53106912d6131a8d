package surface

import (
	"bytes"
	"strings"
	"testing"
)

func packageEntry(t testing.TB) Entry {
	t.Helper()
	e, ok := Lookup("npm-package-json")
	if !ok {
		t.Fatal("no entry for package.json")
	}
	return e
}

func configEntry(t testing.TB) Entry {
	t.Helper()
	e, ok := Lookup("git-config-local")
	if !ok {
		t.Fatal("no entry for git's configuration")
	}
	return e
}

func TestPackagePart(t *testing.T) {
	e := packageEntry(t)
	for _, tt := range []struct{ name, content, want string }{
		{"nothing executes", `{"name": "a", "version": "1.0.0", "description": "x"}`, `{}`},
		{"scripts", `{"scripts": {"b": "2", "a": "1"}, "name": "n"}`, `{"scripts":{"a":"1","b":"2"}}`},
		{"order of the file", `{"type": "module", "bin": "x"}`, `{"bin":"x","type":"module"}`},
		{"order that counts", `{"exports": {"import": "./a", "default": "./b"}}`, `{"exports":{"import":"./a","default":"./b"}}`},
		{"version ranges", `{"dependencies": {"a": "^1.0.0", "b": "latest", "c": ">=1 <2 || 3.x", "d": ""}}`, `{}`},
		{"locators", `{"dependencies": {"z": "git+https://h/r", "b": "file:../b", "c": "u/r", "d": "npm:other@1", "e": "./e.tgz", "f": "f.tgz", "g": "..", "h": "1"}}`,
			`{"dependencies":{"b":"file:../b","c":"u/r","d":"npm:other@1","e":"./e.tgz","f":"f.tgz","g":"..","z":"git+https://h/r"}}`},
		{"dependencies of another shape", `{"devDependencies": ["x"]}`, `{"devDependencies":["x"]}`},
		{"numbers as written", `{"config": {"a": 1.0, "b": 10000000000000000001}}`, `{"config":{"a":1.0,"b":10000000000000000001}}`},
		{"escapes are one spelling", `{"scripts": {"\u0061": "\u003cb"}}`, `{"scripts":{"a":"\u003cb"}}`},
		{"name in other case", `{"Scripts": {"a": "1"}}`, `{}`},
		{"tools", `{"lint-staged": {"*.js": "x"}, "jest": {"globalSetup": "y"}}`, `{"jest":{"globalSetup":"y"},"lint-staged":{"*.js":"x"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			part, whole := ExecutablePart(e, "package.json", []byte(tt.content))
			if whole || string(part) != tt.want {
				t.Errorf("part = %s, whole %v, want %s", part, whole, tt.want)
			}
		})
	}
}

func TestPackagePartWhole(t *testing.T) {
	e := packageEntry(t)
	for name, content := range map[string]string{
		"empty":            "",
		"malformed":        `{"scripts": `,
		"trailing":         `{} {}`,
		"comment":          "// x\n{}",
		"list":             `[]`,
		"duplicate":        `{"scripts": {}, "scripts": {"a": "1"}}`,
		"duplicate inside": `{"name": {"a": 1, "\u0061": 2}}`,
		"byte order mark":  "\ufeff{}",
		"nul":              "{}\x00",
		"not utf-8":        "{\"a\": \"\xff\"}",
		"half a surrogate": `{"scripts": {"a": "\ud800"}}`,
		"prototype":        `{"__proto__": {"scripts": {"a": "1"}}}`,
		"too deep":         strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100),
		"too large":        `{"name": "` + strings.Repeat("x", maxPart) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			part, whole := ExecutablePart(e, "package.json", []byte(content))
			if !whole || string(part) != content {
				t.Errorf("whole = %v with %d bytes, want the whole file of %d", whole, len(part), len(content))
			}
		})
	}
}

func TestPartOfOtherFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		entry, path string
		part        string
		whole       bool
	}{
		"unstructured":       {"py-conftest", "conftest.py", "x", true},
		"hook":               {"git-nested-repo", "lib/.git/hooks/pre-commit", "x", true},
		"hook sample":        {"git-nested-repo", "lib/.git/hooks/pre-commit.sample", "", false},
		"sample elsewhere":   {"git-nested-repo", "lib/.git/x.sample", "x", true},
		"commondir":          {"git-commondir", ".git/commondir", "x", true},
		"frozen hook sample": {"git-hooks-dir", ".git/hooks/pre-commit.sample", "x", true},
	} {
		t.Run(name, func(t *testing.T) {
			e, ok := Lookup(tt.entry)
			if !ok {
				t.Fatal("no such entry")
			}
			part, whole := ExecutablePart(e, tt.path, []byte("x"))
			if string(part) != tt.part || whole != tt.whole {
				t.Errorf("part = %q, whole %v, want %q, %v", part, whole, tt.part, tt.whole)
			}
		})
	}
	if part, whole := ExecutablePart(Entry{}, "package.json", []byte("{}")); !whole || string(part) != "{}" {
		t.Errorf("the zero entry = %q, whole %v, want the whole file", part, whole)
	}
}

func TestConfigPart(t *testing.T) {
	e := configEntry(t)
	for _, tt := range []struct{ name, content, want string }{
		{"what init writes", "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n", ""},
		{"a person", "[user]\n\tname = A B\n\temail = a@b\n", ""},
		{"case of section and key", "[CORE]\nHooksPath = X\n", "core.hookspath=\"X\"\n"},
		{"case of subsection", "[Filter \"LFS\"]\nClean=x\n", "filter.\"LFS\".clean=\"x\"\n"},
		{"dotted section", "[Filter.LFS]\nclean=x\n", "filter.\"lfs\".clean=\"x\"\n"},
		{"on the header's line", "[core] fsmonitor = x\n", "core.fsmonitor=\"x\"\n"},
		{"no value", "[core]\nfsmonitor\n", "core.fsmonitor\n"},
		{"bare key of a harmless one", "[core]\nbare\n", "core.bare\n"},
		{"continued line", "[alias]\nx = !a\\\n b\n", "alias.x=\"!a b\"\n"},
		{"comment", "[alias]\nx = a # b\ny = \"a # b\"\n", "alias.x=\"a\"\nalias.y=\"a # b\"\n"},
		{"order stays", "[http]\nx=2\n[alias]\nx=1\n[http]\nx=3\n", "http.x=\"2\"\nalias.x=\"1\"\nhttp.x=\"3\"\n"},
		{"a note that git does not read", "[my]\nnote=word_2\n", ""},
		{"a path that git does not read", "[my]\nnote=./x\n", "my.note=\"./x\"\n"},
		{"words that git does not read", "[my]\nnote=rm x\n", "my.note=\"rm x\"\n"},
		{"include", "[include]\npath = ../x\n[includeIf \"onbranch:x\"]\npath = y\n", "include.path=\"../x\"\nincludeif.\"onbranch:x\".path=\"y\"\n"},
		{"carriage returns", "[core]\r\n\tbare = false\r\n\teditor = x\r\n", "core.editor=\"x\"\n"},
		{"tracking of a remote", "[remote \"o\"]\nurl = u\n[branch \"m\"]\nremote = o\nmerge = refs/heads/m\n", "remote.\"o\".url=\"u\"\n"},
		{"tracking of this repository", "[branch \"m\"]\nremote = .\nmerge = refs/heads/x\n", ""},
		{"tracking of a path", "[branch \"m\"]\nremote = ../evil\nmerge = refs/heads/m\n", "branch.\"m\".remote=\"../evil\"\n"},
		{"tracking of an undefined name", "[branch \"m\"]\nremote = evil\n", "branch.\"m\".remote=\"evil\"\n"},
		{"bare", "[core]\nbare = true\nfilemode = false\n", "core.bare=\"true\"\ncore.filemode=\"false\"\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			part, whole := ExecutablePart(e, ".git/config", []byte(tt.content))
			if whole || string(part) != tt.want {
				t.Errorf("part = %q, whole %v, want %q", part, whole, tt.want)
			}
		})
	}
	for name, content := range map[string]string{
		"no section":        "x = 1\n",
		"unfinished header": "[core\nx=1\n",
		"unfinished quote":  "[core]\nx = \"1\n",
		"bad escape":        "[core]\nx = \\q\n",
		"nul":               "[core]\nx = a\x00b\n",
		"byte order mark":   "\ufeff[core]\n",
		"key with a dot":    "[core]\na.b = 1\n",
		"digit first":       "[core]\n1a = 1\n",
		"too large":         "#" + strings.Repeat("x", maxPart),
	} {
		t.Run(name, func(t *testing.T) {
			if part, whole := ExecutablePart(e, ".git/config", []byte(content)); !whole || string(part) != content {
				t.Errorf("whole = %v, want the whole file", whole)
			}
		})
	}
}

// Every kind of key with which git executes, redirects, hides or weakens.
func TestConfigPartKeys(t *testing.T) {
	e := configEntry(t)
	for _, line := range []string{
		"core.hooksPath x", "core.fsmonitor x", "core.fsmonitorHookVersion 2", "core.editor x", "sequence.editor x",
		"core.pager x", "pager.log x", "core.sshCommand x", "ssh.variant x", "core.gitProxy x", "core.askPass x",
		"credential.helper x", "credential.https://h.helper x", "core.alternateRefsCommand x", "alias.ci commit",
		"alias.ci.command x", "help.autocorrect immediate", "diff.external x", "diff.d.command x", "diff.d.textconv x",
		"filter.d.clean x", "filter.d.smudge x", "filter.d.process x", "filter.d.required true", "merge.d.driver x",
		"merge.default x", "merge.d.recursive x", "difftool.t.cmd x", "difftool.t.path x", "diff.tool x", "diff.guitool x",
		"mergetool.t.cmd x", "mergetool.t.path x", "merge.tool x", "merge.guitool x", "gpg.program x",
		"gpg.openpgp.program x", "gpg.x509.program x", "gpg.ssh.program x", "gpg.ssh.defaultKeyCommand x",
		"commit.gpgSign true", "tag.gpgSign true", "push.gpgSign true", "log.showSignature true",
		"merge.verifySignatures true", "gpg.format ssh", "gpg.ssh.allowedSignersFile x", "gpg.ssh.revocationFile x",
		"gpg.minTrustLevel x", "interactive.diffFilter x", "trailer.t.cmd x", "trailer.t.command x",
		"remote.r.uploadpack x", "remote.r.receivepack x", "remote.r.vcs x", "remote.r.url ext::x", "remote.r.pushurl x",
		"remote.r.proxy x", "remote.r.promisor true", "remote.pushDefault x", "protocol.allow always",
		"protocol.ext.allow always", "branch.b.pushRemote x", "branch.b.mergeOptions x", "url.b.insteadOf x",
		"url.b.pushInsteadOf x", "http.proxy x", "http.https://h.proxy x", "http.sslVerify false", "http.sslCAInfo x",
		"http.curloptResolve x", "http.extraHeader x", "http.cookieFile x", "extensions.partialClone x",
		"fetch.bundleURI x", "bundle.b.uri x", "transfer.bundleURI true", "submodule.s.update !x", "submodule.s.url x",
		"submodule.s.active true", "submodule.active x", "submodule.recurse true", "include.path x",
		"includeIf.gitdir:x.path x", "includeIf.hasconfig:remote.*.url:x.path x", "extensions.worktreeConfig true",
		"core.attributesFile x", "attr.tree x", "core.worktree x", "core.bare true", "init.templateDir x",
		"uploadpack.packObjectsHook x", "receive.procReceiveRefs x", "receive.denyCurrentBranch updateInstead",
		"gc.recentObjectsHook x", "gc.auto 1", "maintenance.auto true", "tar.f.command x", "hook.h.command x",
		"hook.h.event x", "hook.h.enabled false", "hook.jobs 1", "sendemail.sendmailCmd x", "sendemail.toCmd x",
		"sendemail.i.smtpServer x", "imap.tunnel x", "web.browser x", "browser.b.cmd x", "help.browser x",
		"instaweb.httpd x", "man.viewer x", "man.m.cmd x", "guitool.g.cmd x", "svn.authorsProg x", "git-p4.client x",
		"pull.twohead x", "pull.octopus x", "lfs.customtransfer.t.path x", "lfs.standalonetransferagent x",
		"lfs.extension.e.clean x", "annex.a-command x", "remote.r.annex-x x", "core.sparseCheckout true",
		"core.excludesFile x", "core.fileMode false", "core.checkStat minimal", "core.trustctime false",
		"core.untrackedCache true", "status.showUntrackedFiles no", "diff.ignoreSubmodules all", "submodule.s.ignore all",
		"core.protectHFS false", "core.protectNTFS false", "core.symlinks false", "core.ignoreCase true",
		"fsck.x ignore", "transfer.fsckObjects false", "core.autocrlf true", "core.eol crlf", "core.useReplaceRefs true",
		"rerere.enabled true", "rerere.autoUpdate true", "safe.directory *", "safe.bareRepository all",
		"some.futureKey ./x", "some.s.futureKey x", "lfs.futureKey x", "core.futureKey x", "branch.b.futureKey x", "user.futureKey x",
	} {
		t.Run(line, func(t *testing.T) {
			name, value, _ := strings.Cut(line, " ")
			section, rest, _ := strings.Cut(name, ".")
			header, key := "["+section+"]", rest
			if i := strings.LastIndexByte(rest, '.'); i >= 0 {
				header, key = "["+section+" \""+rest[:i]+"\"]", rest[i+1:]
			}
			content := "[user]\n\tname = n\n" + header + "\n\t" + key + " = " + value + "\n"
			part, whole := ExecutablePart(e, ".git/config", []byte(content))
			if whole || bytes.Count(part, []byte("\n")) != 1 || bytes.Contains(part, []byte("user.name")) {
				t.Errorf("part of %q = %q, whole %v, want that one setting", content, part, whole)
			}
		})
	}
}
