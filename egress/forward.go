package egress

import (
	"net/http"

	"agentguard/guard/event"
)

// forward sends one plain HTTP request on and its answer back, and says
// whether the client connection can take another.
func (c *client) forward(req *http.Request, r Request, d Decision) bool {
	if d.Verdict != event.Allowed {
		return c.refuseForward(req, r, d)
	}
	for reported := false; ; {
		up, err := c.upstreamFor(r, d)
		if err != nil {
			return c.refuseForward(req, r, failed(r, d, err))
		}
		if !reported {
			c.report(r, d, map[string]string{"addr": remoteAddr(up.conn)})
			reported = true
		}
		x := exchange{c: c, req: req, r: r, up: up}
		err = x.run()
		if err != nil || !x.keepUp {
			c.dropUpstream()
		}
		switch {
		case err == nil:
			if !x.keep && x.unread {
				linger(c.conn, c.br)
			}
			return x.keep
		case up.reused && !x.begun && x.repeatable():
			continue // the origin closed the idle connection as we used it
		case !x.begun:
			return c.refuseForward(req, r, Decision{Verdict: d.Verdict, Code: CodeUpstream, Reason: "the origin gave no HTTP answer", Rule: d.Rule})
		}
		if !req.ProtoAtLeast(1, 1) {
			c.truncate() // nothing else tells this client that the answer is cut
		}
		return false
	}
}

// refuseForward refuses a request; the connection can be used on when there is
// no body to get rid of.
func (c *client) refuseForward(req *http.Request, r Request, d Decision) bool {
	keep := req.Body == http.NoBody && !req.Close && req.ProtoAtLeast(1, 1)
	c.refuse(req, r, d, !keep)
	return keep
}

// truncate ends the connection so that the client cannot take the part of an
// answer that it got for the whole.
func (c *client) truncate() {
	if t, ok := c.conn.(interface{ SetLinger(int) error }); ok {
		_ = t.SetLinger(0) // close resets the connection
	}
}
