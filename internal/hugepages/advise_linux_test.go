package hugepages

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"
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

// Whoever has no address space to spare is not made to take some.
func TestLimitsAreKept(t *testing.T) {
	t.Setenv("GODEBUG", "madvdontneed=1,disablethp=1")
	if wanted() {
		t.Error("huge pages are asked for where GODEBUG says none")
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
