/* SPDX-License-Identifier: BSD-2-Clause */

package main

import (
	"bytes"
	"fmt"
	"os"
)

const (
	valuesMin = 4096
	keysMin   = 1 << 16
	keysMax   = 1 << 20
)

// payload holds the values and keys, drawn as multi_thread_send draws them.
type payload struct {
	values, keys [][]byte
	state        uint64
}

// random is splitmix64.
func (p *payload) random() uint64 {
	p.state += 0x9e3779b97f4a7c15
	z := p.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (p *payload) read(path string) {
	all, err := os.ReadFile(path)
	if err != nil || len(all) == 0 {
		wrong("--payload-file %s: cannot be read, or is empty: %v", path, err)
	}
	lines := bytes.Split(bytes.TrimSuffix(all, []byte("\n")), []byte("\n"))
	p.values = make([][]byte, max(valuesMin, len(lines)))
	var data []byte
	for i := range p.values {
		p.values[i] = lines[p.random()%uint64(len(lines))]
		data = append(data, p.values[i]...)
	}
	/* They lie in the order they are sent in. */
	for i, v := range p.values {
		p.values[i], data = data[:len(v):len(v)], data[len(v):]
	}
}

func (p *payload) make(size int) {
	p.values = make([][]byte, valuesMin)
	for i := range p.values {
		v := fmt.Appendf(nil, `{"id":%d`, p.random())
		for len(v) < size {
			v = fmt.Appendf(v, `,"k%d":%d`, p.random()%16, p.random()%100000)
		}
		v[size-1] = '}'
		p.values[i] = v[:size:size]
	}
}

func (p *payload) makeKeys(o *options) {
	count := o.keyRange
	if o.keyDistribution == "random" {
		count = min(max(count, keysMin), keysMax)
	}
	p.keys = make([][]byte, count)
	for i := range p.keys {
		key := uint64(i)
		if o.keyDistribution == "random" {
			key = p.random() % o.keyRange
		}
		p.keys[i] = fmt.Appendf(nil, "%0*d", o.keySize, key)
	}
}

func newPayload(o *options) *payload {
	p := &payload{state: uint64(o.seed)}
	if o.payloadFile != "" {
		p.read(o.payloadFile)
	} else {
		p.make(o.recordSize)
	}
	if o.keyRange > 0 {
		p.makeKeys(o)
	}
	return p
}

func (p *payload) meanSize() float64 {
	total := 0
	for _, v := range p.values {
		total += len(v)
	}
	return float64(total) / float64(len(p.values))
}
