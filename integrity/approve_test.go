package integrity

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agentguard/guard/surface"
)

func TestApproved(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "approvals")}
	f := with(file("package.json", "1"), func(f *File) { f.Part = sum("scripts") })
	if ok, err := s.Approved("repo", f); ok || err != nil {
		t.Fatalf("approved in an empty store: %v, %v", ok, err)
	}
	if err := s.Approve("repo", f, time.Now()); err != nil {
		t.Fatal(err)
	}
	gone := File{Path: "hook"}
	if err := s.Approve("repo", gone, time.Now()); err != nil {
		t.Fatal(err)
	}
	review := func(f *File) { f.Protection = surface.Review }
	data := with(f, func(f *File) { f.Whole = sum("2") })
	rows := []struct {
		name, repo string
		f          File
		want       bool
	}{
		{"as approved", "repo", f, true},
		{"another repository", "repo2", f, false},
		{"another path", "repo", with(f, func(f *File) { f.Path = "a/package.json" }), false},
		{"another mode", "repo", with(f, func(f *File) { f.Mode = 0o100755 }), false},
		{"a link of that text", "repo", with(f, func(f *File) { f.Kind = Link }), false},
		{"other data, frozen", "repo", data, false},
		{"other data, under review", "repo", with(data, review), true},
		{"another part, under review", "repo", with(with(f, func(f *File) { f.Part = sum("x") }), review), false},
		{"gone, not approved", "repo", File{Path: "package.json"}, false},
		{"gone, approved", "repo", gone, true},
		{"gone was approved, there", "repo", file("hook", ""), false},
		{"zero", "repo", File{}, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if ok, err := s.Approved(row.repo, row.f); ok != row.want || err != nil {
				t.Errorf("Approved = %v, %v, want %v", ok, err, row.want)
			}
		})
	}
	if list, err := s.List("repo"); err != nil || len(list) != 2 || list[0].Path != "hook" {
		t.Errorf("List = %+v, %v", list, err)
	}
	if err := s.Revoke("repo", f); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.Approved("repo", f); ok || err != nil {
		t.Errorf("approved after Revoke: %v, %v", ok, err)
	}
	if err := s.Revoke("repo", f); err != nil {
		t.Errorf("revoking twice: %v", err)
	}
}

func TestApprovalsAreDistrusted(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	f := file("Makefile", "1")
	if err := s.Approve("repo", f, time.Now()); err != nil {
		t.Fatal(err)
	}
	name := s.file("repo", f)
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	t.Run("moved to another repository", func(t *testing.T) {
		to := s.file("other", f)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if ok, err := s.Approved("other", f); ok || err != nil {
			t.Errorf("Approved = %v, %v", ok, err)
		}
	})
	for _, bad := range []string{"", "{", `{"repo":"repo","more":1}`, `{}{}`} {
		t.Run("damaged "+bad, func(t *testing.T) {
			if err := os.WriteFile(name, []byte(bad), 0o600); err != nil {
				t.Fatal(err)
			}
			if ok, err := s.Approved("repo", f); ok || err == nil {
				t.Errorf("Approved = %v, %v, want an error", ok, err)
			}
		})
	}
}

func TestApprovingAtOnceLosesNothing(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := s.Approve("repo", file(string(rune('a'+i)), "1"), time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := s.List("repo"); err != nil || len(list) != 20 {
		t.Errorf("%d approvals, %v, want 20", len(list), err)
	}
}
