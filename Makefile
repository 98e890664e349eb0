# Plain make: each target is a few commands you could type yourself. It needs Go,
# git and make; the linters are Go modules of fixed versions, compiled once into
# .tools. A change of version is a change of folder name, so nothing goes stale.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help packages try-packages build web web-dev cross run demo pictures screens simulate test race slurms test-long flood fuzz bench bench-all bench-calendar bench-sim bench-workflow bench-service bench-web mutants lint vulncheck fmt docs clean

GOLANGCI_LINT := .tools/github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0/golangci-lint
DEADCODE      := .tools/golang.org/x/tools/cmd/deadcode@v0.52.0/deadcode
BENCHSTAT     := .tools/golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da/benchstat

NFPM          := .tools/github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.44.1/nfpm
GOVULNCHECK   := .tools/golang.org/x/vuln/cmd/govulncheck@v1.9.0/govulncheck

# By this name, make -n runs no make.
SELF = $(MAKE) --no-print-directory

TESTFLAGS ?=
FUZZTIME  ?= 30s
BENCH     ?= .
COUNT     ?= 6
BASE      ?=
MUTANTS   ?=
VULNDB    ?=

# Without the folder of the checkout in what is compiled, lint, build and tests share it, and so do several checkouts.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -trimpath)

# What is named first begins first: these take longest. No more packages run at once than there are processors, since tests
# that time out are worth less than the minutes that more at once would save.
LONGEST = ./service ./cmd/berth ./site/slurm

# Tests that only compute: they wait for nothing and no one, so they get the processors while others wait for clusters,
# browsers and clocks, and take nothing from those.
COMPUTE = ./reproduce ./engine/... ./calendar/... ./policy ./workflow/... ./planning ./sim ./scenario ./lab ./advise ./forecast ./measure ./check ./workload \
	./internal/mutants ./internal/lint ./internal/calendarbench ./internal/workflowbench ./internal/performance

help: ## list the targets
	@awk -F ' *##+ *' '/^[a-z-]+:.*## / { sub(/:.*/, "", $$1); printf "  make %-14s %s\n", $$1, $$2 }' Makefile

build: ## compile bin/berth
	go build -buildvcs=auto -o bin/berth ./cmd/berth

# The result is in the repository, so that only those who change the pages need Node.
web: ## build the pages for browsers from web/ui into web/dist (needs Node 20.19 or later with npm)
	cd web/ui && npm ci --ignore-scripts --no-audit --no-fund && npm run build

web-dev: ## serve the pages from their sources, for work on them, in front of the service of make run
	cd web/ui && npm ci --ignore-scripts --no-audit --no-fund && npm run dev

# Tests are compiled too, which is what go vet does first.
cross: ## compile and vet everything for macOS, Windows and FreeBSD
	@set -e; for os in darwin windows freebsd; do echo "GOOS=$$os go build ./... && go vet ./..."; \
		GOOS=$$os go build ./...; GOOS=$$os go vet ./...; done

run: build ## start the service on this machine, with its data in out/data; Ctrl-C stops it
	@mkdir -p out
	bin/berth serve --data out/data --link

demo: build ## the service in front of a simulated site of 1,000 nodes under a load that moves; Ctrl-C stops it
	go run ./internal/demo/demo -berth bin/berth

pictures: build ## make the pictures of the pages in docs anew (needs Chromium)
	BERTH_REQUIRE=browser go test -count=1 ./internal/demo -run Picture -demo.pictures $(CURDIR)/docs -demo.berth $(CURDIR)/bin/berth

screens: ## leave pictures of every page, theme, role and state in out/screens, to be looked at (needs Chromium and npm)
	@mkdir -p out/screens
	BERTH_REQUIRE=browser,node go test -count=1 ./cmd/berth -run 'TestAxeFindsNothing|TestPagesFitAPhone' -args -shots $(CURDIR)/out/screens -shots.whole

simulate: build ## replay a small log under every policy and draw the schedules
	@mkdir -p out
	bin/berth sim --workload examples/first-light.swf --pes 64 --policy all --plot out/first-light.svg --schedule out/first-light.jsonl
	@echo && echo "Look at:" && ls out/first-light*

# Where a person waits, tests draw a quarter of their random cases (internal/effort, and rapid's 100 checks). CI draws
# all, and so does go test by itself.
ifneq ($(CI),true)
test: export BERTH_EFFORT := quarter
test: export RAPID_CHECKS := 25
endif

# What CI adds is cross, which compiles everything three times more, race, and slurms. The tests need no
# go vet, whose analyzers are among those of lint. The linters wait for nothing either: they run beside the tests that do.
test: build ## format, lint, build, and all tests; outside CI with a quarter of the random cases
	@others=$$(go list ./... | grep -vxF "$$(go list $(COMPUTE))"); set -x; \
	{ nice -n 19 $(SELF) lint && nice -n 19 go test -vet=off -timeout 45m $(TESTFLAGS) $(COMPUTE); } & compute=$$!; \
	go test -vet=off -timeout 45m $(TESTFLAGS) $(LONGEST) $$others && passed=0 || passed=$$?; \
	wait $$compute && exit $$passed

