package leat

// #include "shim.h"
import "C"

import (
	"fmt"
	"os"
	"strings"
)

// What a call was about, so that its error can name the thing and the cause, which a code alone cannot.
type subject struct {
	action  string // for example "create topic"
	name    string
	place   *Place // Nil: the topic is open.
	durable bool
	creates bool
	options []limited
}

// An option with the range that it must be in.
type limited struct {
	option             string
	given, least, most int64
}

// The error for a code of C; nil for LEAT_OK.
func (s subject) errorOf(code, detail C.int32_t) error {
	if code == C.LEAT_OK {
		return nil
	}
	e := &Error{Code: Code(code), Detail: int32(detail)}
	e.text = fmt.Sprintf("cannot %s %q: %s", s.action, shortened(s.name), s.reason(e))
	return e
}

// Enough of a text to recognize it.
func shortened(text string) string {
	if len(text) <= 200 {
		return text
	}
	return text[:200] + "…"
}

func (s subject) reason(e *Error) string {
	switch e.Code {
	case CodeUnsupported:
		if strings.Contains(s.name, "://") {
			return "that is the address of a broker, and this client opens topics of this machine only"
		}
	case CodeInvalidArgument:
		if !isValidName(s.name) {
			return "a name is 1 to 200 letters, digits, dots, underscores and dashes"
		}
		for _, one := range s.options {
			if one.given < one.least || one.given > one.most {
				return fmt.Sprintf("%s is %d, and must be %d to %d", one.option, one.given, one.least, one.most)
			}
		}
		if s.creates {
			return "its options contradict each other, or one is out of its range"
		}
	case CodeNotFound:
		if s.creates && s.place != nil {
			return fmt.Sprintf("the directory %s does not exist and cannot be made; %s names another", s.missing(), s.variable())
		}
		if s.place != nil {
			return "there is no such topic in " + s.place.directory()
		}
	}
	if s.place == nil {
		return e.sentence()
	}
	return e.sentence() + ", in " + s.place.directory()
}

func (s subject) variable() string {
	if s.missing() == s.place.directory() {
		return "LEAT_DIR or the option Directory"
	}
	return "LEAT_DATA_DIR or the option DataDirectory"
}

// The directory that is not there: of a durable topic, one of two.
func (s subject) missing() string {
	directory := s.place.directory()
	if _, err := os.Stat(directory); err != nil || !s.durable {
		return directory
	}
	if s.place.DataDirectory != "" {
		return s.place.DataDirectory
	}
	if directory := os.Getenv("LEAT_DATA_DIR"); directory != "" {
		return directory
	}
	return "for data"
}

func (p Place) directory() string {
	if p.Directory != "" {
		return p.Directory
	}
	if directory := os.Getenv("LEAT_DIR"); directory != "" {
		return directory
	}
	return fmt.Sprintf("/dev/shm/leat-%d", os.Geteuid())
}

func isValidName(name string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	isForbidden := func(r rune) bool { return !strings.ContainsRune(allowed, r) }
	return name != "" && len(name) <= 200 && name != "." && name != ".." && strings.IndexFunc(name, isForbidden) < 0
}

func aboutTopic(action, name string, place *Place) subject {
	return subject{action: action + " topic", name: name, place: place}
}

func aboutNewTopic(action, name string, o *TopicOptions) subject {
	s := aboutTopic(action, name, &o.Place)
	s.creates = true
	s.durable = o.Durable != DurabilityNone
	s.options = []limited{
		{"Partitions", int64(given(o.Partitions, 1)), 1, 1024},
		{"Participants", int64(given(o.Participants, 256)), 1, 4096},
		{"CapacityBytes", clamped(o.CapacityBytes), 0, 1 << 40},
		{"SegmentBytes", clamped(o.SegmentBytes), 0, 1 << 30},
		{"RevokeAfter", int64(o.RevokeAfter), 0, 1<<63 - 1},
		{"EvictAfter", int64(o.EvictAfter), 0, 1<<63 - 1},
	}
	return s
}

func aboutNewGroup(name string, o *GroupOptions) subject {
	return subject{action: "open group", name: name, options: []limited{
		{"Members", int64(given(o.Members, 64)), 1, 255},
		{"InFlight", int64(given(o.InFlight, 1024)), 1, 65536},
		{"MaxDeliveries", int64(o.MaxDeliveries), 0, 65534},
		{"Lease", int64(o.Lease), 0, 1<<63 - 1},
	}}
}

func given(value, otherwise int) int {
	if value == 0 {
		return otherwise
	}
	return value
}

func clamped(value uint64) int64 {
	if value > 1<<62 {
		return 1 << 62
	}
	return int64(value)
}

// The error for an argument that is never right.
func invalid(format string, arguments ...any) error {
	return &Error{Code: CodeInvalidArgument, text: fmt.Sprintf(format, arguments...)}
}

var errEmptyBatch = invalid("the batch is empty")

// The error of making a publisher or subscriber for a partition: the topic may have fewer. The caller has entered.
func (t *Topic) partitionError(code, detail C.int32_t, partition Partition) error {
	var count C.uint32_t
	if code != C.LEAT_ERR_INVALID_ARGUMENT || partition == AnyPartition || C.leat_topic_partitions(t.c, &count) != C.LEAT_OK ||
		partition.next <= uint32(count) {
		return errorOf(code, detail)
	}
	return invalid("partition %d does not exist: the topic has %d", int64(partition.next)-1, count)
}
