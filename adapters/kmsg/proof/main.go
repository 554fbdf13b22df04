// Proof shows a fault of kmsg by itself: a name of 40,000 bytes in a version whose lengths are int16 is not refused but
// written with a length that wrapped.
package main

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func main() {
	request := kmsg.NewPtrDescribeConfigsRequest()
	request.Version = 1
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceName = strings.Repeat("a", 40000)
	request.Resources = append(request.Resources, resource)
	// After the count of resources (4 bytes) and the type (1 byte) stands the length of the name.
	bytes := request.AppendTo(nil)
	fmt.Printf("a name of %d bytes, its length written as % x: %d\n", 40000, bytes[5:7], int16(bytes[5])<<8|int16(bytes[6]))
}
