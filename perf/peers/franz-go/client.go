/* SPDX-License-Identifier: BSD-2-Clause */

package main

import (
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// requestCounter counts requests as they are written.
type requestCounter struct{ n atomic.Int64 }

func (c *requestCounter) OnBrokerWrite(kgo.BrokerMetadata, int16, int,
	time.Duration, time.Duration, error) {
	c.n.Add(1)
}

func codec(name string) kgo.CompressionCodec {
	switch name {
	case "none":
		return kgo.NoCompression()
	case "gzip":
		return kgo.GzipCompression()
	case "snappy":
		return kgo.SnappyCompression()
	case "lz4":
		return kgo.Lz4Compression()
	case "zstd":
		return kgo.ZstdCompression()
	}
	wrong("compression.type=%s: no such codec", name)
	return kgo.NoCompression()
}

func number(name, value string) int {
	n, err := strconv.Atoi(value)
	if err != nil {
		wrong("%s=%s: give a whole number", name, value)
	}
	return n
}

func milliseconds(name, value string) time.Duration {
	return time.Duration(number(name, value)) * time.Millisecond
}

// property turns one of Java's into this client's option.
func property(name, value string) []kgo.Opt {
	switch name {
	case "acks":
		return acks(value)
	case "enable.idempotence":
		if value == "false" {
			return []kgo.Opt{kgo.DisableIdempotentWrite()}
		}
		return nil
	case "linger.ms":
		return []kgo.Opt{kgo.ProducerLinger(milliseconds(name, value))}
	case "batch.size":
		return []kgo.Opt{kgo.ProducerBatchMaxBytes(
			int32(number(name, value)))}
	case "buffer.memory":
		/* The limit is on bytes alone, as everywhere else. */
		return []kgo.Opt{
			kgo.MaxBufferedBytes(number(name, value)),
			kgo.MaxBufferedRecords(math.MaxInt32),
		}
	case "compression.type":
		return []kgo.Opt{kgo.ProducerBatchCompression(codec(value))}
	case "delivery.timeout.ms":
		return []kgo.Opt{kgo.RecordDeliveryTimeout(
			milliseconds(name, value))}
	}
	wrong("%s: this client has nothing like it", name)
	return nil
}

func acks(value string) []kgo.Opt {
	switch value {
	case "0":
		return []kgo.Opt{kgo.RequiredAcks(kgo.NoAck())}
	case "1":
		return []kgo.Opt{kgo.RequiredAcks(kgo.LeaderAck())}
	}
	return []kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks())}
}

func newClient(o *options, requests *requestCounter) *kgo.Client {
	opts := []kgo.Opt{
		kgo.ClientID("perf-producer-client"),
		kgo.SeedBrokers(strings.Split(o.bootstrap, ",")...),
		kgo.WithHooks(requests),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
	}
	for name, value := range o.properties {
		opts = append(opts, property(name, value)...)
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		wrong("%v", err)
	}
	return client
}
