//! One function for each command of groups and members.

use crate::commands::{nothing, offset_result, print};
use crate::handles::{keep, Handles, Object};
use crate::with;
use crate::words::{fail, Command};
use leat::*;
use std::fmt::Write;

/// None: no such command.
pub fn run(handles: &Handles, c: &mut Command<'_>) -> Option<Result<String>> {
    Some(match c.word(0) {
        "group" => group(handles, c),
        "find_group" => find_group(handles, c),
        "delete_group" => with!(handles, c, 1, Object::Topic(topic), {
            topic
                .delete_group(c.word(2), c.is_set("force"))
                .map(nothing)
        }),
        "group_info" => group_info(handles, c),
        "seek" => with!(handles, c, 1, Object::Group(group), {
            group.seek(c.from("to"), c.number("partition")).map(nothing)
        }),
        "position" => with!(handles, c, 1, Object::Group(group), {
            group
                .position(c.number("partition").unwrap_or(0))
                .map(offset_result)
        }),
        "join" => join(handles, c),
        "receive" => receive(handles, c),
        "acknowledge" => acknowledge(handles, c),
        "acknowledge_up_to" => with!(handles, c, 1, Object::Member(member, tickets), {
            member
                .acknowledge_up_to(ticket(tickets, c.word(2)))
                .map(count_result)
        }),
        "acknowledge_all" => with!(handles, c, 1, Object::Member(member, _), {
            member.acknowledge_all().map(count_result)
        }),
        "requeue" => with!(handles, c, 1, Object::Member(member, tickets), {
            let delay = c.milliseconds("delay").unwrap_or_default();
            member
                .requeue(ticket(tickets, c.word(2)), delay)
                .map(nothing)
        }),
        "in_flight" => with!(handles, c, 1, Object::Member(member, _), {
            member.in_flight().map(count_result)
        }),
        _ => return None,
    })
}

fn count_result(count: u64) -> String {
    format!(" count={count}")
}

fn group(handles: &Handles, c: &Command<'_>) -> Result<String> {
    let defaults = GroupOptions::default();
    let options = GroupOptions {
        from: c.from("from"),
        mode: match c.option("mode").unwrap_or("at_least_once") {
            "at_least_once" => GroupMode::AtLeastOnce,
            "at_most_once" => GroupMode::AtMostOnce,
            other => fail("no such mode", other),
        },
        by_key: c.is_set("by_key"),
        lease: c.milliseconds("lease"),
        max_deliveries: c.number("max_deliveries").unwrap_or(0),
        in_flight: c.number("in_flight").unwrap_or(defaults.in_flight),
        ..defaults
    };
    let group = with!(
        handles,
        c,
        2,
        Object::Topic(topic),
        topic.group(c.word(3), &options)
    )?;
    let created = u32::from(group.was_created());
    keep(handles, c, Object::Group(group));
    Ok(format!(" created={created}"))
}

fn find_group(handles: &Handles, c: &Command<'_>) -> Result<String> {
    let group = with!(
        handles,
        c,
        2,
        Object::Topic(topic),
        topic.find_group(c.word(3))
    )?;
    keep(handles, c, Object::Group(group));
    Ok(String::new())
}

fn group_info(handles: &Handles, c: &Command<'_>) -> Result<String> {
    let info = with!(handles, c, 1, Object::Group(group), group.info())?;
    let taking = info.taking.map_or("ok", |why| why.code.name());
    Ok(format!(" returned={} taking={taking}", info.returned))
}

fn join(handles: &Handles, c: &Command<'_>) -> Result<String> {
    let options = MemberOptions {
        name: c.option("name").unwrap_or("").to_owned(),
        any_thread: true, // `start` uses it in another.
        ..Default::default()
    };
    let member = with!(handles, c, 2, Object::Group(group), group.join(&options))?;
    keep(handles, c, Object::Member(member, Vec::new()));
    Ok(String::new())
}

fn receive(handles: &Handles, c: &mut Command<'_>) -> Result<String> {
    let limit = c.number("limit").unwrap_or(1);
    with!(handles, c, 1, Object::Member(member, tickets), {
        let mut deliveries = member.receive(limit, c.timeout(0))?;
        while let Some(delivery) = deliveries.next() {
            print(&mut c.out, &delivery.entry());
            let (number, times) = (tickets.len(), delivery.deliveries());
            writeln!(c.out, " delivery={number} deliveries={times}").unwrap();
            tickets.push(delivery.ticket());
        }
        Ok(String::new())
    })
}

fn ticket(tickets: &[Ticket], number: &str) -> Ticket {
    match number
        .parse()
        .ok()
        .and_then(|number: usize| tickets.get(number))
    {
        Some(ticket) => *ticket,
        None => fail("no such delivery", number),
    }
}

fn acknowledge(handles: &Handles, c: &Command<'_>) -> Result<String> {
    with!(handles, c, 1, Object::Member(member, tickets), {
        if let [number] = &c.words[2..] {
            member.acknowledge(ticket(tickets, number))?;
            return Ok(count_result(1));
        }
        let some: Vec<_> = c.words[2..]
            .iter()
            .map(|number| ticket(tickets, number))
            .collect();
        member.acknowledge_some(&some).map(count_result)
    })
}
