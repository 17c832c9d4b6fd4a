/* SPDX-License-Identifier: BSD-2-Clause */

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"syscall"
	"unsafe"
)

const mb = 1 << 20

// usage is what the process has used so far, or between two points.
type usage struct {
	atNs, cpuNs, userNs, systemNs    int64
	voluntary, involuntary, requests int64
	peakRSS                          float64
}

func takeUsage(r *run) usage {
	var u syscall.Rusage
	var t syscall.Timespec
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME,
		2 /* CLOCK_PROCESS_CPUTIME_ID */, uintptr(unsafe.Pointer(&t)), 0)
	return usage{
		atNs:        now(),
		cpuNs:       t.Nano(),
		userNs:      u.Utime.Nano(),
		systemNs:    u.Stime.Nano(),
		voluntary:   u.Nvcsw,
		involuntary: u.Nivcsw,
		requests:    r.requests.n.Load(),
		peakRSS:     float64(u.Maxrss) * 1024,
	}
}

func (u usage) since(from usage) usage {
	u.atNs -= from.atNs
	u.cpuNs -= from.cpuNs
	u.userNs -= from.userNs
	u.systemNs -= from.systemNs
	u.voluntary -= from.voluntary
	u.involuntary -= from.involuntary
	u.requests -= from.requests
	return u
}

type result struct {
	run               *run
	version           string
	used              usage
	measured, missing int64
	latency           latency
}

func (r *result) print() {
	out := os.Stdout
	if r.run.options.json == "-" {
		out = os.Stderr
	}
	n := float64(r.measured)
	fmt.Fprintf(out, "franz-go %s: %d records acknowledged, %.0f records/sec, "+
		"CPU %.1f ns per record.\n", r.version, r.run.acked,
		n*1e9/float64(r.used.atNs), float64(r.used.cpuNs)/n)
	if r.run.failed > 0 {
		fmt.Fprintf(os.Stderr, tool+": %d records failed: %v\n", r.run.failed,
			r.run.failure)
	}
	if r.missing > 0 {
		fmt.Fprintf(os.Stderr, tool+": void: %d records have no report\n",
			r.missing)
	}
}

// known is a number, or nil, which is to say "not known".
func known(v float64) any {
	if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return math.Round(v*1000) / 1000
}

func (r *result) settings() map[string]any {
	o := r.run.options
	reports := "callback"
	if o.futures {
		reports = "future"
	}
	return map[string]any{
		"topic":                 o.topic,
		"num_records":           o.numRecords,
		"warmup_records":        o.warmupRecords,
		"record_size":           r.run.payload.meanSize(),
		"throughput":            known(o.throughput),
		"paced":                 o.paced,
		"key_distribution":      o.keyDistribution,
		"record_key_range":      o.keyRange,
		"key_size":              o.keySize,
		"threads":               o.threads,
		"reports":               reports,
		"outstanding":           o.outstanding,
		"latency_sampled_every": r.run.sampleEvery,
		"properties":            o.properties,
	}
}

func (r *result) members() map[string]any {
	u, n := r.used, float64(r.measured)
	s := float64(u.atNs) / 1e9
	return map[string]any{
		"tool":                 tool,
		"version":              r.version,
		"acked":                r.run.acked,
		"failed":               r.run.failed,
		"refused":              0,
		"missing":              r.missing,
		"measured":             r.measured,
		"interrupted":          false,
		"elapsed_s":            known(s),
		"records_per_s":        known(n / s),
		"mb_per_s":             known(n * r.run.payload.meanSize() / mb / s),
		"cpu_ns_per_record":    known(float64(u.cpuNs) / n),
		"cpu_user_share":       known(float64(u.userNs) / float64(u.userNs+u.systemNs)),
		"voluntary_switches":   u.voluntary,
		"involuntary_switches": u.involuntary,
		"rss_mb":               known(u.peakRSS / mb),
		"requests":             u.requests,
		"records_per_request":  known(n / float64(u.requests)),
		"latency_samples":      r.latency.count,
		"mean_us":              known(r.latency.meanUs()),
		"p50_us":               known(r.latency.us(0.5)),
		"p95_us":               known(r.latency.us(0.95)),
		"p99_us":               known(r.latency.us(0.99)),
		"p999_us":              known(r.latency.us(0.999)),
		"max_us":               known(r.latency.maxUs()),
		"settings":             r.settings(),
	}
}

func (r *result) writeJSON() bool {
	path := r.run.options.json
	if path == "" {
		return true
	}
	text, err := json.MarshalIndent(r.members(), "", "  ")
	if err == nil && path == "-" {
		_, err = fmt.Printf("%s\n", text)
	} else if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, tool+": --json %s: %v\n", path, err)
	}
	return err == nil
}
