// The driver of the Go client: tests/conformance/README.md says what it reads and prints. If it did something
// else than a program in Go would, Go would be compared with the wrong thing.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"leat"
)

// The handles by name. A command that was started uses them too.
var (
	handles     = map[string]any{}
	handlesLock sync.Mutex
)

// What one command works with.
type command struct {
	words []string
	out   strings.Builder
}

var (
	errUnknown = errors.New("unknown")
	errBad     = errors.New("bad")
)

type notApplicable string

func (why notApplicable) Error() string { return string(why) }

// Runs a command; returns its whole answer.
func answer(line string) string {
	c := &command{words: strings.Split(line, " ")}
	results, err := c.run()
	var why notApplicable
	switch {
	case err == errUnknown:
		c.out.WriteString("error unknown_command\n")
	case err == errBad:
		c.out.WriteString("error bad_command\n")
	case errors.As(err, &why):
		fmt.Fprintf(&c.out, "not_applicable %s\n", string(why))
	case err != nil:
		fmt.Fprintf(&c.out, "error %s\n", leat.NameOf(err))
	default:
		fmt.Fprintf(&c.out, "ok%s\n", results)
	}
	return c.out.String()
}

func (c *command) run() (results string, err error) {
	run, ok := commands[c.words[0]]
	if !ok {
		return "", errUnknown
	}
	if c.isBad() {
		return "", errBad
	}
	if c.flag("own_thread") {
		return "", notApplicable("every handle may be used by any thread")
	}
	return run(c)
}

func main() {
	in := bufio.NewReader(os.Stdin)
	finished := make(chan string, 1)
	for {
		line, err := in.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		if err == io.EOF || line == "quit" {
			os.Exit(0) // Closes nothing.
		}
		switch {
		case strings.HasPrefix(line, "start "):
			go func() { finished <- answer(strings.TrimPrefix(line, "start ")) }()
			fmt.Println("ok")
		case line == "finish":
			fmt.Print(<-finished)
		default:
			fmt.Print(answer(line))
		}
	}
}

// Ends the driver: the scenario is wrong.
func fail(why string, about any) {
	fmt.Fprintf(os.Stderr, "driver: %s: %v\n", why, about)
	os.Exit(2)
}

// ---- Handles ------------------------------------------------------------------------------------

// The handle that a word names.
func get[T any](c *command, index int) T {
	handlesLock.Lock()
	defer handlesLock.Unlock()
	handle, ok := handles[c.word(index)].(T)
	if !ok {
		fail("no such handle", c.word(index))
	}
	return handle
}

// Keeps a handle, if the call that made it succeeded.
func keep(c *command, handle any, err error) error {
	if err == nil {
		handlesLock.Lock()
		handles[c.word(1)] = handle
		handlesLock.Unlock()
	}
	return err
}

// A publisher and its claim, which lasts for several commands.
type publisher struct {
	*leat.Publisher
	claim *leat.OpenClaim
}

// A member and what it received, in this order.
type member struct {
	*leat.Member
	deliveries []leat.Delivery
}
