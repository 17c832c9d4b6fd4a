/* SPDX-License-Identifier: BSD-2-Clause */

package main

import "math/bits"

const (
	stepBits = 7
	steps    = 1 << stepBits
)

// latency is the histogram of perf/lib/latency.c: 128 steps to each doubling.
// Promises are called one after the other, so that it needs no lock.
type latency struct {
	buckets           [steps * 34]int64
	count, sum, maxNs int64
}

func (l *latency) add(ns int64) {
	ns = max(ns, 0)
	i := int(ns)
	if ns >= steps {
		doubling := bits.Len64(uint64(ns)) - 1 - stepBits
		i = (doubling+1)*steps + int(ns>>doubling) - steps
	}
	l.buckets[min(i, len(l.buckets)-1)]++
	l.count++
	l.sum += ns
	l.maxNs = max(l.maxNs, ns)
}

func top(i int) int64 {
	if i < steps {
		return int64(i)
	}
	return int64(steps+i%steps+1)<<(i/steps-1) - 1
}

// us is a percentile in microseconds; -1: nothing was sampled.
func (l *latency) us(share float64) float64 {
	seen := int64(0)
	for i := 0; i < len(l.buckets) && l.count > 0; i++ {
		seen += l.buckets[i]
		if seen > 0 && float64(seen) >= share*float64(l.count) {
			return float64(min(top(i), l.maxNs)) / 1e3
		}
	}
	return l.maxUs()
}

func (l *latency) maxUs() float64 {
	if l.count == 0 {
		return -1
	}
	return float64(l.maxNs) / 1e3
}

func (l *latency) meanUs() float64 {
	if l.count == 0 {
		return -1
	}
	return float64(l.sum) / 1e3 / float64(l.count)
}
