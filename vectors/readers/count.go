// Counts what `kafka-conform vectors export` wrote, and its bytes, by result: go run count.go < vectors.jsonl
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	counts := map[string]int{}
	for lines := json.NewDecoder(os.Stdin); lines.More(); {
		// To test a codec: Message, Version and Part say what Bytes are, Value is due.
		var vector struct{ Result, Bytes string }
		if err := lines.Decode(&vector); err != nil {
			panic(err)
		}
		bytes, err := hex.DecodeString(vector.Bytes)
		if err != nil {
			panic(err)
		}
		counts[vector.Result+" cases"]++
		counts[vector.Result+" bytes"] += len(bytes)
	}
	for name, count := range counts {
		fmt.Printf("%s: %d\n", name, count)
	}
}