# The pure rooms start no goroutine and hold no lock, which internal/lint proves; only a package
# that does one of these can race. -short leaves out whole real logs and what runs in one
# goroutine for long, which run without the detector above.
race: ## the tests of what is concurrent again, under the race detector
	@racy=$$(grep -rlE --include='*.go' --exclude='*_test.go' --exclude-dir=testdata --exclude-dir=node_modules --exclude-dir='.tools' '^[[:space:]]*go (func\>|[[:alpha:]])|\.Go\(|^[[:space:]]*"sync(/atomic)?"$$' . | xargs -n 1 dirname | sort -u); \
	if [ -z "$$racy" ]; then echo "race detector: no package is concurrent, nothing to watch"; \
	elif [ "$$(go env CGO_ENABLED)" != 1 ] || ! command -v "$$(go env CC)" >/dev/null; then \
		echo "race detector: SKIPPED, it needs cgo and a C compiler ($$(go env CC)), and one of them is absent"; \
	else set -x; go test -vet=off -race -short -timeout 45m $(TESTFLAGS) $(LONGEST) ./reproduce $$racy; fi

# Four at a time of each package: they wait for clusters and clocks, not for processors. Those of the service take longest, and the
# others run beside them.
SLURM_TEST = go test -vet=off -count=1 -timeout 30m -parallel 4
slurms: ## as root: the tests in front of Slurm again, on real 24.11 and 26.05 side by side, since most of them wait
	@service=$$(sed -n 's/^func \(Test[A-Za-z0-9]*\)(.*/\1/p' service/*slurm*_test.go | paste -sd '|'); logs=$$(mktemp -d); trap 'rm -r $$logs' EXIT; trap 'exit 130' INT TERM; \
	for suite in trixie forky; do ( \
	  bin=$$(site/slurm/slurmtest/newer.sh $$suite | tail -n 1) && [ -n "$$bin" ] || exit 1; export BERTH_SLURM=$$bin; set -x; \
	  $(SLURM_TEST) ./service -run "^($$service)\$$" & service=$$!; \
	  $(SLURM_TEST) ./site/slurm && $(SLURM_TEST) ./sites/adapters && \
	  go test -vet=off -count=1 -timeout 30m ./cmd/berth -run '^(TestServeSlurm|TestServeSbatch|TestOptionsOfSbatchAreThoseOfTheRealOne|TestThreeUsersWithoutATokenInFrontOfSlurm|TestFilterOfSlurmsCommandsHarmsNoSite|TestFilterGivesBackWhatSlurmRefuses|TestTwoClustersOneOfThemDown)$$' && passed=0 || passed=$$?; \
	  wait $$service && exit $$passed \
	) >$$logs/$$suite 2>&1 & eval $$suite=$$!; done; \
	failed=0; for suite in trixie forky; do eval "wait \$$$$suite" || failed=1; cat $$logs/$$suite; done; exit $$failed

# The last flags make a million finds of each rule, against the plain form, for each binding.
test-long: lint build ## the same with far more random cases, and every fuzz target for FUZZTIME
	go test -count=1 -timeout 60m ./...
	go test -count=1 -timeout 120m ./calendar -run 'EqualsPlain' -late.ops 500000 -early.ops 3400000
	go test -count=1 -timeout 60m ./workflow -run 'EqualsPlain|EqualPlain|ICASLBEquals' -instances 10000
	go test -count=1 -timeout 60m ./cmd/berth -run 'TestEveryPlanIsValid|TestPlansAreTheSameEverywhere|TestLossOfPower' -plan.all -loss.seeds 100
	go test -count=1 -timeout 60m ./journal/sqlite -journal.cases 200
	go test -count=1 -timeout 60m ./journal/postgres -journal.cases 10
	go test -count=1 -timeout 240m -v ./reproduce -run 'TestClaimsDoNotHoldOfRelabelledData|TestVerdictsUnderSeeds' -relabellings 200 -seeds 20
	CI=true BERTH_REQUIRE=glpk go test -count=1 -timeout 60m ./internal/offline -run GLPK
	go test -count=1 -timeout 60m ./engine -run TestMachine -machine.events 20000000
	go test -count=1 -timeout 60m ./sim -run TestCostsAreForeseen -costs.cases 200
	go test -count=1 -timeout 120m ./service -run 'Killed|Storm|LossOfPower|ADayInTheLife' -service.rounds 100 -service.noticerounds 100 -service.storms 200 -service.losses 100 -service.day 10m
	go test -count=1 -timeout 240m -v ./dst -run 'TestLives$$' -dst.seeds 10000 -dst.workers 2
	@rapid=$$(go list -f '{{range .TestImports}}{{if eq . "pgregory.net/rapid"}}{{$$.ImportPath}}{{"\n"}}{{end}}{{end}}{{range .XTestImports}}{{if eq . "pgregory.net/rapid"}}{{$$.ImportPath}}{{"\n"}}{{end}}{{end}}' ./... | sort -u); \
	if [ -n "$$rapid" ]; then set -x; go test -count=1 -timeout 60m $$rapid -rapid.checks=10000; fi
	@$(MAKE) --no-print-directory race fuzz

flood: ## what floods do to others, and what fills the service's memory, on a quiet machine
	go test -count=1 -timeout 120m -v ./cmd/berth -run 'TestFlood$$|TestMemory$$|TestAComparisonLeavesOthersAlone$$' -flood.full -memory.full

fuzz: ## run every fuzz target for FUZZTIME (30s)
	@set -e; for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

bench: $(BENCHSTAT) ## measure BENCH (all) COUNT (6) times into out/bench.txt; BASE=old.txt compares
	@mkdir -p out
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./... > out/bench.txt || { cat out/bench.txt; exit 1; }
	$(BENCHSTAT) $(BASE) out/bench.txt

# What these measure they also put into docs/performance/measurements.json, with the commit: without changes that are not
# committed, and on a quiet machine. Then the page is made anew.
RECORDED = go run ./internal/performance/page

bench-all: bench-calendar bench-sim bench-workflow bench-service bench-web ## all tables of docs/performance.md that a command measures (two hours)

bench-sim: build ## berth sim, file to result: time and memory of whole processes (BESIDE=PROGRAM of an earlier commit, in turn)
	go run ./internal/simbench -record $(if $(BESIDE),-beside $(BESIDE))
	$(RECORDED)

bench-workflow: ## the planners' table of docs/performance.md, beside their plain forms
	go run ./internal/workflowbench -record
	$(RECORDED)

bench-service: ## the service's table of docs/performance.md
	go test -count=1 -v -timeout 60m ./internal/servicebench -run Table -servicebench.full -servicebench.record
	$(RECORDED)

bench-web: ## the pages' table of docs/performance.md, in a real Chromium beside vis-timeline and plain canvas (needs Node)
	cd web/ui && npm ci --ignore-scripts --no-audit --no-fund
	cd web/bench && npm ci --ignore-scripts --no-audit --no-fund
	BERTH_REQUIRE=browser go test -count=1 -v -timeout 30m ./internal/demo -run TestTable -demo.bench -demo.record
	$(RECORDED)

bench-calendar: ## the table of docs/performance.md: every form of the calendar, row by row
	go run ./internal/calendarbench -record
	$(RECORDED)

mutants: ## change the deciding rooms in 200 places; each change must fail a test (MUTANTS="-packages policy -n 40")
	go run ./internal/mutants $(MUTANTS)

lint: $(GOLANGCI_LINT) $(DEADCODE) ## formatting, vet, golangci-lint, tidy go.mod, dead code
	$(GOLANGCI_LINT) run ./...
	go mod tidy -diff
	@dead=$$($(DEADCODE) -test ./...) || exit 1; if [ -n "$$dead" ]; then \
		echo "$$dead"; echo "deadcode: neither a command nor a test reaches these"; exit 1; fi

vulncheck: $(GOVULNCHECK) ## known vulnerabilities that the code can reach (asks vuln.go.dev, or VULNDB=file:///…)
	$(GOVULNCHECK) $(if $(VULNDB),-db $(VULNDB)) ./...

fmt: $(GOLANGCI_LINT) ## rewrite the Go files with gofumpt
	$(GOLANGCI_LINT) fmt ./...

docs: ## check the links between the documents and run the examples they point to
	go test -count=1 -run 'Links' ./internal/lint
	go test -count=1 -run '^Example' ./...

packages: $(NFPM) ## make deb, rpm, tar and container image with an SBOM in out/packages, the same bytes for the same commit
	packaging/build.sh $(NFPM)

try-packages: packages ## as root: make the packages twice, the same bytes; install, upgrade and remove deb and rpm in clean chroots of Debian 12 and 13
	@cp out/packages/SHA256SUMS out/once
	packaging/build.sh $(NFPM)
	cmp out/once out/packages/SHA256SUMS
	packaging/try.sh bookworm trixie

clean: ## remove what the other targets made, but not the compiled linters
	rm -rf bin out

# .tools/<import path>@<version>/<program>: the folder's name says what to fetch.
.tools/%:
	GOBIN="$(CURDIR)/$(@D)" go install $(patsubst .tools/%,%,$(@D))
