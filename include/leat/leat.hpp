// Leat: messages between processes through memory-mapped logs.
//
//     auto topic = leat::Topic::open_or_create("orders");
//     topic->publisher()->publish("hello");
//     auto subscriber = topic->subscriber({.from = leat::From::beginning});
//     std::cout << subscriber->receive(std::chrono::seconds{1})->text();
//
// This header is all that a program needs to include. Errors are values (leat/result.hpp),
// not exceptions.
#pragma once

#include "leat/group.hpp"
