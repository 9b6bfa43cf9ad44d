//! If this failed, Rust and C would disagree about what lies where.

use leat_sys::*;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The header: of the library, or of the source tree.
fn header() -> PathBuf {
    match std::env::var_os("LEAT_INCLUDE") {
        Some(directory) => Path::new(&directory).join("leat/leat.h"),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../src/capi/leat.h"),
    }
}

/// What a C program prints that knows the header.
fn in_c(statements: &str) -> String {
    let thread = std::thread::current();
    let name = format!("leat-sys-{}-{}", std::process::id(), thread.name().unwrap());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let (source, program) = (directory.join("layout.c"), directory.join("layout"));
    let text = format!(
        "#include {:?}\n#include <stdio.h>\n#define SHOW(of, number) printf(\"%s %lld\\n\", of, (long long)(number));\n\
         int main(void) {{\n{statements}return 0; }}\n",
        header()
    );
    std::fs::write(&source, text).unwrap();
    let compiled = Command::new("cc")
        .arg("-o")
        .arg(&program)
        .arg(&source)
        .status()
        .unwrap();
    assert!(compiled.success());
    let output = Command::new(&program).output().unwrap();
    let _ = std::fs::remove_dir_all(&directory);
    String::from_utf8(output.stdout).unwrap()
}

fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

#[test]
fn structs_are_the_header_s() {
    let (mut c, mut rust) = (String::new(), String::new());
    macro_rules! structs {
        ($($name:ident: $($field:ident)*;)*) => {$(
            c += concat!("SHOW(\"", stringify!($name), "\", sizeof(", stringify!($name), "))\n");
            rust += &format!("{} {}\n", stringify!($name), size_of::<$name>());
            $(
                c += concat!("SHOW(\"", stringify!($field), "\", offsetof(", stringify!($name), ", ", stringify!($field), "))\n");
                c += concat!("SHOW(\"size\", sizeof(((", stringify!($name), " *)0)->", stringify!($field), "))\n");
                rust += &format!("{} {}\nsize {}\n", stringify!($field), offset_of!($name, $field), size_of_field(|it: &$name| &it.$field));
            )*
        )*};
    }
    structs! {
        leat_bytes: data size;
        leat_record: value offset value_size key_size headers_size partition flags;
        leat_header: name value name_size value_size;
        leat_headers: at left;
        leat_new_header: name value;
        leat_new_record: value key headers header_count partition;
        leat_topic_options: size policy capacity_bytes segment_bytes max_capacity_bytes grow_below_bytes
            partitions participants retain_all single_writer timestamps delete_when_unused revoke_after_ns
            evict_after_ns mode durable sync_interval_ns file_bytes retention_bytes retention_ms file_group
            directory data_directory;
        leat_place: size force directory data_directory interruptible reserved;
        leat_topic_info: size policy capacity_bytes max_capacity_bytes min_capacity_bytes max_capacity_limit
            segment_bytes max_record_bytes retain_all single_writer timestamps delete_when_unused
            revoke_after_ns evict_after_ns partition_count participant_count durable state state_detail
            archiver_pid sync_interval_ns created_ms file_bytes retention_bytes retention_ms disk_bytes
            cut_bytes cut_records damaged id;
        leat_partition_info: start end capacity_bytes used_bytes written durable;
        leat_participant_info: pid role offset lag blocking reserved;
        leat_publisher_options: size partition exclusive acknowledge interruptible reserved;
        leat_claim: data size offset id;
        leat_subscriber_options: size from from_value partition gating in_place read any_thread interruptible
            spin_ns patience_ns;
        leat_group_options: size from from_value mode by_key members in_flight max_deliveries on_expired
            lease_ns;
        leat_group_info: size mode by_key max_deliveries lease_ns on_expired in_flight_limit lag in_flight
            redelivered returned returned_limit dead_letters taking member_count partition_count reserved;
        leat_member_info: name in_flight pid reserved;
        leat_room_holder: kind pid members reserved group;
        leat_member_options: size any_thread interruptible reserved spin_ns patience_ns name;
        leat_delivery: record deliveries reserved state position entry;
    }
    assert_eq!(in_c(&c), rust);
}

macro_rules! check_constants {
    ($($name:ident)*) => {{
        let (mut c, mut rust) = (String::new(), String::new());
        $(
            c += concat!("SHOW(\"", stringify!($name), "\", ", stringify!($name), ")\n");
            rust += &format!("{} {}\n", stringify!($name), $name as i64);
        )*
        assert_eq!(in_c(&c), rust);
    }};
}

