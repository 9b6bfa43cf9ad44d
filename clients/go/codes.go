package leat

// The names of all codes, by number.
var codeNames []string

// Notes the name of a code, and makes the error to compare with.
func named(code Code, name string) error {
	for len(codeNames) <= int(code) {
		codeNames = append(codeNames, "unknown")
	}
	codeNames[code] = name
	return &Error{Code: code}
}

// From spec/errors.csv, by tools/errors.py: begin
const CodeOK Code = 0 // no error

var _ = named(CodeOK, "ok")

const CodeInvalidArgument Code = 1 // invalid argument

// ErrInvalidArgument is an error with this code.
var ErrInvalidArgument = named(CodeInvalidArgument, "invalid_argument")

const CodeNotFound Code = 2 // no such topic or group

// ErrNotFound is an error with this code.
var ErrNotFound = named(CodeNotFound, "not_found")

const CodeExists Code = 3 // the topic exists already

// ErrExists is an error with this code.
var ErrExists = named(CodeExists, "exists")

const CodeBusy Code = 4 // in use by another process or handle, or by a claim that is still open

// ErrBusy is an error with this code.
var ErrBusy = named(CodeBusy, "busy")

const CodePermission Code = 5 // permission denied

// ErrPermission is an error with this code.
var ErrPermission = named(CodePermission, "permission")

const CodeWrongFormat Code = 6 // not a Leat topic of this format version

// ErrWrongFormat is an error with this code.
var ErrWrongFormat = named(CodeWrongFormat, "wrong_format")

const CodeCorrupt Code = 7 // the topic is corrupt: a check on its shared memory failed

// ErrCorrupt is an error with this code.
var ErrCorrupt = named(CodeCorrupt, "corrupt")

const CodeFull Code = 8 // the topic is full

// ErrFull is an error with this code.
var ErrFull = named(CodeFull, "full")

const CodeNoSpace Code = 9 // no room for files, or the archiver cannot write them

// ErrNoSpace is an error with this code.
var ErrNoSpace = named(CodeNoSpace, "no_space")

const CodeTooLarge Code = 10 // the record is larger than the topic allows

// ErrTooLarge is an error with this code.
var ErrTooLarge = named(CodeTooLarge, "too_large")

const CodeTimeout Code = 11 // the deadline passed

// ErrTimeout is an error with this code.
var ErrTimeout = named(CodeTimeout, "timeout")

const CodeStopped Code = 12 // stopped on request

// ErrStopped is an error with this code.
var ErrStopped = named(CodeStopped, "stopped")

const CodeDeleted Code = 13 // the topic was deleted

// ErrDeleted is an error with this code.
var ErrDeleted = named(CodeDeleted, "deleted")

const CodeForked Code = 14 // this handle belongs to the parent process: open a new one after fork

// ErrForked is an error with this code.
var ErrForked = named(CodeForked, "forked")

const CodeRevoked Code = 15 // the claim was revoked because its owner did not run for too long

// ErrRevoked is an error with this code.
var ErrRevoked = named(CodeRevoked, "revoked")

const CodeWouldDeadlock Code = 16 // the topic is full and only this very thread could make room

// ErrWouldDeadlock is an error with this code.
var ErrWouldDeadlock = named(CodeWouldDeadlock, "would_deadlock")

const CodeNotAllowed Code = 17 // the connection point was made with preAllocate: its expansions are fixed

// ErrNotAllowed is an error with this code.
var ErrNotAllowed = named(CodeNotAllowed, "not_allowed")

const CodeTooMany Code = 18 // no slot for another participant or group is free

// ErrTooMany is an error with this code.
var ErrTooMany = named(CodeTooMany, "too_many")

const CodeUnsupported Code = 19 // not supported by this kernel, file system or version of Leat

// ErrUnsupported is an error with this code.
var ErrUnsupported = named(CodeUnsupported, "unsupported")

const CodeInFlightFull Code = 20 // this member holds as many records as its group allows: acknowledge some

// ErrInFlightFull is an error with this code.
var ErrInFlightFull = named(CodeInFlightFull, "in_flight_full")

const CodeRedeliveryFull Code = 21 // more records came back, or wait for their key, than the group has room for

// ErrRedeliveryFull is an error with this code.
var ErrRedeliveryFull = named(CodeRedeliveryFull, "redelivery_full")

const CodeNotInFlight Code = 22 // that record or claim is not in flight (any more)

// ErrNotInFlight is an error with this code.
var ErrNotInFlight = named(CodeNotInFlight, "not_in_flight")

const CodeLeaseLost Code = 23 // the record was held for longer than the group's lease

// ErrLeaseLost is an error with this code.
var ErrLeaseLost = named(CodeLeaseLost, "lease_lost")

const CodeClosed Code = 24 // the consumer group was deleted

// ErrClosed is an error with this code.
var ErrClosed = named(CodeClosed, "closed")

const CodeBufferTooSmall Code = 25 // the buffer is too small for the record

// ErrBufferTooSmall is an error with this code.
var ErrBufferTooSmall = named(CodeBufferTooSmall, "buffer_too_small")

const CodeIOError Code = 26 // a system call failed

// ErrIOError is an error with this code.
var ErrIOError = named(CodeIOError, "io_error")

const CodeReadOnly Code = 27 // the topic is read-only: writing to its files failed

// ErrReadOnly is an error with this code.
var ErrReadOnly = named(CodeReadOnly, "read_only")

const CodeNotDurable Code = 28 // published, but not on stable storage in time

// ErrNotDurable is an error with this code.
var ErrNotDurable = named(CodeNotDurable, "not_durable")

const CodeExpired Code = 29 // retention has deleted the group's next record

// ErrExpired is an error with this code.
var ErrExpired = named(CodeExpired, "expired")

const CodeInterrupted Code = 30 // a signal interrupted the wait

// ErrInterrupted is an error with this code.
var ErrInterrupted = named(CodeInterrupted, "interrupted")

const CodeNoMemory Code = 31 // out of memory, or at a limit of memory or of mappings

// ErrNoMemory is an error with this code.
var ErrNoMemory = named(CodeNoMemory, "no_memory")

const CodeNeedsDurable Code = 32 // the topic is in memory only: this needs a durable topic

// ErrNeedsDurable is an error with this code.
var ErrNeedsDurable = named(CodeNeedsDurable, "needs_durable")

const CodeNeedsTimestamps Code = 33 // the topic's records carry no time: this needs a topic with timestamps

// ErrNeedsTimestamps is an error with this code.
var ErrNeedsTimestamps = named(CodeNeedsTimestamps, "needs_timestamps")

const CodeNeedsGrowing Code = 34 // the topic's capacity is fixed: this needs a topic with policy grow

// ErrNeedsGrowing is an error with this code.
var ErrNeedsGrowing = named(CodeNeedsGrowing, "needs_growing")

const CodeNotWithOverwrite Code = 35 // the topic overwrites its oldest records: only lossy subscribers can read it

// ErrNotWithOverwrite is an error with this code.
var ErrNotWithOverwrite = named(CodeNotWithOverwrite, "not_with_overwrite")

const CodeNotWithDurable Code = 36 // a durable topic cannot have overwrite, grow, retain_all, evict_after, delete_when_unused or in_place

// ErrNotWithDurable is an error with this code.
var ErrNotWithDurable = named(CodeNotWithDurable, "not_with_durable")

// From spec/errors.csv: end
