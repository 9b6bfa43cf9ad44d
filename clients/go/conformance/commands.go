package main

import (
	"fmt"
	"io"
	"strings"

	"leat"
)

var commands map[string]func(c *command) (results string, err error)

func init() { // It refers to itself.
	commands = map[string]func(c *command) (string, error){
		"create": create, "open": open, "delete": deleteTopic, "info": info, "publisher": newPublisher,
		"publish": publish, "batch": batch, "claim": claim, "commit": commit, "abort": abort,
		"abandon": abandon, "flush": flush, "durable_offset": durableOffset, "subscriber": subscriber,
		"poll": poll, "take": take, "view": view, "wait": wait, "wait_any": waitAny, "offset": offset,
		"group": group, "find_group": findGroup, "delete_group": deleteGroup, "group_info": groupInfo, "seek": seek,
		"position": position, "join": join, "receive": receive, "acknowledge": acknowledge,
		"acknowledge_up_to": acknowledgeUpTo, "acknowledge_all": acknowledgeAll, "requeue": requeue,
		"in_flight": inFlight, "stop": stop, "resume": resume, "close": closeHandle, "fork": fork,
		"error_names": errorNames,
	}
}

func offsetResult(offset uint64, err error) (string, error) {
	return fmt.Sprint(" offset=", offset), err
}

func countResult(count int, err error) (string, error) {
	return fmt.Sprint(" count=", count), err
}

// ---- Topics -------------------------------------------------------------------------------------

func create(c *command) (string, error) {
	topic, err := leat.Create(c.word(2), leat.TopicOptions{
		Policy:        leat.Policy(c.choice("policy", "block", "fail", "overwrite", "grow")),
		Durable:       leat.Durability(c.choice("durable", "none", "os", "interval", "fsync")),
		CapacityBytes: uint64(c.number("capacity", 0)),
		SegmentBytes:  uint64(c.number("segment", 0)),
		Partitions:    c.number("partitions", 0),
		Timestamps:    c.flag("timestamps"),
		RetainAll:     c.flag("retain_all"),
		SyncInterval:  c.milliseconds("sync_interval"),
	})
	return "", keep(c, topic, err)
}

func open(c *command) (string, error) {
	ctx, cancel := c.context(0)
	defer cancel()
	topic, err := leat.OpenContext(ctx, c.word(2), leat.Place{})
	return "", keep(c, topic, err)
}

func deleteTopic(c *command) (string, error) {
	return "", leat.Delete(c.word(1), leat.DeleteOptions{Force: c.flag("force")})
}

func info(c *command) (string, error) {
	info, err := get[*leat.Topic](c, 1).Info()
	end := uint64(0)
	for _, partition := range info.Partitions {
		end += partition.End
	}
	return fmt.Sprintf(" partitions=%d end=%d", len(info.Partitions), end), err
}

// ---- Publishers ---------------------------------------------------------------------------------

func newPublisher(c *command) (string, error) {
	made, err := get[*leat.Topic](c, 2).Publisher(leat.PublisherOptions{
		Partition:   c.partition(),
		Exclusive:   c.flag("exclusive"),
		Acknowledge: leat.Stage(c.choice("acknowledge", "default", "committed", "durable")),
	})
	return "", keep(c, &publisher{Publisher: made}, err)
}

func publish(c *command) (string, error) {
	ctx, cancel := c.context(0)
	defer cancel()
	record := leat.NewRecord{Value: c.value(), Partition: c.partition()}
	if key, ok := c.option("key"); ok {
		record.Key = decode(key)
	}
	for _, header := range c.options("header") {
		name, value, _ := strings.Cut(header, ":")
		record.Headers = append(record.Headers, leat.Header{Name: string(decode(name)), Value: decode(value)})
	}
	p := get[*publisher](c, 1)
	if record.Key == nil && record.Headers == nil && record.Partition == leat.AnyPartition {
		return offsetResult(p.PublishContext(ctx, record.Value))
	}
	return offsetResult(p.PublishRecord(ctx, record))
}

