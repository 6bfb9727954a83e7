// Counts the rows that one stretch of a binary log holds, as go-mysql decodes them: the reference of bench/decode_log.py.
//
// go-mysql FILE START STOP: prints rows, and the seconds of processor time that decoding took.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"syscall"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

func main() {
	start, stop := offset(os.Args[2]), offset(os.Args[3])
	parser := replication.NewBinlogParser()
	parser.SetFlavor(mysql.MariaDBFlavor)
	// Catchment verifies every checksum, too.
	parser.SetVerifyChecksum(true)
	rows, before := 0, spent()
	count := func(event *replication.BinlogEvent) error {
		if changed, ok := event.Event.(*replication.RowsEvent); ok {
			rows += len(changed.Rows)
		}
		if int64(event.Header.LogPos) >= stop {
			parser.Stop()
		}
		return nil
	}
	if err := parser.ParseFile(os.Args[1], start, count); err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows, spent()-before)
}

func offset(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func spent() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
