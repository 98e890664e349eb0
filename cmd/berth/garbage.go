package main

import "sync"

// heapFloor is how much memory a command takes before garbage is collected for the first time, beside what the collector
// leaves without it. A log of 200,000 jobs leaves less garbage than that.
const heapFloor = 128 << 20

// spacious is for commands that read much, compute and end: while their heap is small, garbage is collected often, and most of
// what is looked at stays. It takes room that is never written to, so the system gives no memory for it, but the collector
// counts it: a heap of n bytes is collected at 2·n + 128 MiB.
var spacious = sync.OnceValue(func() []byte { return make([]byte, heapFloor) })
