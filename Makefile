# agentguard. `make help` lists what there is to type.

GO ?= go
BIN := bin/agentguard
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)
PREFIX ?= $(if $(filter 0,$(shell id -u)),/usr/local,$(HOME)/.local)
FUZZTIME ?= 5s
# ST1003 would rename what system calls and git call by their own names; SA4023
# misfires on the twins for other systems, which always return an error; ST1012
# would have SkipDir, named as in io/fs and no failure, be an ErrSkipDir.
STATICCHECK := $(GO) tool -modfile=.ci/tools/go.mod staticcheck -checks all,-ST1003,-ST1012,-SA4023
# The binary starts itself inside the sandbox, where nothing is linked to it at
# that moment; a test's binary stands in for it.
STATIC := CGO_ENABLED=0
# The tests whose subject is several goroutines at once.
RACE := ./egress/... ./guard/watch/... ./guard/policy/...
# The kernel, the terminal and git are asked for where they are there, so that
# no test of them is skipped in silence.
REQUIRE = $(if $(AGENTGUARD_REQUIRE),$(AGENTGUARD_REQUIRE),$$(.ci/able))

export GO

.DEFAULT_GOAL := build
.PHONY: build install demo test race bench lint cross fuzz clean help newgo

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

newgo:
	@.ci/newgo

build: newgo ## the static binary, bin/agentguard
	@.ci/setup build
	$(STATIC) $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/agentguard

install: build ## bin/agentguard to PREFIX/bin (/usr/local as root, else ~/.local)
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 755 $(BIN) '$(DESTDIR)$(PREFIX)/bin/agentguard'
	@case ":$$PATH:" in *':$(PREFIX)/bin:'*) ;; *) echo 'note: $(PREFIX)/bin is not on your PATH' ;; esac

demo: newgo ## a scripted agent tries bad and good things in the guard
	@.ci/setup demo
	@$(MAKE) --no-print-directory build
	@PATH="$(CURDIR)/bin:$$PATH" testdata/demo/run.sh

test: newgo ## all tests, after installing what they need
	@.ci/setup test
	AGENTGUARD_REQUIRE="$(REQUIRE)" $(STATIC) $(GO) test $(TESTFLAGS) ./...
	[ ! -e /usr/include/seccomp.h ] || CGO_ENABLED=1 $(GO) test -tags libseccomp ./sandbox/seccomp

race: newgo ## the concurrent packages under the race detector
	$(GO) test -race $(RACE)

bench: newgo ## the benchmarks, with the ratios they are held to
	@.ci/setup test
	$(STATIC) $(GO) test -run '^$$' -bench . -benchmem $(BENCHFLAGS) ./...

lint: newgo ## gofmt, vet for each system, tidy go.mod, staticcheck
	@out=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) && [ -z "$$out" ] || { echo "not gofmt'ed:" $$out >&2; exit 1; }
	$(GO) vet ./...
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 $(GO) vet ./...
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	$(GO) mod tidy -diff
	$(STATICCHECK) ./...

cross: newgo ## the binary for each system it ships for, in bin/
	@for p in linux/amd64 linux/arm64 darwin/arm64; do \
		echo "build $$p"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -trimpath -ldflags '$(LDFLAGS)' \
			-o bin/agentguard-$${p%/*}-$${p#*/} ./cmd/agentguard || exit 1; \
	done

fuzz: newgo ## each fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

clean: ## what the build made
	rm -rf bin dist
