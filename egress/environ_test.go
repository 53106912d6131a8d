package egress

import (
	"bufio"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentguard/guard/policy"
)

func environ(t testing.TB, addr string) map[string]string {
	t.Helper()
	env := make(map[string]string)
	for _, kv := range Environ(netip.MustParseAddrPort(addr)) {
		k, v, ok := strings.Cut(kv, "=")
		if _, twice := env[k]; !ok || twice || v == "" {
			t.Errorf("%q is no new variable", kv)
		}
		env[k] = v
	}
	return env
}

func TestEnviron(t *testing.T) {
	env := environ(t, "127.0.0.1:3128")
	for _, n := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "GRPC_PROXY", "WS_PROXY", "WSS_PROXY"} {
		if env[n] == "" || env[n] != env[strings.ToLower(n)] {
			t.Errorf("%s=%q, %s=%q", n, env[n], strings.ToLower(n), env[strings.ToLower(n)])
		}
	}
	for n, want := range map[string]string{
		"HTTPS_PROXY": "http://127.0.0.1:3128", "npm_config_proxy": "http://127.0.0.1:3128", "NODE_USE_ENV_PROXY": "1",
		"CARGO_HTTP_PROXY": "http://127.0.0.1:3128", "CLOUDSDK_PROXY_ADDRESS": "127.0.0.1", "CLOUDSDK_PROXY_PORT": "3128",
		"NO_PROXY": "localhost,127.0.0.1,::1,[::1]",
	} {
		if env[n] != want {
			t.Errorf("%s=%q, want %q", n, env[n], want)
		}
	}
	for _, opt := range []string{"-Dhttp.proxyHost=127.0.0.1", "-Dhttps.proxyPort=3128", "-Dhttp.nonProxyHosts=localhost|127.*|[::1]"} {
		if !slices.Contains(strings.Fields(env["JAVA_TOOL_OPTIONS"]), opt) {
			t.Errorf("JAVA_TOOL_OPTIONS=%q lacks %s", env["JAVA_TOOL_OPTIONS"], opt)
		}
	}
	if v6 := environ(t, "[::1]:3128"); v6["http_proxy"] != "http://[::1]:3128" {
		t.Errorf("http_proxy=%q for an IPv6 listener", v6["http_proxy"])
	}
}

// clients are tools as an agent would use them: each fetches a URL that is
// given last, and prints the body or the status of the refusal.
var clients = map[string][]string{
	"curl":    {"curl", "-sS", "-m", "10", "-w", "%{http_code}"},
	"python3": {"python3", "-c", "import sys,urllib.request as u,urllib.error as e\ntry: print(u.urlopen(sys.argv[1],timeout=10).read())\nexcept e.HTTPError as x: print(x.code)"},
	"node":    {"node", "-e", "fetch(process.argv[1]).then(async r=>console.log(r.status,await r.text()),e=>console.log('ERR',e.cause&&e.cause.message||e.message))"},
	"git":     {"git", "ls-remote"},
	"java":    {"java", "P.java"},
}

const javaClient = `public class P{public static void main(String[] a)throws Exception{
java.net.HttpURLConnection c=(java.net.HttpURLConnection)new java.net.URL(a[0]).openConnection();
int s=c.getResponseCode();System.out.println(s+" "+(s==200?new String(c.getInputStream().readAllBytes()):""));}}`

// Real tools use the proxy for a host that is not there, and go straight to
// loopback.
func TestEnvironIsUnderstood(t *testing.T) {
	answered := make(chan string, 64)
	o := startOrigin(t, func(c net.Conn) {
		br := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			answered <- req.Host
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nfetched"))
		}
	})
	ap := netip.MustParseAddrPort(o.addr)
	p := start(t, Config{Policy: policy.Egress{
		Allow:        []policy.Rule{rule(t, "allowed.test")},
		AllowPrivate: loopbackOpen,
		Resolve:      map[string]policy.Target{"allowed.test": {Addr: ap.Addr(), Port: ap.Port()}},
	}})
	for name, argv := range clients {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := exec.LookPath(argv[0]); err != nil {
				t.Skipf("no %s here", argv[0])
			}
			switch {
			case name == "java" && testing.Short():
				t.Skip("a virtual machine takes seconds to start")
			case name == "java":
				if err := os.WriteFile(filepath.Join(dir, "P.java"), []byte(javaClient), 0o600); err != nil {
					t.Fatal(err)
				}
			case name == "node" && !nodeReadsProxy(t):
				t.Skip("this node knows no NODE_USE_ENV_PROXY")
			}
			fetch := func(url string) string {
				cmd := exec.Command(argv[0], append(slices.Clone(argv[1:]), url)...)
				cmd.Dir = dir
				cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"}, Environ(netip.MustParseAddrPort(p.addr))...)
				out, _ := cmd.CombinedOutput() // a refusal is a failure to most tools
				return string(out)
			}
			before := len(p.events.Events())
			if out := fetch("http://refused.test/"); len(p.events.Events()) == before {
				t.Errorf("a refused host was not asked of the proxy: %s", out)
			} else if !strings.Contains(out, "403") {
				t.Errorf("the refusal reads %q", out)
			}
			if name == "git" || name == "java" { // git wants a repository, and java takes its time
				return
			}
			if out := fetch("http://allowed.test/"); !strings.Contains(out, "fetched") || <-answered != "allowed.test" {
				t.Errorf("an allowed host: %q", out)
			}
			before = len(p.events.Events())
			if out := fetch("http://" + o.addr + "/"); !strings.Contains(out, "fetched") || len(p.events.Events()) != before {
				t.Errorf("loopback: %q", out)
			}
			<-answered
		})
	}
}

// nodeReadsProxy says whether node has the option, which came with 22.21 and
// 24.5.
func nodeReadsProxy(t *testing.T) bool {
	t.Helper()
	out, err := exec.Command("node", "-p", "process.allowedNodeEnvironmentFlags.has('--use-env-proxy')").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)) == "true"
}