func batch(c *command) (string, error) {
	ctx, cancel := c.context(0)
	defer cancel()
	var values [][]byte
	if prefix, ok := c.option("prefix"); ok {
		for i := 0; i < c.number("count", 1); i++ {
			values = append(values, []byte(fmt.Sprint(prefix, i)))
		}
	}
	for _, value := range c.options("value") {
		values = append(values, decode(value))
	}
	p := get[*publisher](c, 1)
	if c.partition() == leat.AnyPartition {
		return offsetResult(p.PublishBatch(ctx, values))
	}
	var records []leat.NewRecord
	for _, value := range values {
		records = append(records, leat.NewRecord{Value: value})
	}
	return offsetResult(p.PublishRecordBatch(ctx, records, c.partition()))
}

func claim(c *command) (string, error) {
	ctx, cancel := c.context(0)
	defer cancel()
	p := get[*publisher](c, 1)
	claim, err := p.BeginClaim(ctx, c.number("size", 0))
	if err != nil {
		return "", err
	}
	p.claim = claim
	return offsetResult(claim.Offset, nil)
}

func commit(c *command) (string, error) {
	claim := get[*publisher](c, 1).claim
	value := c.value()
	copy(claim.Room, value)
	return "", claim.Commit(len(value))
}

func abort(c *command) (string, error) { return "", get[*publisher](c, 1).claim.Abort() }

func abandon(c *command) (results string, err error) {
	defer func() { recover() }()
	_, err = get[*publisher](c, 1).Claim(leat.NoWait, 10, func([]byte) (int, error) { panic("abandoned") })
	return "", err
}

func flush(c *command) (string, error) {
	ctx, cancel := c.context(10000)
	defer cancel()
	return "", get[*publisher](c, 1).Flush(ctx)
}

func durableOffset(c *command) (string, error) {
	return offsetResult(get[*publisher](c, 1).DurableOffset(leat.AnyPartition))
}

// ---- Subscribers --------------------------------------------------------------------------------

func subscriber(c *command) (string, error) {
	made, err := get[*leat.Topic](c, 2).Subscriber(leat.SubscriberOptions{
		From:      c.from("from"),
		Lossy:     c.flag("lossy") || c.flag("in_place"),
		InPlace:   c.flag("in_place"),
		Partition: c.partition(),
	})
	return "", keep(c, made, err)
}

func poll(c *command) (string, error) {
	records := make([]leat.Record, c.number("limit", 64))
	count, err := get[*leat.Subscriber](c, 1).Poll(records)
	for i := range records[:count] {
		c.print(&records[i], "")
	}
	return "", err
}

func take(c *command) (string, error) {
	s := get[*leat.Subscriber](c, 1)
	for left := c.number("count", 1); left != 0; {
		ctx, cancel := c.context(10000)
		records, err := s.ReceiveBatch(ctx, left)
		cancel()
		if err != nil {
			return "", err
		}
		for i := range records {
			c.print(&records[i], "")
			if !records[i].IsGap() {
				left--
			}
		}
	}
	return "", nil
}