#[test]
fn constants_are_the_header_s() {
    check_constants! {
        LEAT_ABI_VERSION
        LEAT_DESCRIPTION_SIZE
        LEAT_TEXT
        LEAT_FOREVER
        LEAT_ANY_PARTITION
        LEAT_MAX_WAIT_ANY
        LEAT_POLICY_BLOCK
        LEAT_POLICY_FAIL
        LEAT_POLICY_OVERWRITE
        LEAT_POLICY_GROW
        LEAT_DURABILITY_NONE
        LEAT_DURABILITY_OS
        LEAT_DURABILITY_INTERVAL
        LEAT_DURABILITY_FSYNC
        LEAT_STAGE_DEFAULT
        LEAT_STAGE_COMMITTED
        LEAT_STAGE_DURABLE
        LEAT_FROM_END
        LEAT_FROM_BEGINNING
        LEAT_FROM_OFFSET
        LEAT_FROM_LAST
        LEAT_FROM_TIME
        LEAT_GAP_ABORTED
        LEAT_GAP_DIED
        LEAT_GAP_REVOKED
        LEAT_GAP_OVERWRITTEN
        LEAT_GAP_DAMAGED
        LEAT_GAP_LOST
        LEAT_ROLE_PUBLISHER
        LEAT_ROLE_EXCLUSIVE_PUBLISHER
        LEAT_ROLE_SUBSCRIBER
        LEAT_ROLE_LOSSY_SUBSCRIBER
        LEAT_ROLE_MEMBER
        LEAT_HOLDER_SUBSCRIBER
        LEAT_HOLDER_GROUP
        LEAT_HOLDER_PUBLISHER
        LEAT_HOLDER_ARCHIVER
        LEAT_GROUP_AT_LEAST_ONCE
        LEAT_GROUP_AT_MOST_ONCE
        LEAT_EXPIRED_START
        LEAT_EXPIRED_END
        LEAT_EXPIRED_STOP
        LEAT_RECORD_HAS_KEY
        LEAT_RECORD_HAS_TIMESTAMP
        LEAT_RECORD_HAS_HEADERS
        LEAT_RECORD_IS_GAP
    }
}

#[test]
fn error_codes_are_the_header_s() {
    check_constants! {
        LEAT_OK
        LEAT_ERR_INVALID_ARGUMENT
        LEAT_ERR_NOT_FOUND
        LEAT_ERR_EXISTS
        LEAT_ERR_BUSY
        LEAT_ERR_PERMISSION
        LEAT_ERR_WRONG_FORMAT
        LEAT_ERR_CORRUPT
        LEAT_ERR_FULL
        LEAT_ERR_NO_SPACE
        LEAT_ERR_TOO_LARGE
        LEAT_ERR_TIMEOUT
        LEAT_ERR_STOPPED
        LEAT_ERR_DELETED
        LEAT_ERR_FORKED
        LEAT_ERR_REVOKED
        LEAT_ERR_WOULD_DEADLOCK
        LEAT_ERR_NOT_ALLOWED
        LEAT_ERR_TOO_MANY
        LEAT_ERR_UNSUPPORTED
        LEAT_ERR_IN_FLIGHT_FULL
        LEAT_ERR_REDELIVERY_FULL
        LEAT_ERR_NOT_IN_FLIGHT
        LEAT_ERR_LEASE_LOST
        LEAT_ERR_CLOSED
        LEAT_ERR_BUFFER_TOO_SMALL
        LEAT_ERR_IO_ERROR
        LEAT_ERR_READ_ONLY
        LEAT_ERR_NOT_DURABLE
        LEAT_ERR_EXPIRED
        LEAT_ERR_INTERRUPTED
        LEAT_ERR_NO_MEMORY
        LEAT_ERR_NEEDS_DURABLE
        LEAT_ERR_NEEDS_TIMESTAMPS
        LEAT_ERR_NEEDS_GROWING
        LEAT_ERR_NOT_WITH_OVERWRITE
        LEAT_ERR_NOT_WITH_DURABLE
    }
}

/// The bytes of an initializer. No struct has padding.
fn bytes_of<T>(it: &T) -> Vec<u8> {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts((it as *const T).cast::<u8>(), size_of::<T>()) }.to_vec()
}

#[test]
fn initializers_are_the_header_s() {
    let (mut c, mut rust) = (String::new(), String::new());
    macro_rules! initializers {
        ($($name:ident $init:ident)*) => {$(
            c += concat!(
                "{ ", stringify!($name), " it = ", stringify!($init),
                "; for (size_t i = 0; i < sizeof(it); ++i) SHOW(\"", stringify!($name), "\", ((unsigned char *)&it)[i]) }\n"
            );
            for byte in bytes_of(&$init) {
                rust += &format!("{} {byte}\n", stringify!($name));
            }
        )*};
    }
    initializers! {
        leat_new_record LEAT_NEW_RECORD_INIT
        leat_topic_options LEAT_TOPIC_OPTIONS_INIT
        leat_place LEAT_PLACE_INIT
        leat_publisher_options LEAT_PUBLISHER_OPTIONS_INIT
        leat_subscriber_options LEAT_SUBSCRIBER_OPTIONS_INIT
        leat_group_options LEAT_GROUP_OPTIONS_INIT
        leat_member_options LEAT_MEMBER_OPTIONS_INIT
    }
    assert_eq!(in_c(&c), rust);
}

#[test]
fn no_function_is_missing() {
    let text = std::fs::read_to_string(header()).unwrap();
    let declared = text.split("LEAT_API ").skip(1).filter_map(|rest| {
        let name = rest.split('(').next()?;
        name.rsplit([' ', '*'])
            .next()
            .filter(|name| name.starts_with("leat_"))
    });
    let ours = include_str!("../src/functions.rs");
    let missing: Vec<_> = declared
        .filter(|name| !ours.contains(&format!("fn {name}(")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
