package workload_test

import (
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/workload"
)

// A log's jobs become requests with windows.
func Example() {
	log := `; MaxProcs: 64
1  0 -1 600 16 -1 -1 16 900 -1 1 -1 -1 -1 -1 -1 -1 -1
2 30 -1   0  8 -1 -1  8 900 -1 5 -1 -1 -1 -1 -1 -1 -1
3 60 -1 300 32 -1 -1 32 900 -1 1 -1 -1 -1 -1 -1 -1 -1
`
	work, err := workload.ReadSWF(strings.NewReader(log), "log.swf", workload.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(&work.Report)
	transform := workload.NewTransform(1)
	requests, err := transform.Requests(work.Records, false, &work.Report)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range requests {
		shape := r.Parts[0].Variants[0]
		fmt.Printf("job %s: %d PEs for %d s within %v\n", r.ID, shape.NPE, shape.Duration, r.Window())
	}
	// Output:
	// log.swf: 2 of 3 records usable, 1 skipped (no run time)
	// job 1: 16 PEs for 600 s within [1467,3050)
	// job 3: 32 PEs for 300 s within [507,813)
}
