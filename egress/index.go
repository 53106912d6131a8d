package egress

import (
	"slices"
	"strings"

	"agentguard/guard/policy"
)

// hostIndex finds the rules whose host pattern matches a host, so that a
// decision costs the same with ten rules and with ten thousand.
type hostIndex struct {
	exact map[string][]int // by the host
	below map[string][]int // by the name that "*." stands before
}

func indexHosts(rules []policy.Rule) hostIndex {
	ix := hostIndex{exact: make(map[string][]int), below: make(map[string][]int)}
	for i := range rules {
		h := rules[i].Host
		name, m := h.String(), ix.exact
		if h.Wildcard() {
			name, m = strings.TrimPrefix(name, "*."), ix.below
		}
		m[name] = append(m[name], i)
	}
	return ix
}

// find appends the indices of the rules that may be about host to room, in the
// order of the policy. It only leaves rules out; whether one matches is said by
// its pattern.
func (ix *hostIndex) find(host string, room []int) []int {
	out := append(room, ix.exact[host]...)
	n := len(out)
	if len(ix.below) > 0 {
		for rest := host; ; {
			_, after, ok := strings.Cut(rest, ".")
			if !ok {
				break
			}
			out = append(out, ix.below[after]...)
			rest = after
		}
	}
	if len(out) > n {
		slices.Sort(out)
	}
	return out
}
