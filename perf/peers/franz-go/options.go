/* SPDX-License-Identifier: BSD-2-Clause */

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

const tool = "franz_go_send"

// options is the command line of multi_thread_send, as far as it makes sense
// here.
type options struct {
	bootstrap, topic          string
	numRecords, warmupRecords int64
	recordSize                int
	payloadFile               string
	throughput                float64
	paced                     bool
	keyDistribution           string
	keyRange                  uint64
	keySize                   int
	seed                      int64
	threads                   int
	futures                   bool
	outstanding               int
	json                      string
	properties                map[string]string
}

func wrong(format string, args ...any) {
	fmt.Fprintf(os.Stderr, tool+": "+format+"\n", args...)
	os.Exit(2)
}

type words struct {
	left []string
	name string
}

func (w *words) value() string {
	if len(w.left) == 0 {
		wrong("%s: a value is missing", w.name)
	}
	v := w.left[0]
	w.left = w.left[1:]
	return v
}

func (w *words) number() int64 {
	v := w.value()
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		wrong("%s %s: give a whole number", w.name, v)
	}
	return n
}

func (o *options) addProperties(w *words) {
	for {
		name, value, found := strings.Cut(w.value(), "=")
		if !found {
			wrong("%s: write it as name=value", w.name)
		}
		o.properties[name] = value
		if len(w.left) == 0 || strings.HasPrefix(w.left[0], "--") {
			return
		}
	}
}

func (o *options) take(w *words) {
	switch w.name {
	case "--bootstrap-server":
		o.bootstrap = w.value()
	case "--topic":
		o.topic = w.value()
	case "--num-records":
		o.numRecords = w.number()
	case "--warmup-records":
		o.warmupRecords = w.number()
	case "--record-size":
		o.recordSize = int(w.number())
	case "--payload-file":
		o.payloadFile = w.value()
	case "--throughput":
		o.throughput, _ = strconv.ParseFloat(w.value(), 64)
	case "--paced":
		o.paced = true
	case "--key-distribution":
		o.keyDistribution = w.value()
	case "--record-key-range":
		o.keyRange = uint64(w.number())
	case "--key-size":
		o.keySize = int(w.number())
	case "--random-seed":
		o.seed = w.number()
	case "--threads":
		o.threads = int(w.number())
	case "--reports":
		o.takeReports(w)
	case "--outstanding":
		o.outstanding = int(w.number())
	case "--reporting-interval":
		w.number()
	case "--json":
		o.json = w.value()
	case "--command-property":
		o.addProperties(w)
	default:
		wrong("%s: no such option", w.name)
	}
}

func (o *options) takeReports(w *words) {
	how := w.value()
	o.futures = how == "future"
	if !o.futures && how != "callback" {
		wrong("--reports %s: give callback or future", how)
	}
}

func (o *options) check() {
	if o.bootstrap == "" || o.topic == "" || o.numRecords <= 0 ||
		(o.payloadFile == "") == (o.recordSize == 0) {
		wrong("give --bootstrap-server, --topic, --num-records and " +
			"--payload-file or --record-size")
	}
	if o.warmupRecords >= o.numRecords || (o.paced && o.throughput <= 0) {
		wrong("--warmup-records or --paced do not fit the rest")
	}
	if o.futures && o.outstanding == 0 {
		wrong("--reports future needs --outstanding")
	}
}

func parseOptions(args []string) *options {
	o := &options{
		throughput:      -1,
		threads:         1,
		keyDistribution: "none",
		properties:      map[string]string{},
	}
	for w := (words{left: args}); len(w.left) > 0; {
		w.name = w.value()
		o.take(&w)
	}
	o.check()
	return o
}
