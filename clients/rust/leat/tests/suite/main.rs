//! If these failed, a program in Rust would lose records, see some of another topic, hang, or crash.

mod claims;
mod codes;
mod groups;
mod misuse;
mod place;
mod publishing;
mod reading;
mod threads;
mod topics;
