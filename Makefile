# Needs Go (1.21 or newer), git and make. "make help" lists what there is.

# The go command fetches the toolchain that go.mod names, whatever the environment says.
export GOTOOLCHAIN := $(shell sed -n 's/^toolchain //p' go.mod)

PROGRAMS := $(patsubst %/main.go,%,$(wildcard mooncite/main.go dodo/main.go))
VERSION  := $(shell cat VERSION)
PREFIX   ?= $(HOME)/.local
BINDIR   ?= $(PREFIX)/bin
BENCH    ?=

export FUZZTIME ?= 4s

.PHONY: help build install demo test check fuzz golden clients bench-mooncite bench-dodo clean

help:
	@echo 'make demo            build; recall and verify with mooncite, edit and take back with dodo'
	@echo 'make test            everything that CI runs'
	@echo 'make check           the quick part of it, before every commit'
	@echo 'make build           the programs, into bin/'
	@echo 'make install         the programs, into $$HOME/.local/bin (PREFIX, BINDIR, DESTDIR)'
	@echo 'make fuzz            every fuzz target for FUZZTIME (4s)'
	@echo 'make golden          write golden files and generated documents anew'
	@echo 'make clients         install the real clients from npm, and let each log in to dodo and call it'
	@echo 'make bench-mooncite  measure mooncite; options in BENCH, such as BENCH="-mb 10"'
	@echo 'make bench-dodo      measure dodo: its start, the gate, an edit, search beside ripgrep'
	@echo 'make clean           remove bin/ and .cache/'

build:
	@mkdir -p bin
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ $(addprefix ./,$(PROGRAMS))

# Each binary takes its name by a rename: a program that is running keeps its old file.
install: build
	mkdir -p '$(DESTDIR)$(BINDIR)'
	for p in $(PROGRAMS); do \
		cp bin/$$p '$(DESTDIR)$(BINDIR)'/.$$p.new && chmod 755 '$(DESTDIR)$(BINDIR)'/.$$p.new && \
		mv -f '$(DESTDIR)$(BINDIR)'/.$$p.new '$(DESTDIR)$(BINDIR)'/$$p || exit 1; \
	done

demo: build
	@scripts/demo bin/mooncite bin/dodo

test:
	@scripts/test

check:
	@scripts/test format vet modules documents layers

fuzz:
	@scripts/test fuzz

golden:
	go test $$(grep -rlE 'internal/testenv"|"update"' --include='*_test.go' . | xargs -n 1 dirname | sort -u) -update
	scripts/deps -update

bench-mooncite: build
	go run ./mooncite/tools/mooncite-bench -bin bin/mooncite $(BENCH)

clients:
	@LOCALMCP_TEST_NPM=1 DODO_TEST_CLIENTS=all go test -count=1 -v ./dodo -run TestRemoteClients

bench-dodo: build
	go run ./dodo/tools/dodo-bench -bin bin/dodo $(BENCH)
	DODO_BENCH_HELPER='$(CURDIR)/bin/dodo' go test -run '^$$' -bench 'Call|Edit|AsRipgrep|Glob|Walk|True|TwoHundred|Goroot' -benchtime 1s ./dodo/internal/gate ./dodo/internal/ground/change ./dodo/internal/ground/search ./dodo/internal/ground/workspace ./dodo/internal/ground/sandbox

clean:
	rm -rf bin .cache
