//! The handles that commands name.

use crate::words::{fail, Command};
use leat::{Group, Member, OpenClaim, Publisher, Stopper, Subscriber, Ticket, Topic};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

pub enum Object {
    Topic(Topic),
    /// With its claim, which lasts for several commands.
    Publisher(Publisher, Option<OpenClaim>),
    Subscriber(Subscriber),
    Group(Group),
    /// With what it received, in this order.
    Member(Member, Vec<Ticket>),
}

/// A handle is locked by the command that uses it; stopping needs no lock.
#[derive(Clone)]
pub struct Handle {
    pub object: Arc<Mutex<Object>>,
    pub stopper: Option<Stopper>,
}

pub type Handles = Mutex<HashMap<String, Handle>>;

pub fn find(handles: &Handles, name: &str) -> Handle {
    match handles.lock().unwrap().get(name) {
        Some(handle) => handle.clone(),
        None => fail("no such handle", name),
    }
}

/// Keeps what a command made, under the name that it gives.
pub fn keep(handles: &Handles, command: &Command<'_>, object: Object) {
    let stopper = match &object {
        Object::Publisher(publisher, _) => Some(publisher.stopper()),
        Object::Subscriber(subscriber) => Some(subscriber.stopper()),
        Object::Member(member, _) => Some(member.stopper()),
        Object::Topic(_) | Object::Group(_) => None,
    };
    let object = Arc::new(Mutex::new(object));
    let handle = Handle { object, stopper };
    let name = command.word(1).to_owned();
    handles.lock().unwrap().insert(name, handle);
}

/// Calls `$call` with what is in the handle that word `$index` names.
#[macro_export]
macro_rules! with {
    ($handles:expr, $command:expr, $index:expr, $kind:pat, $call:expr) => {{
        let handle = $crate::handles::find($handles, $command.word($index));
        let mut object = handle.object.lock().unwrap();
        match &mut *object {
            $kind => $call,
            #[allow(unreachable_patterns)]
            _ => $crate::words::fail("not such a handle", $command.word($index)),
        }
    }};
}
