package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/berth-hpc/berth/reproduce"
)

// environmentFile is the one file of a reproduction that differs from one time to the next:
// what it was made with, and how long it took. Everything beside it is the same bytes again.
const environmentFile = "environment.json"

// surroundings is what it holds.
type surroundings struct {
	Berth     string `json:"berth"` // version or commit
	Go        string `json:"go"`
	System    string `json:"system"`
	Processor string `json:"processor,omitempty"` // where the system tells
	Cores     int    `json:"cores"`               // that were used
	Began     string `json:"began"`               // RFC 3339, UTC
	Seconds   int64  `json:"seconds"`             // that it took
	Command   string `json:"command"`
	Rules     string `json:"rules"` // SHA-256 of the rules by which claims are judged
}

// environmentOf describes this process, which began then.
func environmentOf(command string, began time.Time) ([]byte, error) {
	e := surroundings{
		Berth: version(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Processor: processor("/proc/cpuinfo"),
		Cores: runtime.GOMAXPROCS(0), Began: began.UTC().Format(time.RFC3339), Seconds: int64(time.Since(began).Round(time.Second).Seconds()),
		Command: command, Rules: reproduce.RulesDigest(),
	}
	data, err := json.MarshalIndent(&e, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", environmentFile, err)
	}
	return append(data, '\n'), nil
}

// processor returns the name of the processor as Linux tells it in a file, empty if it does
// not.
func processor(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
