package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// toolCall is one step that the stand-in for a model asks its agent to take.
type toolCall struct {
	tool  string
	input map[string]any
}

// toolResult is what the agent sent back for a step.
type toolResult struct {
	failed bool
	text   string
}

// messages is a scripted stand-in for a messages API: it answers a request
// with the first step that has no result yet, and after the last with a
// closing text.
type messages struct {
	steps []toolCall

	mu      sync.Mutex // guards what follows
	keys    []string   // the credentials that came, each once
	bodies  []string
	results []toolResult
}

// serve starts it on loopback, until the test ends, and returns its port.
func (m *messages) serve(t *testing.T) string {
	srv := httptest.NewServer(m)
	t.Cleanup(srv.Close)
	return srv.URL[strings.LastIndex(srv.URL, ":")+1:]
}

// request is the part of a request that decides the answer.
type request struct {
	Model    string
	Stream   bool
	Tools    []struct{ Name string }
	Messages []struct{ Content json.RawMessage }
}

type block struct {
	Type    string
	Content json.RawMessage
	IsError bool `json:"is_error"`
}

func (m *messages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/messages" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var req request
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	results := req.results()
	m.note(r.Header.Get("X-Api-Key"), string(body), results)
	// A request without tools is the agent's own, for a title and the like.
	content, stop := map[string]any{"type": "text", "text": "done"}, "end_turn"
	if n := len(results); n < len(m.steps) && len(req.Tools) > 0 {
		s := m.steps[n]
		content, stop = map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%04d", n), "name": s.tool, "input": s.input}, "tool_use"
	}
	answer(w, req, content, stop)
}

// results are those that the conversation holds, in order.
func (q request) results() []toolResult {
	var out []toolResult
	for _, msg := range q.Messages {
		var blocks []block
		if json.Unmarshal(msg.Content, &blocks) != nil {
			continue // plain text
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				out = append(out, toolResult{b.IsError, string(b.Content)})
			}
		}
	}
	return out
}

func (m *messages) note(key, body string, results []toolResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.keys, key) {
		m.keys = append(m.keys, key)
	}
	m.bodies = append(m.bodies, body)
	if len(results) > len(m.results) {
		m.results = results
	}
}

// answer writes one assistant message of one block, streamed when asked.
func answer(w http.ResponseWriter, req request, content map[string]any, stop string) {
	msg := map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": req.Model, "content": []any{content},
		"stop_reason": stop, "stop_sequence": nil, "usage": map[string]int{"input_tokens": 1, "output_tokens": 1},
	}
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(msg) // an agent that went away is its own affair
		return
	}
	first, delta := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": content["text"]}
	if stop == "tool_use" {
		input, _ := json.Marshal(content["input"]) // strings and numbers only
		first = map[string]any{"type": "tool_use", "id": content["id"], "name": content["name"], "input": map[string]any{}}
		delta = map[string]any{"type": "input_json_delta", "partial_json": string(input)}
	}
	msg["content"], msg["stop_reason"] = []any{}, nil
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range []map[string]any{
		{"type": "message_start", "message": msg},
		{"type": "content_block_start", "index": 0, "content_block": first},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]int{"output_tokens": 1}},
		{"type": "message_stop"},
	} {
		data, _ := json.Marshal(event) // as above
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], data)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
}
