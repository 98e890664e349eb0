package hugepages

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

var sink []byte

// What is put on the heap afterwards lies on pages that the kernel may make huge,
// where it wants to be asked.
func TestAdvise(t *testing.T) {
	asked := wanted()
	Advise(256 << 20)
	sink = make([]byte, 64<<20)
	flags, found := flagsOf(t, uint64(uintptr(unsafe.Pointer(unsafe.SliceData(sink)))))
	if advised := strings.Contains(flags+" ", " hg "); !found || advised != asked {
		t.Errorf("the heap has the flags %q, want hg: %v", flags, asked)
	}
}

// GODEBUG says that there are to be none.
func TestGodebugIsKept(t *testing.T) {
	t.Setenv("GODEBUG", "madvdontneed=1,disablethp=1")
	if wanted() {
		t.Error("huge pages are asked for where GODEBUG says none")
	}
}

// A process with a limit that has no room for them goes on without them.
func TestLimitsAreKept(t *testing.T) {
	const limited = "BERTH_HUGEPAGESTEST_LIMIT"
	limits := map[string]int{"address space": unix.RLIMIT_AS, "data": unix.RLIMIT_DATA}
	if limit, child := limits[os.Getenv(limited)]; child {
		const most = 4 << 30
		if err := unix.Setrlimit(limit, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			t.Fatal(err)
		}
		Advise(2 * most)
		return
	}
	for name := range limits {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestLimitsAreKept$")
		cmd.Env = append(os.Environ(), limited+"="+name)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("with a limit of %s: %v\n%.600s", name, err, out)
		}
	}
}

// flagsOf returns what the kernel says of the mapping that holds an address.
func flagsOf(t *testing.T, address uint64) (flags string, found bool) {
	t.Helper()
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, inside := bufio.NewScanner(file), false
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if from, to, ok := strings.Cut(words[0], "-"); ok {
			first, err := strconv.ParseUint(from, 16, 64)
			last, err2 := strconv.ParseUint(to, 16, 64)
			inside = err == nil && err2 == nil && first <= address && address < last
		} else if inside && words[0] == "VmFlags:" {
			return lines.Text(), true
		}
	}
	return "", false
}
