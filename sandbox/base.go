package sandbox

import (
	"io/fs"
	"path"
	"sort"
	"strings"
)

// HostFS is what Base has to know of the host: what a name is, without
// following, and where a path leads in the end.
type HostFS interface {
	Lstat(path string) (fs.FileInfo, error)
	Readlink(path string) (string, error)
	// Real returns path with every symbolic link resolved.
	Real(path string) (string, error)
}

// etcNames is all of /etc that a command sees: what the C library, the
// toolchains and the certificate stores need. Nothing here is readable by its
// owner alone on a sound system, and nothing holds a key.
var etcNames = []string{
	"alternatives",           // where /usr/bin's links lead on Debian
	"bash.bashrc", "profile", // the shell's defaults
	"ca-certificates",       // local roots that the bundle is made from
	"ca-certificates.conf",  //
	"crypto-policies",       // Red Hat's choice of ciphers
	"debian_version",        //
	"default",               // defaults of useradd, locale and the like
	"fonts",                 // headless browsers, PDF makers
	"gai.conf", "host.conf", // the resolver's order
	"gitconfig",       // the machine's git configuration
	"gprofng.rc",      //
	"group", "passwd", // names of users; no password is in there
	"inputrc", // line editing
	"java", "java-8-openjdk", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "java-25-openjdk",
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", // the dynamic linker
	"locale.alias", "locale.conf", "localtime", "timezone",
	"lsb-release", "os-release", "redhat-release", "alpine-release", "arch-release",
	"magic", "magic.mime", "mailcap", "mime.types",
	"maven",             // the distribution's settings
	"nsswitch.conf",     // which name services exist
	"openmpi", "OpenCL", //
	"perl", "php", "python2.7", "python3", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14",
	"pki/ca-trust/extracted", "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf", // not pki/tls/private
	"protocols", "rpc", "services", "ethertypes",
	"R",                                            //
	"skel",                                         //
	"ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", // not ssl/private
	"terminfo",   //
	"xdg",        //
	"xattr.conf", //
}

// topNames are the directories beside /usr that hold programs and libraries.
var topNames = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// BaseOptions are the facts about the caller that the base needs.
type BaseOptions struct {
	Home      string // the command's home directory, private and empty
	SSHConfig []byte // the machine's ssh configuration without its drop-ins, which ssh refuses inside because nobody owns them
}

// Base returns the first part of every plan: the system's programs read-only,
// the named parts of /etc, the kernel's file systems of the run's own, and
// empty private directories wherever programs expect to write.
func Base(h HostFS, o BaseOptions) []Mount {
	plan := []Mount{{Kind: ReadOnly, Source: "/usr", Target: "/usr"}}
	for _, name := range topNames {
		plan = append(plan, show(h, "/"+name)...)
	}
	for _, name := range etcNames {
		plan = append(plan, show(h, "/etc/"+name)...)
	}
	plan = append(plan, etcFiles(o)...)
	plan = append(plan, Mount{Kind: Proc, Target: "/proc"})
	plan = append(plan, devices()...)
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		plan = append(plan, Mount{Kind: Tmpfs, Target: dir, Perm: 0o1777})
	}
	plan = append(plan,
		Mount{Kind: Tmpfs, Target: "/run", Perm: 0o755},
		Mount{Kind: Dir, Target: "/run/lock", Perm: 0o1777},
		Mount{Kind: Link, Target: "/var/run", Source: "/run"},
		Mount{Kind: Link, Target: "/var/lock", Source: "/run/lock"},
	)
	if o.Home != "" {
		plan = append(plan, Mount{Kind: Tmpfs, Target: o.Home, Perm: 0o700})
	}
	return plan
}

// BaseWrite are the roots of Base below which a command may write.
func BaseWrite(home string) []string {
	roots := []string{"/dev", "/proc", "/run", "/tmp", "/var/tmp"}
	if home != "" {
		roots = append(roots, home)
	}
	return roots
}

// show lets one path of the system through: a link into what is shown anyway
// as a link, everything else as what it leads to.
func show(h HostFS, name string) []Mount {
	info, err := h.Lstat(name)
	if err != nil {
		return nil
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		if !info.IsDir() && !info.Mode().IsRegular() {
			return nil
		}
		return []Mount{{Kind: ReadOnly, Source: name, Target: name, Optional: true}}
	}
	text, err := h.Readlink(name)
	if err != nil {
		return nil
	}
	to := text
	if !strings.HasPrefix(to, "/") {
		to = path.Join(path.Dir(name), to)
	}
	if strings.HasPrefix(path.Clean(to), "/usr/") {
		return []Mount{{Kind: Link, Source: text, Target: name}}
	}
	real, err := h.Real(name)
	if err != nil {
		return nil // it dangles
	}
	return []Mount{{Kind: ReadOnly, Source: real, Target: name, Optional: true}}
}

// etcFiles are the files of /etc that differ inside: there is no name service
// but the loopback's, because there is no network but the proxy.
func etcFiles(o BaseOptions) []Mount {
	files := map[string]string{
		"/etc/hosts":       "127.0.0.1 localhost agentguard\n::1 localhost ip6-localhost ip6-loopback\n",
		"/etc/hostname":    "agentguard\n",
		"/etc/resolv.conf": "# no name service inside: names are resolved by the proxy\n",
		"/etc/shells":      "/bin/sh\n/bin/bash\n",
	}
	if len(o.SSHConfig) > 0 {
		files["/etc/ssh/ssh_config"] = string(o.SSHConfig)
	}
	var plan []Mount
	for name, text := range files {
		plan = append(plan, Mount{Kind: File, Target: name, Data: []byte(text), Perm: 0o644})
	}
	sort.Slice(plan, func(i, j int) bool { return plan[i].Target < plan[j].Target })
	return plan
}

// devices is a /dev with what every program may expect and no disk, no memory
// and no virtual machine in it.
func devices() []Mount {
	plan := []Mount{{Kind: Tmpfs, Target: "/dev", Perm: 0o755}}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		plan = append(plan, Mount{Kind: Device, Source: "/dev/" + name, Target: "/dev/" + name})
	}
	for _, l := range [][2]string{
		{"fd", "/proc/self/fd"},
		{"stdin", "/proc/self/fd/0"},
		{"stdout", "/proc/self/fd/1"},
		{"stderr", "/proc/self/fd/2"},
		{"core", "/proc/kcore"},
		{"ptmx", "pts/ptmx"},
	} {
		plan = append(plan, Mount{Kind: Link, Source: l[1], Target: "/dev/" + l[0]})
	}
	return append(plan,
		Mount{Kind: Pts, Target: "/dev/pts"},
		Mount{Kind: Tmpfs, Target: "/dev/shm", Perm: 0o1777},
		Mount{Kind: Dir, Target: "/dev/mqueue", Perm: 0o755},
		Mount{Kind: Seal, Target: "/dev"},
	)
}
