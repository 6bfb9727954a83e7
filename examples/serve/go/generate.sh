#!/usr/bin/env bash
# Make the package streamv1 from the published protobuf. The generators are tools of this module; protoc comes with
# grpcio-tools.
set -euo pipefail
cd "$(dirname "$0")"
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
go build -o "$tools/" google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
PATH="$tools:$PATH" "${PYTHON:-python3}" -m grpc_tools.protoc -I ../../../proto \
    --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative \
    catchment_stream/v1/stream.proto
