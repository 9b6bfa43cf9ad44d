//! Finds libleat: LEAT_LIB_DIR is the folder with the library, LEAT_INCLUDE the one with leat/leat.h. Without
//! them, the linker looks where it always does.
use std::path::Path;

/// What src/ was written for.
const ABI_VERSION: u32 = 1;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=LEAT_LIB_DIR");
    println!("cargo:rerun-if-env-changed=LEAT_INCLUDE");
    if let Ok(directory) = std::env::var("LEAT_LIB_DIR") {
        println!("cargo:rustc-link-search=native={directory}");
        println!("cargo:lib_dir={directory}");
    }
    if let Ok(directory) = std::env::var("LEAT_INCLUDE") {
        check_header(&Path::new(&directory).join("leat/leat.h"));
        println!("cargo:include={directory}");
    }
    if std::env::var_os("CARGO_FEATURE_STATIC").is_some() {
        // A single object, so nothing of it may be left out; and what it needs of C++.
        println!("cargo:rustc-link-lib=static=leat");
        println!("cargo:rustc-link-lib=dylib=stdc++");
        println!("cargo:rustc-link-lib=dylib=m");
    } else {
        println!("cargo:rustc-link-lib=dylib=leat");
    }
}

/// Says at once, and in words, that the library is too old.
fn check_header(header: &Path) {
    println!("cargo:rerun-if-changed={}", header.display());
    let text = std::fs::read_to_string(header)
        .unwrap_or_else(|error| panic!("LEAT_INCLUDE: {}: {error}", header.display()));
    let version: u32 = text
        .lines()
        .find_map(|line| line.strip_prefix("#define LEAT_ABI_VERSION "))
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or_else(|| panic!("{} has no LEAT_ABI_VERSION", header.display()));
    assert!(
        version >= ABI_VERSION,
        "libleat is too old: its LEAT_ABI_VERSION is {version}, wanted is {ABI_VERSION}"
    );
}
