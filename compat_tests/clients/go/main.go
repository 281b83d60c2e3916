// What applications in Go do, with franz-go and with sarama: topics, every codec, reading from an
// offset, from a time and from the end. It prints what it sees, for a test to compare.
//
//	clients franz-go|sarama BOOTSTRAP TOPIC
package main

import (
	"fmt"
	"os"
	"time"
)

const partitions = 2

// Records of the story have times of long ago; their topics keep them for ever.
var begin = time.UnixMilli(1_700_000_000_000)

func main() {
	tell := map[string]func(bootstrap, topic string) error{"franz-go": franz, "sarama": shopify}
	if err := tell[os.Args[1]](os.Args[2], os.Args[3]); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("told")
}

func show(offset int64, at time.Time, key, value []byte, headers string) {
	since := at.Sub(begin).Milliseconds()
	fmt.Printf("%d +%d %s=%d bytes, headers %s\n", offset, since, key, len(value), headers)
}
