/* SPDX-License-Identifier: BSD-2-Clause */

package main

import (
	"context"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

// slot is a record that is used again after its promise was called, with what
// the promise needs.  The record comes first, so that a pointer to it is one to
// the slot.
type slot struct {
	record kgo.Record
	sentNs int64 // 0: no latency is taken
	result chan error
}

var slots = sync.Pool{New: func() any { return new(slot) }}

// worker is a sending thread of one phase.
type worker struct {
	run        *run
	index      int
	records    int64
	intervalNs float64
	startNs    int64
	sent       int64
	value, key int

	futures []slot // of a round, each with a channel, or nil
	/* Set before a round; counted down where promises are called. */
	wanted  int64
	arrived chan struct{}
	acked   int64 // found in futures
	failed  int64
}

func newWorker(r *run, index int, records int64) *worker {
	o := r.options
	w := &worker{run: r, index: index, records: records,
		arrived: make(chan struct{}, 1)}
	if o.throughput > 0 {
		w.intervalNs = 1e9 * float64(o.threads) / o.throughput
	}
	w.value = len(r.payload.values) * index / o.threads
	w.key = len(r.payload.keys) * index / o.threads
	if o.futures {
		w.futures = make([]slot, o.outstanding)
	}
	for i := range w.futures {
		w.futures[i].result = make(chan error, 1)
	}
	return w
}

func (w *worker) fill(s *slot, sentNs int64) *kgo.Record {
	p := w.run.payload
	s.record = kgo.Record{Topic: w.run.options.topic, Value: p.values[w.value]}
	s.sentNs = sentNs
	if w.value++; w.value == len(p.values) {
		w.value = 0
	}
	if p.keys != nil {
		s.record.Key = p.keys[w.key]
		if w.key++; w.key == len(p.keys) {
			w.key = 0
		}
	}
	return &s.record
}

func slotOf(r *kgo.Record) *slot {
	return (*slot)(unsafe.Pointer(r))
}

func (w *worker) count() {
	if w.wanted--; w.wanted == 0 {
		w.arrived <- struct{}{}
	}
}

// promise counts a record; promises are called one after the other.
func (w *worker) promise(r *kgo.Record, err error) {
	s := slotOf(r)
	w.run.count(s.sentNs, err)
	slots.Put(s)
	if w.run.options.outstanding > 0 {
		w.count()
	}
}

// fulfil gives the result to the sending thread, which waits for it.
func (w *worker) fulfil(r *kgo.Record, err error) {
	s := slotOf(r)
	if err != nil {
		w.run.failure = err
	} else if s.sentNs != 0 {
		w.run.latency.add(now() - s.sentNs)
	}
	s.result <- err
}

func (w *worker) dueNs() int64 {
	return w.startNs + int64(float64(w.sent)*w.intervalNs)
}

// pace sleeps until the next record is due.  The runtime's own timers are too
// coarse for it.
func (w *worker) pace() {
	for {
		left := w.dueNs() - now()
		if left <= 0 {
			return
		}
		t := syscall.NsecToTimespec(left)
		_ = syscall.Nanosleep(&t, nil)
	}
}

func (w *worker) sentNs() int64 {
	if w.run.options.paced {
		return w.dueNs()
	}
	return now()
}

func (w *worker) sendRound(n int64) {
	ctx := context.Background()
	promise, fulfil := w.promise, w.fulfil
	client, every := w.run.client, w.run.sampleEvery
	until := int64(0)
	for i := range n {
		if w.intervalNs > 0 {
			w.pace()
		}
		sentNs := int64(0)
		if until == 0 {
			sentNs, until = w.sentNs(), every
		}
		until--
		if w.futures != nil {
			client.Produce(ctx, w.fill(&w.futures[i], sentNs), fulfil)
		} else {
			s := slots.Get().(*slot)
			client.Produce(ctx, w.fill(s, sentNs), promise)
		}
		w.sent++
	}
}

// awaitRound waits for every future of the round.
func (w *worker) awaitRound(n int64) {
	if w.futures == nil {
		<-w.arrived
		return
	}
	// From the last on: the goroutine sleeps once for most of them.
	for i := n - 1; i >= 0; i-- {
		if <-w.futures[i].result == nil {
			w.acked++
		} else {
			w.failed++
		}
	}
}

// sleepPrecisely lets the calling thread's sleeps end on time, not up to 50 us
// late.
func sleepPrecisely() {
	runtime.LockOSThread()
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL,
		29 /* PR_SET_TIMERSLACK */, 1, 0)
}

func (w *worker) sendAll() {
	o := w.run.options
	if o.paced {
		sleepPrecisely()
	}
	w.startNs = now() + int64(w.intervalNs/float64(o.threads)*float64(w.index))
	for left := w.records; left > 0; {
		n := left
		if o.outstanding > 0 {
			n = min(n, int64(o.outstanding))
		}
		w.wanted = n
		w.sendRound(n)
		if o.outstanding > 0 {
			w.awaitRound(n)
		}
		left -= n
	}
}

var epoch = time.Now()

// now is a monotonic time, in nanoseconds.
func now() int64 { return int64(time.Since(epoch)) + 1 }
