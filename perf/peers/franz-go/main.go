/* SPDX-License-Identifier: BSD-2-Clause */

// franz_go_send does what multi_thread_send does, through franz-go: the same
// options, payloads and figures.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	sampleEveryMax = 64
	samplesMin     = 2000
	patience       = 180 * time.Second
)

type run struct {
	options     *options
	payload     *payload
	client      *kgo.Client
	requests    requestCounter
	sampleEvery int64

	/* Written where promises are called, or while nothing is sent. */
	latency       *latency
	acked, failed int64
	failure       error
}

// count takes a record's result; promises are called one after the other.
func (r *run) count(sentNs int64, err error) {
	if err != nil {
		r.failed++
		r.failure = err
		return
	}
	r.acked++
	if sentNs != 0 {
		r.latency.add(now() - sentNs)
	}
}

// phase sends so many records from all threads and waits for their reports.
func (r *run) phase(records int64, l *latency) {
	var group sync.WaitGroup
	r.latency = l
	n := int64(r.options.threads)
	workers := make([]*worker, n)
	for i := range n {
		part := records / n
		if i < records%n {
			part++
		}
		workers[i] = newWorker(r, int(i), part)
		group.Go(workers[i].sendAll)
	}
	group.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.client.Flush(ctx); err != nil {
		fmt.Fprintf(os.Stderr, tool+": %v\n", err)
	}
	for _, w := range workers {
		r.acked += w.acked
		r.failed += w.failed
	}
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	for i := 0; ok && i < len(info.Deps); i++ {
		if info.Deps[i].Path == "github.com/twmb/franz-go" {
			return info.Deps[i].Version[1:]
		}
	}
	return "?"
}

func newRun(o *options) *run {
	r := &run{options: o, payload: newPayload(o)}
	r.sampleEvery = max(1, min(sampleEveryMax, o.numRecords/samplesMin))
	if o.throughput > 0 {
		r.sampleEvery = 1
	}
	r.client = newClient(o, &r.requests)
	return r
}

func main() {
	r := newRun(parseOptions(os.Args[1:]))
	res := result{run: r, version: version()}
	if r.options.warmupRecords > 0 {
		r.phase(r.options.warmupRecords, new(latency))
	}
	warmAcked := r.acked
	begin := takeUsage(r)
	r.phase(r.options.numRecords-r.options.warmupRecords, &res.latency)
	res.used = takeUsage(r).since(begin)
	res.measured = r.acked - warmAcked
	res.missing = r.options.numRecords - r.acked - r.failed
	res.print()
	ok := res.writeJSON()
	r.client.Close()
	/* 0 only if every record was acknowledged. */
	if !ok || r.acked != r.options.numRecords {
		os.Exit(1)
	}
}
