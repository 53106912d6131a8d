// Package policy reads and checks `.agentguard.yaml` and the user's own
// configuration and gives one immutable [Policy]: what a run may read, write
// and reach, where every line of it came from, and which lines of the
// repository's file still wait for the user's yes.
//
// The repository's file is data from whoever wrote the branch: it may tighten
// freely, and what it widens counts only when [Input.RepoTrusted] says that
// the user agreed to exactly these bytes in exactly this clone (see
// [TrustStore]). Anything the parser does not know, and anything agentguard
// does not enforce yet, is an error with file, line and column, never ignored.
//
// Does not enforce anything: sandbox and egress do. Does not stop a policy
// that the user trusted from being too wide, it only lists it ([Policy.Warnings]).
// Does not make metadata addresses reachable or unreachable: a prefix in
// allow_private or private may contain them, and egress refuses them all the
// same. The link targets in [Grant.Real] are those at load time; whoever mounts
// them must not follow links again.
package policy

import "net/netip"

// Policy is the effective policy of one run. It is not to be changed after
// [Load]; the zero Policy grants nothing.
type Policy struct {
	Sandbox     Sandbox
	Egress      Egress
	Hooks       Hooks
	Credentials []Credential
	Approvals   Approvals
	Watch       Watch
	Audit       Audit
	Extends     []Value

	Pending []Pending // lines of the repository's file that wait for a yes, in file order
	Layers  []Layer   // the files read, in order of application

	warnings []string
	digest   string
}

// Layer is one file that the policy was made of.
type Layer struct {
	Name    string // as printed in errors
	SHA256  string // of its bytes, hex
	Repo    bool   // the repository's own file
	Trusted bool   // its widening counts
}

// Pos is where a value was written. Line is 0 for a flag.
type Pos struct {
	File      string
	Line, Col int
}

// Value is a word of the policy and where it was written.
type Value struct {
	Text string
	Pos  Pos
}

// Workspace says what the agent may do in the work tree.
type Workspace uint8

// The kinds of workspace. The zero value is read-only.
const (
	WorkspaceRead  Workspace = iota
	WorkspaceWrite           // built in wherever a policy file exists
	WorkspaceClone           // the agent gets its own clone
)

// Profile says which column of the catalogue counts.
type Profile uint8

// The profiles. The zero value is the strict one.
const (
	Strict Profile = iota
	Balanced
)

// BrokerMode says whether a run needs the name-level broker.
type BrokerMode uint8

// The modes. The zero value refuses to run without a broker.
const (
	BrokerRequire BrokerMode = iota
	BrokerAuto               // built in: used where the kernel has it
	BrokerOff
)

// KeysMode says whether a frozen structured file may change outside the keys
// that execute.
type KeysMode uint8

// The modes. The zero value allows no change.
const (
	KeysNone KeysMode = iota
	KeysBenign
)

// Sandbox is what the command may see and change.
type Sandbox struct {
	Workspace Workspace
	Profile   Profile
	Broker    BrokerMode
	Keys      KeysMode
	Read      []Grant // read-only, outside the workspace
	Write     []Grant
	Protect   []Value // globs relative to the workspace root, to be frozen too
	Unprotect []Value // globs of frozen paths lowered to review
	Sockets   []Grant
	Env       Env
	Limits    Limits
}

// Grant is one path that the policy opens.
type Grant struct {
	Path    string // absolute and clean, as the user wrote it
	Real    string // what Path led to at load, links of the part that exists resolved
	Missing bool   // nothing is there
	Pos     Pos
}

// Env is what of the environment reaches the command beyond the built-in list.
type Env struct {
	Pass []Value           // names handed through from the host
	Set  map[string]string // names with the value the policy gives
}

// Limits bound the run; zero means none was written.
type Limits struct {
	Memory    int64 // bytes
	Pids      int64
	OpenFiles int64
}

// Egress is what the command may reach.
type Egress struct {
	Deny          []Rule         // the first matching deny decides,
	Allow         []Rule         // then the first matching allow; nothing else is reachable
	AllowPrivate  []netip.Prefix // special-purpose addresses opened for every rule; metadata addresses never
	Resolve       map[string]Target
	Passthrough   []HostPattern
	UpstreamProxy string
	UpstreamCA    []Grant
	Ask           bool
}

// Target is a static answer for one host name. Port 0 keeps the asked port.
type Target struct {
	Addr netip.Addr
	Port uint16
}

// Hooks says where the tracked hooks are and how they are used.
type Hooks struct {
	Path string // slash-separated, relative to the workspace root; ".githooks" built in
	Mode HooksMode
}

// HooksMode says which copy of a hook runs.
type HooksMode uint8

// The modes. The zero value runs only approved copies.
const (
	HooksPinned HooksMode = iota
	HooksTracked
)

// Credential is a secret that egress swaps in for a placeholder.
type Credential struct {
	Name   string
	Hosts  []HostPattern
	Source CredentialSource
	Inject CredentialInject
	Env    string // name under which the placeholder is visible inside
	Pos    Pos
}

// CredentialSource says where the secret comes from; exactly one field is set.
type CredentialSource struct {
	Env     string
	File    string
	Command []string
}

func (s CredentialSource) empty() bool {
	return s.Env == "" && s.File == "" && len(s.Command) == 0
}

// CredentialInject says how the secret is put into a request; exactly one of
// Header, Basic and Query is set.
type CredentialInject struct {
	Header string
	Format string // with Header; holds {{secret}}
	Basic  string // the user name
	Query  string // the parameter
}

// Approvals says who may approve a change of a surface.
type Approvals struct {
	Signers   string
	Require   string // "base" or "signature"; empty means base
	NotAuthor bool
}

// Watch says what the watcher does beyond telling.
type Watch struct {
	Quarantine bool
	Exec       []string
}

// Audit says how the log is kept.
type Audit struct {
	Keep string
	OTLP bool
}

// Digest returns the hash of the effective policy in hex. Two policies with
// the same digest grant the same; where a line was written does not count.
func (p *Policy) Digest() string { return p.digest }

// Warnings returns one sentence for each weakening in force and each line that
// has no effect, in a fixed order.
func (p *Policy) Warnings() []string { return append([]string(nil), p.warnings...) }
