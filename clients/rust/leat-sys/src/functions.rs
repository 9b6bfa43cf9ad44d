//! The functions of the header.

use crate::*;
use std::ffi::{c_char, c_void};

extern "C" {
    pub fn leat_error_name(code: i32) -> *const c_char;
    pub fn leat_describe(code: i32, detail: i32, buffer: *mut c_char, capacity: u64) -> i32;
    pub fn leat_abi_check(version: u32) -> i32;
    pub fn leat_abi_version() -> u32;
    pub fn leat_version() -> *const c_char;
    pub fn leat_gap_reason_name(reason: u32) -> *const c_char;
    pub fn leat_topic_create(
        name: *const c_char,
        name_size: u64,
        options: *const leat_topic_options,
        topic: *mut *mut leat_topic,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_topic_open(
        name: *const c_char,
        name_size: u64,
        timeout_ns: i64,
        place: *const leat_place,
        topic: *mut *mut leat_topic,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_topic_open_or_create(
        name: *const c_char,
        name_size: u64,
        options: *const leat_topic_options,
        topic: *mut *mut leat_topic,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_topic_close(topic: *mut *mut leat_topic) -> i32;
    pub fn leat_topic_delete(
        name: *const c_char,
        name_size: u64,
        place: *const leat_place,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_topic_list(
        place: *const leat_place,
        buffer: *mut c_char,
        capacity: u64,
        size: *mut u64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_topic_name(
        topic: *mut leat_topic,
        buffer: *mut c_char,
        capacity: u64,
        size: *mut u64,
    ) -> i32;
    pub fn leat_topic_max_record_size(topic: *mut leat_topic, bytes: *mut u64) -> i32;
    pub fn leat_topic_partitions(topic: *mut leat_topic, count: *mut u32) -> i32;
    pub fn leat_topic_get_info(
        topic: *mut leat_topic,
        info: *mut leat_topic_info,
        partitions: *mut leat_partition_info,
        partition_capacity: u32,
        participants: *mut leat_participant_info,
        participant_capacity: u32,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_topic_get_json(
        topic: *mut leat_topic,
        buffer: *mut c_char,
        capacity: u64,
        size: *mut u64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_topic_set_max_capacity(topic: *mut leat_topic, bytes: u64, detail: *mut i32)
        -> i32;
    pub fn leat_topic_shrink(
        topic: *mut leat_topic,
        freed_bytes: *mut u64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_topic_repair(topic: *mut leat_topic, timeout_ns: i64, detail: *mut i32) -> i32;
    pub fn leat_topic_repair_interruptible(
        topic: *mut leat_topic,
        timeout_ns: i64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_topic_publisher(
        topic: *mut leat_topic,
        options: *const leat_publisher_options,
        publisher: *mut *mut leat_publisher,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_publisher_close(publisher: *mut *mut leat_publisher) -> i32;
    pub fn leat_publisher_publish(
        publisher: *mut leat_publisher,
        value: *const c_void,
        size: u64,
        timeout_ns: i64,
        offset: *mut u64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_publisher_publish_record(
        publisher: *mut leat_publisher,
        record: *const leat_new_record,
        timeout_ns: i64,
        offset: *mut u64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_publisher_publish_batch(
        publisher: *mut leat_publisher,
        values: *const leat_bytes,
        count: u64,
        partition: u32,
        timeout_ns: i64,
        offset: *mut u64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_publisher_publish_record_batch(
        publisher: *mut leat_publisher,
        records: *const leat_new_record,
        count: u64,
        partition: u32,
        timeout_ns: i64,
        offset: *mut u64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_publisher_claim(
        publisher: *mut leat_publisher,
        size: u64,
        timeout_ns: i64,
        claim: *mut leat_claim,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_publisher_commit(
        publisher: *mut leat_publisher,
        claim: *const leat_claim,
        size: u64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_publisher_abort(
        publisher: *mut leat_publisher,
        claim: *const leat_claim,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_publisher_flush(
        publisher: *mut leat_publisher,
        timeout_ns: i64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_publisher_request_sync(publisher: *mut leat_publisher, detail: *mut i32) -> i32;
    pub fn leat_publisher_durable_offset(
        publisher: *mut leat_publisher,
        partition: u32,
        offset: *mut u64,
    ) -> i32;
    pub fn leat_publisher_durable_fd(
        publisher: *mut leat_publisher,
        fd: *mut i32,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_publisher_room_fd(
        publisher: *mut leat_publisher,
        partition: u32,
        fd: *mut i32,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_publisher_waiting_for(
        publisher: *mut leat_publisher,
        partition: u32,
        holders: *mut leat_room_holder,
        capacity: u32,
        count: *mut u32,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_publisher_last_offset(publisher: *mut leat_publisher, offset: *mut u64) -> i32;
    pub fn leat_publisher_max_record_size(publisher: *mut leat_publisher, bytes: *mut u64) -> i32;
    pub fn leat_publisher_partition(publisher: *mut leat_publisher, partition: *mut u32) -> i32;
    pub fn leat_publisher_stop(publisher: *mut leat_publisher) -> i32;
    pub fn leat_publisher_resume(publisher: *mut leat_publisher) -> i32;
    pub fn leat_publisher_is_stopped(publisher: *mut leat_publisher, is_stopped: *mut u32) -> i32;
    pub fn leat_topic_subscriber(
        topic: *mut leat_topic,
        options: *const leat_subscriber_options,
        subscriber: *mut *mut leat_subscriber,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_subscriber_close(subscriber: *mut *mut leat_subscriber) -> i32;
    pub fn leat_subscriber_poll(
        subscriber: *mut leat_subscriber,
        records: *mut leat_record,
        capacity: u32,
        count: *mut u32,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_subscriber_receive(
        subscriber: *mut leat_subscriber,
        records: *mut leat_record,
        capacity: u32,
        count: *mut u32,
        timeout_ns: i64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_subscriber_wait(subscriber: *mut leat_subscriber, timeout_ns: i64) -> i32;
    pub fn leat_subscriber_wait_any(
        subscribers: *const *mut leat_subscriber,
        count: u32,
        timeout_ns: i64,
        index: *mut u32,
    ) -> i32;
    pub fn leat_subscriber_wait_fd(
        subscriber: *mut leat_subscriber,
        fd: *mut i32,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_subscriber_offset(
        subscriber: *mut leat_subscriber,
        partition: u32,
        offset: *mut u64,
    ) -> i32;
    pub fn leat_subscriber_is_lossy(subscriber: *mut leat_subscriber, is_lossy: *mut u32) -> i32;
    pub fn leat_subscriber_stop(subscriber: *mut leat_subscriber) -> i32;
    pub fn leat_subscriber_resume(subscriber: *mut leat_subscriber) -> i32;
    pub fn leat_subscriber_is_stopped(
        subscriber: *mut leat_subscriber,
        is_stopped: *mut u32,
    ) -> i32;
    pub fn leat_topic_group(
        topic: *mut leat_topic,
        name: *const c_char,
        name_size: u64,
        options: *const leat_group_options,
        group: *mut *mut leat_group,
        was_created: *mut u32,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_topic_find_group(
        topic: *mut leat_topic,
        name: *const c_char,
        name_size: u64,
        group: *mut *mut leat_group,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_group_close(group: *mut *mut leat_group) -> i32;
    pub fn leat_topic_delete_group(
        topic: *mut leat_topic,
        name: *const c_char,
        name_size: u64,
        force: u32,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_topic_group_names(
        topic: *mut leat_topic,
        buffer: *mut c_char,
        capacity: u64,
        size: *mut u64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_group_name(
        group: *mut leat_group,
        buffer: *mut c_char,
        capacity: u64,
        size: *mut u64,
    ) -> i32;
    pub fn leat_group_get_info(
        group: *mut leat_group,
        info: *mut leat_group_info,
        members: *mut leat_member_info,
        member_capacity: u32,
        offsets: *mut u64,
        offset_capacity: u32,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_group_dead_letter_topic(
        group: *mut leat_group,
        buffer: *mut c_char,
        capacity: u64,
        size: *mut u64,
    ) -> i32;
    pub fn leat_group_seek(
        group: *mut leat_group,
        from: u32,
        from_value: u64,
        partition: u32,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_group_position(group: *mut leat_group, partition: u32, offset: *mut u64) -> i32;
    pub fn leat_group_released(group: *mut leat_group, partition: u32, count: *mut u64) -> i32;
    pub fn leat_group_join(
        group: *mut leat_group,
        options: *const leat_member_options,
        member: *mut *mut leat_member,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_member_close(member: *mut *mut leat_member) -> i32;
    pub fn leat_member_receive(
        member: *mut leat_member,
        deliveries: *mut leat_delivery,
        capacity: u32,
        count: *mut u32,
        timeout_ns: i64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_member_receive_copy(
        member: *mut leat_member,
        buffer: *mut c_void,
        capacity: u64,
        size: *mut u64,
        timeout_ns: i64,
        detail: *mut i32,
    ) -> i32;
    pub fn leat_member_acknowledge(member: *mut leat_member, delivery: *const leat_delivery)
        -> i32;
    pub fn leat_member_acknowledge_some(
        member: *mut leat_member,
        deliveries: *const leat_delivery,
        count: u64,
        acknowledged: *mut u64,
    ) -> i32;
    pub fn leat_member_acknowledge_up_to(
        member: *mut leat_member,
        delivery: *const leat_delivery,
        acknowledged: *mut u64,
    ) -> i32;
    pub fn leat_member_acknowledge_all(member: *mut leat_member, acknowledged: *mut u64) -> i32;
    pub fn leat_member_requeue(
        member: *mut leat_member,
        delivery: *const leat_delivery,
        delay_ns: i64,
    ) -> i32;
    pub fn leat_member_wait(member: *mut leat_member, timeout_ns: i64) -> i32;
    pub fn leat_member_wait_fd(member: *mut leat_member, fd: *mut i32, detail: *mut i32) -> i32;
    pub fn leat_member_in_flight(member: *mut leat_member, count: *mut u64) -> i32;
    pub fn leat_member_stop(member: *mut leat_member) -> i32;
    pub fn leat_member_resume(member: *mut leat_member) -> i32;
    pub fn leat_member_is_stopped(member: *mut leat_member, is_stopped: *mut u32) -> i32;
}
