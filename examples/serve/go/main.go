// Print a feed's events as JSON, one a line, until Ctrl-C. Usage: ADDRESS FEED [VGTID]
//
// STREAM_TOKEN has the token, STREAM_CA the file of the certificate's authority; without that, the connection is plain.
// The package streamv1 is made from the published protobuf; generate.sh does that.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"

	streamv1 "follow/catchment_stream/v1"
)

func main() {
	if err := follow(); err != nil && err != io.EOF {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func follow() error {
	address, request := os.Args[1], &streamv1.StreamRequest{Feed: os.Args[2]}
	if len(os.Args) > 3 {
		request.Vgtid = os.Args[3]
	}
	transport := insecure.NewCredentials()
	if authority := os.Getenv("STREAM_CA"); authority != "" {
		trusted, err := credentials.NewClientTLSFromFile(authority, "")
		if err != nil {
			return err
		}
		transport = trusted
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
	if err != nil {
		return err
	}
	defer connection.Close()
	call := metadata.AppendToOutgoingContext(
		context.Background(), "authorization", "Bearer "+os.Getenv("STREAM_TOKEN"))
	batches, err := streamv1.NewStreamsClient(connection).Stream(call, request)
	if err != nil {
		return err
	}
	lines := bufio.NewWriter(os.Stdout)
	for {
		batch, err := batches.Recv()
		if err != nil {
			return err
		}
		for _, event := range batch.GetEvents() {
			line, err := protojson.Marshal(event)
			if err != nil {
				return err
			}
			lines.Write(append(line, '\n'))
		}
		if err := lines.Flush(); err != nil {
			return err
		}
	}
}
