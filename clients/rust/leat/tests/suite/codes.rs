//! If these failed, a Rust program would take one error for another, or panic at one of a newer library.

use leat::{Code, Error};
use std::collections::HashSet;

/// Lines of spec/errors.csv without the first two; the sentence may be quoted.
fn listed() -> Vec<(i32, String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../spec/errors.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let parts = text.lines().skip(2).map(|line| {
        let mut parts = line.splitn(3, ',');
        let mut next = || parts.next().unwrap().trim_matches('"').to_owned();
        (next().parse().unwrap(), next(), next())
    });
    parts.collect()
}

#[test]
fn codes_are_those_of_the_list() {
    let listed = listed();
    assert_eq!(listed.len(), Code::ALL.len());
    for ((number, name, sentence), code) in listed.iter().zip(Code::ALL) {
        assert_eq!(code.number(), *number);
        assert_eq!(code.name(), name);
        assert_eq!(Code::from(*number), *code);
        let text = Error::from(*code).to_string();
        assert!(text.starts_with(sentence), "{text}");
        assert_eq!(format!("{code:?}").to_lowercase(), name.replace('_', ""));
    }
    let distinct: HashSet<_> = Code::ALL.iter().collect();
    assert_eq!(distinct.len(), Code::ALL.len());
}

#[test]
fn a_code_of_a_later_library_is_kept() {
    let code = Code::from(12345);
    assert_eq!(code, Code::Unknown(12345));
    assert_eq!(code.number(), 12345);
    assert_eq!(code.name(), "unknown");
    assert!(!Error::from(code).to_string().is_empty());
}

#[test]
fn errors_say_what_the_system_said_and_become_those_of_io() {
    let error = Error::new(Code::Permission, 13);
    assert!(error.to_string().contains("Permission denied"), "{error}");
    let io = std::io::Error::from(error.clone());
    assert_eq!(io.kind(), std::io::ErrorKind::PermissionDenied);
    assert_eq!(io.to_string(), error.to_string());
}
