package probe

// Env tells an attempt where its targets are. It travels as JSON to the
// process that tries.
type Env struct {
	Inside bool `json:"inside"`

	// Self is the argv prefix that starts this package's [Step]; an attempt
	// that needs a process of its own (a namespace, a set-uid program, a call
	// that may kill) appends to it. The name must be valid inside as well.
	Self []string `json:"self"`

	Workspace string `json:"workspace"` // a git work tree with one commit
	Home      string `json:"home"`      // the planted home directory
	Elsewhere string `json:"elsewhere"` // a writable directory outside the workspace
	TempFile  string `json:"temp_file"` // a canary in the machine's /tmp

	Canary  string `json:"canary"`   // what every planted secret holds
	EnvName string `json:"env_name"` // the variable that holds it in the starter's environment

	HostPID  int    `json:"host_pid"` // a process that Plant started, canary in its environment
	Socket   string `json:"socket"`   // a Unix socket outside the workspace
	Abstract string `json:"abstract"` // an abstract Unix socket, without the leading zero byte
	FD       int    `json:"fd"`       // a directory descriptor that the starter left open

	HTTP  string `json:"http"`  // host:port on loopback
	HTTPS string `json:"https"` // host:port on loopback
	Cert  string `json:"cert"`  // its certificate, PEM
	DNS   string `json:"dns"`   // host:port on loopback, UDP
	Proxy string `json:"proxy"` // outside: the planted proxy that refuses nothing; inside: empty, the run's own is taken from its environment

	AllowedHost string `json:"allowed_host"` // host:port that the run's policy allows; empty leaves that control out
	DeniedHost  string `json:"denied_host"`  // host:port that no rule allows
}
