package main

import (
	"fmt"
	"log"
	"os"
)

func Example() {
	if err := run(log.New(os.Stdout, "", 0)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0: wind is promised PEs 0-5 from 10
	// 0: rain is promised PEs 0-5 from 30
	// 1: wind moves to PEs 1-6 from 10
	// 1: rain moves to PEs 1-6 from 30
	// the cluster has map[rain:batch:0-5 in [30,50) wind:batch:0-5 in [10,30)] and 2 effects wait
	// after the crash the state is the same: true
	// the cluster has map[rain:batch:1-6 in [30,50) wind:batch:1-6 in [10,30)] and 0 effects wait
	// id: reservation "wind" is confirmed, not held
	// at 50 the cluster has map[]
}
