// Package hugepages has the heap of this process lie on huge pages where Linux
// gives them to those alone who ask. What walks over hundreds of megabytes then
// misses the translations of addresses some hundred times less often, which counts
// most in virtual machines, where each miss is answered twice.
package hugepages

import "sync"

var once sync.Once

// Advise asks for huge pages for as many bytes of the heap as room says, from
// where it begins to grow; call it before much is on it, since what is there stays
// where it is. Only the first call does anything, and none where the kernel gives
// huge pages to all or to none, addresses have 32 bits, the address space, the data or the heap has a limit,
// memory must be there before it is used (vm.overcommit_memory = 2), or
// GODEBUG=disablethp=1 says that the heap is to have none. Cost: a garbage
// collection and, for each gigabyte, about a megabyte of the runtime's own and two milliseconds.
func Advise(room int64) { once.Do(func() { advise(room) }) }
