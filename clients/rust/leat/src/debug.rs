//! `{:?}` of what has nothing to show: so that `Result::unwrap_err` and structs with these inside work.

use crate::*;
use std::fmt;

macro_rules! opaque {
    ($($name:ident $(<$($lifetime:lifetime),+>)?),*) => {$(
        impl fmt::Debug for $name $(<$($lifetime),+>)? {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}
opaque!(
    Topic,
    Publisher,
    Subscriber,
    Group,
    Member,
    Stopper,
    Deliveries<'_>,
    Entries<'_>
);

impl fmt::Debug for Headers<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.clone()).finish()
    }
}

impl fmt::Debug for Delivery<'_, '_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entry().fmt(out)
    }
}
