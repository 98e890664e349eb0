package berth_test

import (
	"errors"
	"fmt"

	"github.com/berth-hpc/berth"
)

// A request is checked for what cannot be right in itself. Whether a valid request
// fits is the engine's question.
func ExampleRequest_Validate() {
	r := berth.Rigid("wind-17", 0, 600, 7200, 4, 3600) // 4 PEs for an hour, between 600 and 7200 s
	fmt.Println(r.Validate())

	r.Parts[0].Variants = append(r.Parts[0].Variants, berth.Variant{NPE: 8, Duration: 2000}) // or 8 PEs for less
	r.Software, r.StorageMB = "solver", 2000
	fmt.Println(r.Validate())

	r.Deadline = 500
	err := r.Validate()
	if wrong, ok := errors.AsType[*berth.Error](err); ok {
		fmt.Println(wrong.Code, wrong.Field)
	}
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
	// invalid deadline
	// deadline: 500 is not after the ready time 600
}
