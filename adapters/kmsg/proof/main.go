// Proof shows three faults of kmsg by itself. With `long`: a name of 40,000 bytes in a version whose lengths are int16 is not
// refused but written with a length that wrapped. With `null`: a null name, which DeleteTopicsResponse has from version 6 on,
// is written as empty text in version 3. With `tag`: the node endpoints of FetchSnapshotResponse, a tagged field that it has
// from version 1 on, are written in version 0.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func main() {
	switch strings.Join(os.Args[1:], " ") {
	case "null":
		null()
	case "tag":
		tag()
	default:
		long()
	}
}

func long() {
	request := kmsg.NewPtrDescribeConfigsRequest()
	request.Version = 1
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceName = strings.Repeat("a", 40000)
	request.Resources = append(request.Resources, resource)
	// After the count of resources (4 bytes) and the type (1 byte) stands the length of the name.
	bytes := request.AppendTo(nil)
	fmt.Printf("a name of %d bytes, its length written as % x: %d\n", 40000, bytes[5:7], int16(bytes[5])<<8|int16(bytes[6]))
}

func null() {
	response := kmsg.NewPtrDeleteTopicsResponse()
	response.Version = 3
	response.Topics = append(response.Topics, kmsg.NewDeleteTopicsResponseTopic())
	// After the throttle time and the count of topics (4 bytes each) stands the length of the name.
	fmt.Printf("a null name in version 3, written as the length % x\n", response.AppendTo(nil)[8:10])
}

func tag() {
	response := kmsg.NewPtrFetchSnapshotResponse()
	response.Version = 0
	endpoint := kmsg.NewFetchSnapshotResponseNodeEndpoint()
	endpoint.NodeID, endpoint.Host, endpoint.Port = 1, "h", 9092
	response.NodeEndpoints = append(response.NodeEndpoints, endpoint)
	// After the throttle time (4 bytes), the error code (2) and the count of topics (1) stand the tagged fields.
	fmt.Printf("node endpoints in version 0, written as the tagged fields % x\n", response.AppendTo(nil)[7:])
}
