package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// limitForm is how a value of a limit is written in a sites file.
var limitForm = map[policy.Unit]string{
	policy.InSeconds: "duration", policy.InCount: "whole number", policy.InPermille: "decimal up to 1", policy.InPESeconds: "whole number",
	policy.InRate: "decimal", policy.InBytes: "size",
}

// limitText is a default as a sites file has it.
func limitText(kind policy.LimitKind, value int64, limited bool) string {
	switch {
	case !limited:
		return "none"
	case kind.Unit == policy.InSeconds:
		return hpctime.Format(berth.Duration(value))
	case kind.Unit == policy.InPermille || kind.Unit == policy.InRate:
		return fmt.Sprintf("%g", float64(value)/1000)
	case kind.Unit == policy.InPESeconds:
		return fmt.Sprint(value / 3600)
	case kind.Unit == policy.InBytes:
		return fmt.Sprintf("%dMiB", value>>20)
	}
	return fmt.Sprint(value)
}

// The page about sites files has every limit with its defaults.
func TestThePageHasEveryLimit(t *testing.T) {
	page, err := os.ReadFile("../../docs/sites-file.md")
	if err != nil {
		t.Fatal(err)
	}
	limits := service.DefaultLimits()
	for _, kind := range policy.LimitKinds {
		row := fmt.Sprintf("| `%s` | %s | %s |", kind.Name, limitForm[kind.Unit], kind.About)
		for _, role := range service.Roles() {
			allowance := limits.Of(string(role), "")
			value, limited := allowance.Limit(kind.Name)
			row += " " + limitText(kind, value, limited) + " |"
		}
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("docs/sites-file.md lacks\n%s", row)
		}
	}
}
