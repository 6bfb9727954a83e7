// Counts the rows that a stretch of a binary log holds, as go-mysql decodes them: a reference of the benchmarks.
//
// go-mysql parse FILE START STOP: of a log file; prints rows, and the seconds of processor time that it took.
// go-mysql sync HOST PORT USER FILE START ROWS: from a server, which BENCH_PASSWORD opens; rows, and seconds.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

func main() {
	if os.Args[1] == "sync" {
		synced()
		return
	}
	start, stop := number(os.Args[3]), number(os.Args[4])
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
	if err := parser.ParseFile(os.Args[2], start, count); err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows, spent()-before)
}

func synced() {
	began := time.Now()
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: 4000000001, Flavor: mysql.MariaDBFlavor, Host: os.Args[2], Port: uint16(number(os.Args[3])),
		User: os.Args[4], Password: os.Getenv("BENCH_PASSWORD"), VerifyChecksum: true,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	defer syncer.Close()
	streamer, err := syncer.StartSync(mysql.Position{Name: os.Args[5], Pos: uint32(number(os.Args[6]))})
	if err != nil {
		log.Fatal(err)
	}
	wanted := int(number(os.Args[7]))
	rows := 0
	for rows < wanted {
		event, err := streamer.GetEvent(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		if changed, ok := event.Event.(*replication.RowsEvent); ok {
			rows += len(changed.Rows)
		}
	}
	fmt.Println(rows, time.Since(began).Seconds())
}

func number(text string) int64 {
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
