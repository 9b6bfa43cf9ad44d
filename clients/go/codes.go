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

// CodeOK: no error
const CodeOK Code = 0

var _ = named(CodeOK, "ok")

// CodeInvalidArgument: invalid argument
const CodeInvalidArgument Code = 1

// ErrInvalidArgument is an error with this code.
var ErrInvalidArgument = named(CodeInvalidArgument, "invalid_argument")

// CodeNotFound: no such topic
const CodeNotFound Code = 2

// ErrNotFound is an error with this code.
var ErrNotFound = named(CodeNotFound, "not_found")

// CodeExists: the topic exists already
const CodeExists Code = 3

// ErrExists is an error with this code.
var ErrExists = named(CodeExists, "exists")

// CodeBusy: in use by another process
const CodeBusy Code = 4

// ErrBusy is an error with this code.
var ErrBusy = named(CodeBusy, "busy")

// CodePermission: permission denied
const CodePermission Code = 5

// ErrPermission is an error with this code.
var ErrPermission = named(CodePermission, "permission")

// CodeWrongFormat: not a Leat topic of this format version
const CodeWrongFormat Code = 6

// ErrWrongFormat is an error with this code.
var ErrWrongFormat = named(CodeWrongFormat, "wrong_format")

// CodeCorrupt: the topic is corrupt: a check on its shared memory failed
const CodeCorrupt Code = 7

// ErrCorrupt is an error with this code.
var ErrCorrupt = named(CodeCorrupt, "corrupt")

// CodeFull: the topic is full
const CodeFull Code = 8

// ErrFull is an error with this code.
var ErrFull = named(CodeFull, "full")

// CodeNoSpace: no space left for the topic's files
const CodeNoSpace Code = 9

// ErrNoSpace is an error with this code.
var ErrNoSpace = named(CodeNoSpace, "no_space")

// CodeTooLarge: the record is larger than the topic allows
const CodeTooLarge Code = 10

// ErrTooLarge is an error with this code.
var ErrTooLarge = named(CodeTooLarge, "too_large")

// CodeTimeout: the deadline passed
const CodeTimeout Code = 11

// ErrTimeout is an error with this code.
var ErrTimeout = named(CodeTimeout, "timeout")

// CodeStopped: stopped on request
const CodeStopped Code = 12

// ErrStopped is an error with this code.
var ErrStopped = named(CodeStopped, "stopped")

// CodeDeleted: the topic was deleted
const CodeDeleted Code = 13

// ErrDeleted is an error with this code.
var ErrDeleted = named(CodeDeleted, "deleted")

// CodeForked: this handle belongs to the parent process: open a new one after fork
const CodeForked Code = 14

// ErrForked is an error with this code.
var ErrForked = named(CodeForked, "forked")

// CodeRevoked: the claim was revoked because its owner did not run for too long
const CodeRevoked Code = 15

// ErrRevoked is an error with this code.
var ErrRevoked = named(CodeRevoked, "revoked")

// CodeWouldDeadlock: the topic is full and only this very thread could make room
const CodeWouldDeadlock Code = 16

// ErrWouldDeadlock is an error with this code.
var ErrWouldDeadlock = named(CodeWouldDeadlock, "would_deadlock")

// CodeNotAllowed: the topic's options do not allow this
const CodeNotAllowed Code = 17

// ErrNotAllowed is an error with this code.
var ErrNotAllowed = named(CodeNotAllowed, "not_allowed")

// CodeTooMany: every participant slot of the topic is in use
const CodeTooMany Code = 18

// ErrTooMany is an error with this code.
var ErrTooMany = named(CodeTooMany, "too_many")

// CodeUnsupported: not supported by this kernel or file system
const CodeUnsupported Code = 19

// ErrUnsupported is an error with this code.
var ErrUnsupported = named(CodeUnsupported, "unsupported")

// CodeInFlightFull: this member holds as many records as its group allows: acknowledge some
const CodeInFlightFull Code = 20

// ErrInFlightFull is an error with this code.
var ErrInFlightFull = named(CodeInFlightFull, "in_flight_full")

// CodeRedeliveryFull: more records came back, or wait for their key, than the group has room for
const CodeRedeliveryFull Code = 21

// ErrRedeliveryFull is an error with this code.
var ErrRedeliveryFull = named(CodeRedeliveryFull, "redelivery_full")

// CodeNotHeld: this member does not hold that record (any more)
const CodeNotHeld Code = 22

// ErrNotHeld is an error with this code.
var ErrNotHeld = named(CodeNotHeld, "not_held")

// CodeLeaseLost: the record was held for longer than the group's lease
const CodeLeaseLost Code = 23

// ErrLeaseLost is an error with this code.
var ErrLeaseLost = named(CodeLeaseLost, "lease_lost")

// CodeClosed: the consumer group was deleted
const CodeClosed Code = 24

// ErrClosed is an error with this code.
var ErrClosed = named(CodeClosed, "closed")

// CodeBufferTooSmall: the buffer is too small for the record
const CodeBufferTooSmall Code = 25

// ErrBufferTooSmall is an error with this code.
var ErrBufferTooSmall = named(CodeBufferTooSmall, "buffer_too_small")

// CodeIOError: a system call failed
const CodeIOError Code = 26

// ErrIOError is an error with this code.
var ErrIOError = named(CodeIOError, "io_error")

// CodeReadOnly: the topic is read-only: writing to its files failed
const CodeReadOnly Code = 27

// ErrReadOnly is an error with this code.
var ErrReadOnly = named(CodeReadOnly, "read_only")

// CodeNotDurable: published, but not on the medium in time
const CodeNotDurable Code = 28

// ErrNotDurable is an error with this code.
var ErrNotDurable = named(CodeNotDurable, "not_durable")

// CodeExpired: retention has deleted the group's next record
const CodeExpired Code = 29

// ErrExpired is an error with this code.
var ErrExpired = named(CodeExpired, "expired")

// CodeInterrupted: a signal interrupted the wait
const CodeInterrupted Code = 30

// ErrInterrupted is an error with this code.
var ErrInterrupted = named(CodeInterrupted, "interrupted")

// CodeNoMemory: out of memory
const CodeNoMemory Code = 31

// ErrNoMemory is an error with this code.
var ErrNoMemory = named(CodeNoMemory, "no_memory")

// From spec/errors.csv: end
