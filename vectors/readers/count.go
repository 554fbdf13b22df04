// Reads what `kafka-conform vectors export` wrote and counts it by result: go run count.go < vectors.jsonl
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// To test a codec: Message, Version and Part say what Bytes (hex) are, Value is due.
type vector struct {
	ID, Message, Part, Result, Bytes string
	Version                          int
	Value                            json.RawMessage
}

func main() {
	cases, size := map[string]int{}, map[string]int{}
	for lines := json.NewDecoder(os.Stdin); ; {
		var v vector
		if err := lines.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			panic(err)
		}
		bytes, err := hex.DecodeString(v.Bytes)
		if err != nil {
			panic(err)
		}
		cases[v.Result]++
		size[v.Result] += len(bytes)
	}
	for _, result := range slices.Sorted(maps.Keys(cases)) {
		fmt.Printf("%s: %d cases, %d bytes\n", result, cases[result], size[result])
	}
}
