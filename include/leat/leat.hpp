// Leat: messages between processes through memory-mapped logs.
//
//     auto topic = leat::Topic::open_or_create("orders");
//     topic->publisher()->publish("hello");
//     auto subscriber = topic->subscriber({.from = leat::From::beginning});
//     std::cout << subscriber->receive(std::chrono::seconds{1})->text();
//
// This header is all a program needs. Errors are values (leat/result.hpp), nothing throws.
#pragma once

#include "leat/group.hpp"
