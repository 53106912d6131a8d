package egress

import (
	"net/netip"
	"strconv"
	"strings"
)

// noProxy is what never goes through the proxy: the run's own loopback. Private
// ranges are not in it, because a private host that the policy allows is
// reached through the proxy or not at all.
const noProxy = "localhost,127.0.0.1,::1,[::1]"

// Environ returns the variables that make tools use the proxy, as "NAME=value"
// in a fixed order. It is the whole set: a caller must drop every other proxy
// variable of its own environment, or a tool could follow that one.
//
// JAVA_TOOL_OPTIONS makes each Java virtual machine print one line on stderr;
// there is no silent way (JDK_JAVA_OPTIONS prints too, and only the java
// launcher of JDK 9 and later reads it). PIP_PROXY is left out on purpose: pip
// reads the standard variables, and that one would send loopback to the proxy.
func Environ(proxy netip.AddrPort) []string {
	url := "http://" + proxy.String()
	host, port := proxy.Addr().String(), strconv.Itoa(int(proxy.Port()))
	var env []string
	set := func(value string, names ...string) {
		for _, n := range names {
			env = append(env, n+"="+value)
		}
	}
	for _, n := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "WS_PROXY", "WSS_PROXY", "GRPC_PROXY"} {
		set(url, n, strings.ToLower(n))
	}
	set(noProxy, "NO_PROXY", "no_proxy", "NO_GRPC_PROXY", "no_grpc_proxy")
	set(url, "npm_config_proxy", "npm_config_https_proxy")
	set(noProxy, "npm_config_noproxy")
	set(url, "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY", "CARGO_HTTP_PROXY", "DOCKER_HTTP_PROXY", "DOCKER_HTTPS_PROXY")
	set("http", "CLOUDSDK_PROXY_TYPE")
	set(host, "CLOUDSDK_PROXY_ADDRESS")
	set(port, "CLOUDSDK_PROXY_PORT")
	set("1", "NODE_USE_ENV_PROXY", "ELECTRON_GET_USE_PROXY")
	set(javaOptions(host, port), "JAVA_TOOL_OPTIONS")
	return env
}

// javaOptions is split at white space by the virtual machine, so none of its
// values may hold any.
func javaOptions(host, port string) string {
	return strings.Join([]string{
		"-Dhttp.proxyHost=" + host,
		"-Dhttp.proxyPort=" + port,
		"-Dhttps.proxyHost=" + host,
		"-Dhttps.proxyPort=" + port,
		"-Dhttp.nonProxyHosts=localhost|127.*|[::1]",
	}, " ")
}
