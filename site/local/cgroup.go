//go:build linux

package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cgroups is the folder below which groups for tasks can be made, in the second
// version's file system. Where that offers controllers, the memory of a task is
// limited; without them a group still holds its processes together.
type cgroups struct {
	base        string
	controllers []string
	why         string // there are none
}

func (c *cgroups) has(controller string) bool { return slices.Contains(c.controllers, controller) }

// groupsFolder is the folder of all tasks' groups below the service's own.
const groupsFolder = "berth-tasks"

// findCgroups looks for a folder of our own and makes it ready.
func findCgroups() *cgroups {
	mount, err := cgroupMount()
	if err != nil {
		return &cgroups{why: err.Error()}
	}
	own, err := ownCgroup()
	if err != nil {
		return &cgroups{why: err.Error()}
	}
	parent := filepath.Join(mount, own)
	if filepath.Base(parent) == groupsFolder { // a service started from a task of ours
		parent = filepath.Dir(parent)
	}
	base := filepath.Join(parent, groupsFolder)
	if err := os.Mkdir(base, 0o755); err != nil && !os.IsExist(err) {
		return &cgroups{why: err.Error()}
	}
	// Controllers reach a task's group only if every folder above passes them on.
	// A folder with processes of its own cannot; then there are none.
	for _, folder := range []string{parent, base} {
		for _, controller := range []string{"memory", "pids"} {
			_ = os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte("+"+controller), 0)
		}
	}
	offered, _ := os.ReadFile(filepath.Join(base, "cgroup.subtree_control")) // none is as good as empty
	return &cgroups{base: base, controllers: strings.Fields(string(offered))}
}

// cgroupMount returns where the second version is mounted.
func cgroupMount() (string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return parseMount(string(text))
}

func parseMount(text string) (string, error) {
	for line := range strings.Lines(text) {
		before, behind, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if kind := strings.Fields(behind); ok && len(fields) > 4 && len(kind) > 0 && kind[0] == "cgroup2" {
			return fields[4], nil
		}
	}
	return "", fmt.Errorf("cgroup v2 is not mounted")
}

func ownCgroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return own, nil
		}
	}
	return "", fmt.Errorf("this process is in no group of cgroup v2")
}

// make makes the group of a job and returns its folder; empty if there can be
// none.
func (c *cgroups) make(name string, memoryMB int64) string {
	if c.why != "" {
		return ""
	}
	folder := filepath.Join(c.base, name)
	if err := os.Mkdir(folder, 0o755); err != nil && !os.IsExist(err) {
		return ""
	}
	if memoryMB > 0 && c.has("memory") {
		const megabyte = 1_000_000
		_ = os.WriteFile(filepath.Join(folder, "memory.max"), []byte(strconv.FormatInt(memoryMB*megabyte, 10)), 0)
	}
	return folder
}

// killCgroup kills every process of a group.
func killCgroup(folder string) {
	if err := os.WriteFile(filepath.Join(folder, "cgroup.kill"), []byte("1"), 0); err == nil {
		return
	}
	// Kernels before 5.14 have no such file.
	text, _ := os.ReadFile(filepath.Join(folder, "cgroup.procs")) // a group that is gone has no processes
	for field := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			kill(pid)
		}
	}
}