func view(c *command) (string, error) {
	s := get[*leat.Subscriber](c, 1)
	for left := c.number("count", 1); left != 0; {
		ctx, cancel := c.context(10000)
		err := s.View(ctx, left, func(batch []leat.RecordView) error {
			for i := range batch {
				v := &batch[i]
				if v.IsGap() {
					gap := v.Copy()
					c.print(&gap, "")
					continue
				}
				c.printRecord(v.Partition(), v.Offset(), v.Value(), v.Key(), v.Headers(), v.TimestampMs(), "")
				left--
			}
			return nil
		})
		cancel()
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

func wait(c *command) (string, error) {
	ctx, cancel := c.context(0)
	defer cancel()
	if m, ok := get[any](c, 1).(*member); ok {
		return "", m.Wait(ctx)
	}
	return "", get[*leat.Subscriber](c, 1).Wait(ctx)
}

func waitAny(c *command) (string, error) {
	ctx, cancel := c.context(0)
	defer cancel()
	var all []*leat.Subscriber
	for i, word := range c.words[1:] {
		if !strings.Contains(word, "=") {
			all = append(all, get[*leat.Subscriber](c, i+1))
		}
	}
	index, err := leat.WaitAny(ctx, all...)
	return fmt.Sprint(" index=", index), err
}

func offset(c *command) (string, error) {
	return offsetResult(get[*leat.Subscriber](c, 1).Offset(c.number("partition", 0)))
}

// ---- Groups -------------------------------------------------------------------------------------

func group(c *command) (string, error) {
	made, err := get[*leat.Topic](c, 2).Group(c.word(3), leat.GroupOptions{
		From:          c.from("from"),
		Mode:          leat.GroupMode(c.choice("mode", "at_least_once", "at_most_once")),
		ByKey:         c.flag("by_key"),
		Lease:         c.milliseconds("lease"),
		MaxDeliveries: c.number("max_deliveries", 0),
		InFlight:      c.number("in_flight", 0),
	})
	if keep(c, made, err) != nil {
		return "", err
	}
	if made.WasCreated() {
		return " created=1", nil
	}
	return " created=0", nil
}

func findGroup(c *command) (string, error) {
	found, err := get[*leat.Topic](c, 2).FindGroup(c.word(3))
	return "", keep(c, found, err)
}

func deleteGroup(c *command) (string, error) {
	return "", get[*leat.Topic](c, 1).DeleteGroup(c.word(2), c.flag("force"))
}

func groupInfo(c *command) (string, error) {
	info, err := get[*leat.Group](c, 1).Info()
	return fmt.Sprintf(" returned=%d taking=%s", info.Returned, leat.NameOf(info.Taking)), err
}

func seek(c *command) (string, error) {
	return "", get[*leat.Group](c, 1).Seek(c.from("to"), c.partition())
}

func position(c *command) (string, error) {
	return offsetResult(get[*leat.Group](c, 1).Position(c.number("partition", 0)))
}

func join(c *command) (string, error) {
	name, _ := c.option("name")
	joined, err := get[*leat.Group](c, 2).Join(leat.MemberOptions{Name: name})
	return "", keep(c, &member{Member: joined}, err)
}

func receive(c *command) (string, error) {
	ctx, cancel := c.context(0)
	defer cancel()
	m := get[*member](c, 1)
	received, err := m.ReceiveBatch(ctx, c.number("limit", 1))
	for i := range received {
		c.print(&received[i].Record, fmt.Sprintf(" delivery=%d deliveries=%d", len(m.deliveries), received[i].Deliveries))
		m.deliveries = append(m.deliveries, received[i])
	}
	return "", err
}

func (m *member) delivery(c *command, index int) leat.Delivery {
	number := toNumber(c.word(index))
	if number >= len(m.deliveries) {
		fail("no such delivery", number)
	}
	return m.deliveries[number]
}

func acknowledge(c *command) (string, error) {
	m := get[*member](c, 1)
	var some []leat.Delivery
	for i := 2; i < len(c.words); i++ {
		some = append(some, m.delivery(c, i))
	}
	return countResult(m.Acknowledge(some...))
}

func acknowledgeUpTo(c *command) (string, error) {
	m := get[*member](c, 1)
	return countResult(m.AcknowledgeUpTo(m.delivery(c, 2)))
}

func acknowledgeAll(c *command) (string, error) {
	return countResult(get[*member](c, 1).AcknowledgeAll())
}

func requeue(c *command) (string, error) {
	m := get[*member](c, 1)
	return "", m.Requeue(m.delivery(c, 2), c.milliseconds("delay"))
}

func inFlight(c *command) (string, error) { return countResult(get[*member](c, 1).InFlight()) }

// ---- All kinds of handles -----------------------------------------------------------------------

type stoppable interface {
	Stop() error
	Resume() error
}

func stop(c *command) (string, error)        { return "", get[stoppable](c, 1).Stop() }
func resume(c *command) (string, error)      { return "", get[stoppable](c, 1).Resume() }
func closeHandle(c *command) (string, error) { return "", get[io.Closer](c, 1).Close() }

func fork(*command) (string, error) {
	return "", notApplicable("Go has no fork without exec")
}

func errorNames(c *command) (string, error) {
	for code := leat.Code(0); code.Name() != "unknown"; code++ {
		fmt.Fprintln(&c.out, int(code), code.Name())
	}
	return "", nil
}
