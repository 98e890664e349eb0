package hugepages

import (
	"math"
	"math/bits"
	"os"
	"runtime/debug"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The settings of the kernel.
const (
	givenTo      = "/sys/kernel/mm/transparent_hugepage/enabled"
	overcommit   = "/proc/sys/vm/overcommit_memory"
	neverMore    = "2"
	whoeverAsks  = "[madvise]"
	noneForHeaps = "disablethp=1"
)

func advise(room int64) {
	if !wanted() {
		return
	}
	// The runtime takes the lowest free address first. What it has given up again
	// keeps the advice, and is where whatever comes next lies.
	ask(make([]byte, room))
	debug.FreeOSMemory()
}

// ask asks for huge pages for bytes that the caller does not use.
//
//go:noinline
func ask(bytes []byte) {
	size := uintptr(os.Getpagesize())
	if uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))%size != 0 {
		return
	}
	// The kernel may know no huge pages at all, which is no harm.
	_ = unix.Madvise(bytes, unix.MADV_HUGEPAGE)
}

// wanted says whether asking does any good, and no harm.
func wanted() bool {
	if bits.UintSize < 64 {
		return false // no room to spare
	}
	given, err := os.ReadFile(givenTo)
	if err != nil || !strings.Contains(string(given), whoeverAsks) {
		return false
	}
	if sure, err := os.ReadFile(overcommit); err != nil || strings.TrimSpace(string(sure)) == neverMore {
		return false
	}
	for _, limit := range []int{unix.RLIMIT_AS, unix.RLIMIT_DATA} { // both count what is not used yet
		var room unix.Rlimit
		if err := unix.Getrlimit(limit, &room); err != nil || room.Cur != unix.RLIM_INFINITY {
			return false
		}
	}
	return debug.SetMemoryLimit(-1) == math.MaxInt64 && !strings.Contains(os.Getenv("GODEBUG"), noneForHeaps)
}
