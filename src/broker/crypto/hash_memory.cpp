#include "hash_memory.hpp"

#include <sys/mman.h>

namespace leat::broker {

bool HashMemory::reserve(std::size_t size) noexcept {
  if (size <= bytes_.size()) return true;
  release();
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return false;
  bytes_ = {static_cast<std::byte*>(memory), size};
  return true;
}

void HashMemory::release() noexcept {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  bytes_ = {};
}

}  // namespace leat::broker
