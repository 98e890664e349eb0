package main

import (
	"runtime/debug"
	"testing"
)

// The version tells the commit, whether the module has a version or not.
func TestVersionTellsTheCommit(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for want, info := range map[string]debug.BuildInfo{
		"v1.2.3":                             {Main: debug.Module{Version: "v1.2.3"}},
		"v0.0.0-20260102030405-0123456789ab": {Main: debug.Module{Version: "v0.0.0-20260102030405-0123456789ab"}},
		"devel-0123456789ab":                 {Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: commit}}},
		"devel-0123456789ab+changes": {Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: "true"},
		}},
		"devel": {},
	} {
		if got := versionOf(&info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
