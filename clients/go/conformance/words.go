package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"leat"
)

func (c *command) word(index int) string {
	if index >= len(c.words) {
		fail("a word is missing behind", c.words)
	}
	return c.words[index]
}

// All that stands behind `name=`.
func (c *command) options(name string) (found []string) {
	for _, word := range c.words[1:] {
		if value, ok := cutPrefix(word, name+"="); ok {
			found = append(found, value)
		}
	}
	return found
}

func cutPrefix(text, prefix string) (string, bool) {
	return strings.TrimPrefix(text, prefix), strings.HasPrefix(text, prefix)
}

func (c *command) option(name string) (string, bool) {
	found := c.options(name)
	if len(found) == 0 {
		return "", false
	}
	return found[0], true
}

func (c *command) isBad() bool {
	return len(c.options("value")) != 0 && len(c.options("count"))+len(c.options("prefix")) != 0
}

func toNumber(text string) int {
	number, err := strconv.Atoi(text)
	if err != nil {
		fail("no number", text)
	}
	return number
}

func (c *command) number(name string, otherwise int) int {
	if text, ok := c.option(name); ok {
		return toNumber(text)
	}
	return otherwise
}

func (c *command) flag(name string) bool { return c.number(name, 0) != 0 }

func (c *command) milliseconds(name string) time.Duration {
	return time.Duration(c.number(name, 0)) * time.Millisecond
}

func (c *command) partition() leat.Partition {
	if text, ok := c.option("partition"); ok {
		return leat.InPartition(toNumber(text))
	}
	return leat.AnyPartition
}

// The option `timeout` as a context.
func (c *command) context(otherwiseMs int) (context.Context, context.CancelFunc) {
	if text, _ := c.option("timeout"); text == "never" {
		return context.WithCancel(context.Background())
	}
	timeout := c.number("timeout", otherwiseMs)
	if timeout == 0 {
		return leat.NoWait, func() {}
	}
	return context.WithTimeout(context.Background(), time.Duration(timeout)*time.Millisecond)
}

// The index of an option's word in a list; 0 without it.
func (c *command) choice(name string, words ...string) int {
	text, ok := c.option(name)
	if !ok {
		return 0
	}
	for i, word := range words {
		if word == text {
			return i
		}
	}
	fail("no such word", text)
	return 0
}

func (c *command) from(name string) leat.From {
	text, _ := c.option(name)
	kind, value, _ := strings.Cut(text, ":")
	switch kind {
	case "", "end":
		return leat.FromEnd
	case "beginning":
		return leat.FromBeginning
	case "offset":
		return leat.FromOffset(uint64(toNumber(value)))
	case "last":
		return leat.FromLast(uint64(toNumber(value)))
	case "time":
		return leat.FromTime(time.UnixMilli(int64(toNumber(value))))
	}
	fail("no such place", text)
	return leat.FromEnd
}

// ---- Bytes --------------------------------------------------------------------------------------

// Never nil.
func decode(text string) []byte {
	bytes := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			bytes = append(bytes, text[i])
			continue
		}
		value, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
		if err != nil {
			fail("not hexadecimal", text)
		}
		bytes = append(bytes, byte(value))
		i += 2
	}
	return bytes
}

func encode(bytes []byte) string {
	var text strings.Builder
	if len(bytes) > 64 {
		hash := fnv.New64a()
		hash.Write(bytes)
		return fmt.Sprintf("%d*%016x", len(bytes), hash.Sum64())
	}
	for _, b := range bytes {
		isPlain := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' ||
			strings.IndexByte("-_.,/+", b) >= 0
		if isPlain {
			text.WriteByte(b)
		} else {
			fmt.Fprintf(&text, "%%%02X", b)
		}
	}
	return text.String()
}

// The value, by `value` or `fill`.
func (c *command) value() []byte {
	if fill, ok := c.option("fill"); ok {
		size, digits, _ := strings.Cut(fill, ":")
		return []byte(strings.Repeat(string(decode("%"+digits)), toNumber(size)))
	}
	value, _ := c.option("value")
	return decode(value)
}

// Prints a record or gap, and what a member knows of it.
func (c *command) print(r *leat.Record, tail string) {
	if r.IsGap() {
		fmt.Fprintf(&c.out, "gap partition=%d offset=%d count=%d reason=%s\n", r.Partition, r.Offset,
			r.Gap.Count, r.Gap.Reason)
		return
	}
	c.printRecord(r.Partition, r.Offset, r.Value, r.Key, r.Headers(), r.TimestampMs, tail)
}

func (c *command) printRecord(partition int, offset uint64, value, key []byte, headers []leat.Header, timestampMs int64, tail string) {
	fmt.Fprintf(&c.out, "record partition=%d offset=%d value=%s", partition, offset, encode(value))
	if key != nil {
		fmt.Fprintf(&c.out, " key=%s", encode(key))
	}
	for _, header := range headers {
		fmt.Fprintf(&c.out, " header=%s:%s", encode([]byte(header.Name)), encode(header.Value))
	}
	if timestampMs != -1 {
		fmt.Fprintf(&c.out, " timestamp=%d", timestampMs)
	}
	fmt.Fprintf(&c.out, "%s\n", tail)
}
