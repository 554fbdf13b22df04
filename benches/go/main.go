// Times franz-go's kmsg on one DescribeConfigsResponse of version 4, read from the file that is named:
//
//	kmsg decode 53kB 120000 ns, at best 110000
//
// A time is the lower quartile of batches of calls. The collector runs as it does by default, and its work is in the batches.
// Called by the script other-languages.
package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	version = 4
	warmUp  = 500
	batches = 400
	calls   = 20
)

func main() {
	if len(os.Args) != 2 {
		fail("usage: main FILE")
	}
	message, err := os.ReadFile(os.Args[1])
	if err != nil {
		fail(err)
	}
	response := kmsg.NewPtrDescribeConfigsResponse()
	response.SetVersion(version)
	var out []byte
	decode := func() {
		if err := response.ReadFrom(message); err != nil {
			fail(err)
		}
	}
	encode := func() { out = response.AppendTo(out[:0]) }

	decode()
	encode()
	if !bytes.Equal(out, message) {
		fail("kmsg writes other bytes than it read")
	}
	measure("decode", len(message), decode)
	measure("encode", len(message), encode)
}

func measure(name string, size int, operation func()) {
	for range warmUp {
		operation()
	}
	times := make([]time.Duration, batches)
	for batch := range times {
		start := time.Now()
		for range calls {
			operation()
		}
		times[batch] = time.Since(start) / calls
	}
	slices.Sort(times)
	fmt.Printf("kmsg %s %dkB %d ns, at best %d\n", name, size/1000, times[batches/4].Nanoseconds(), times[0].Nanoseconds())
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
