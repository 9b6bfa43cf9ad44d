//! The driver of the Rust client: tests/conformance/README.md says what it reads and prints. If it did something else
//! than a program in Rust would, the table would say nothing about Rust.

mod commands;
mod groups;
mod handles;
mod words;

use handles::Handles;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread::JoinHandle;
use words::Command;

// The standard library has no fork.
extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

/// Runs one command; returns its whole answer.
fn answer(handles: &Handles, line: &str) -> String {
    let mut command = Command {
        words: line.split(' ').collect(),
        out: String::new(),
    };
    if command.is_bad() {
        return "error bad_command\n".to_owned();
    }
    let result = commands::run(handles, &mut command);
    let last = match result {
        None => "error unknown_command".to_owned(),
        Some(Ok(results)) => format!("ok{results}"),
        Some(Err(error)) => format!("error {}", error.code),
    };
    command.out + &last + "\n"
}

fn run_in_child(handles: &Handles, line: &str) {
    // SAFETY: the child uses what it inherited as any program would, prints, and ends.
    unsafe {
        let child = fork();
        if child == 0 {
            print(&answer(handles, line));
            _exit(0);
        }
        waitpid(child, std::ptr::null_mut(), 0);
    }
}

fn print(text: &str) {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).unwrap();
    out.flush().unwrap();
}

fn main() {
    std::panic::set_hook(Box::new(|what| {
        // The one of `abandon` is wanted, and no complaint.
        if !what.to_string().contains("before it was committed") {
            eprintln!("{what}");
        }
    }));
    let handles = Arc::new(Handles::default());
    let mut started: Option<JoinHandle<String>> = None;
    for line in io::stdin().lines() {
        let line = line.unwrap();
        if line == "quit" {
            break;
        }
        if let Some(command) = line.strip_prefix("start ") {
            let (handles, command) = (handles.clone(), command.to_owned());
            started = Some(std::thread::spawn(move || answer(&handles, &command)));
            print("ok\n");
        } else if line == "finish" {
            let thread = started
                .take()
                .unwrap_or_else(|| words::fail("nothing runs", &line));
            print(&thread.join().unwrap());
        } else if let Some(command) = line.strip_prefix("fork ") {
            run_in_child(&handles, command);
        } else {
            print(&answer(&handles, &line));
        }
    }
    std::process::exit(0); // Closes nothing.
}
