// One slot for each direction, in memory that both processes share, and a wakeup that tells when a slot is full.
//
// No queue: with pingpong the answer says that the slot is free again, with oneway the receiver rings
// back after each message. The methods differ in the wakeup.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>

#include "bench/floors/slot.hpp"
#include "leat/os/file.hpp"
#include "measure.hpp"
#include "methods.hpp"

namespace leat::bench::ipc {
namespace {

using detail::Fd;

constexpr std::size_t kSides = 2;

// ---- Wakeups: ring() makes one wait() of the other side return ----------------------------------
// A wakeup is made before the fork, so each process has its own copy of what is not in shared memory. A
// side is never rung again before it has noticed the last ring.

// No wakeup: the side that waits polls the sequence number in the slot.
struct NoWakeup {
  explicit NoWakeup(Variant) {}
  void ring(End) {}
  void wait(End) {}
  static constexpr bool kSleeps = false;
};

// One word for each side. The spinning variant never calls the kernel.
class FutexWakeup {
 public:
  explicit FutexWakeup(Variant variant) : spins_{variant == Variant::spinning} {}
  static constexpr bool kSleeps = true;

  void ring(End to) {
    std::atomic<std::uint32_t>& word = word_of(to);
    // release; pairs with the acquire in wait(), which then sees what was written to the slot.
    word.store(++rung_, std::memory_order_release);
    if (!spins_) ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  void wait(End me) {
    std::atomic<std::uint32_t>& word = word_of(me);
    while (word.load(std::memory_order_acquire) == heard_) {
      if (spins_) {
        spin_.once();
      } else {
        ::syscall(SYS_futex, &word, FUTEX_WAIT, heard_, nullptr, nullptr, 0);
      }
    }
    ++heard_;
  }

 private:
  struct Words {
    struct alignas(kCacheLine) Word {
      std::atomic<std::uint32_t> value{0};
    };
    std::array<Word, kSides> of_side;
  };
  std::atomic<std::uint32_t>& word_of(End side) const {
    return words_->of_side[static_cast<std::size_t>(side)].value;
  }
  bool spins_;
  Shared<Words> words_;
  std::uint32_t rung_ = 0;   // Rings sent by this process.
  std::uint32_t heard_ = 0;  // Rings that it has received.
  Spin spin_;
};

class EventWakeup {
 public:
  explicit EventWakeup(Variant variant) : spins_{variant == Variant::spinning} {
    for (Fd& fd : fds_) {
      const int made = ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | (spins_ ? EFD_NONBLOCK : 0));
      check(made, "cannot make an eventfd");
      fd = Fd{made};
    }
  }
  static constexpr bool kSleeps = true;

  void ring(End to) {
    const std::uint64_t one = 1;
    check(::write(fd_of(to), &one, sizeof one), "cannot write to an eventfd");
  }
  void wait(End me) {
    std::uint64_t got = 0;
    while (::read(fd_of(me), &got, sizeof got) < 0) {
      if (errno == EAGAIN) {
        spin_.once();
      } else if (errno != EINTR) {
        throw system_failure("cannot read from an eventfd");
      }
    }
  }

 private:
  int fd_of(End side) const { return fds_[static_cast<std::size_t>(side)].get(); }
  bool spins_;
  std::array<Fd, kSides> fds_;
  Spin spin_;
};

// SIGUSR1 to the other process, which has blocked it and waits for it by sigwaitinfo.
class SignalWakeup {
 public:
  explicit SignalWakeup(Variant) { sigaddset(&signals_, SIGUSR1); }
  static constexpr bool kSleeps = true;

  // Called by each side before the other one may ring.
  void be(End me) {
    check(::sigprocmask(SIG_BLOCK, &signals_, nullptr), "cannot block a signal");
    // release; pairs with the acquire in ring().
    pid_of(me).store(::getpid(), std::memory_order_release);
  }
  void ring(End to) {
    pid_t pid = 0;
    while ((pid = pid_of(to).load(std::memory_order_acquire)) == 0) spin_.once();
    check(::kill(pid, SIGUSR1), "cannot send a signal");
  }
  void wait(End) {
    while (::sigwaitinfo(&signals_, nullptr) < 0) {
      if (errno != EINTR) throw system_failure("cannot wait for a signal");
    }
  }

 private:
  using Pids = std::array<std::atomic<pid_t>, kSides>;
  std::atomic<pid_t>& pid_of(End side) const { return (*pids_)[static_cast<std::size_t>(side)]; }
  sigset_t signals_{};
  Shared<Pids> pids_;
  Spin spin_;
};

class ConditionWakeup {
 public:
  explicit ConditionWakeup(Variant) {
    pthread_mutexattr_t of_mutex;
    pthread_condattr_t of_condition;
    ::pthread_mutexattr_init(&of_mutex);
    ::pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
    ::pthread_condattr_init(&of_condition);
    ::pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
    for (One& one : *wakeups_) {
      ::pthread_mutex_init(&one.mutex, &of_mutex);
      ::pthread_cond_init(&one.condition, &of_condition);
    }
    ::pthread_mutexattr_destroy(&of_mutex);
    ::pthread_condattr_destroy(&of_condition);
  }
  static constexpr bool kSleeps = true;

  void ring(End to) {
    One& one = wakeup_of(to);
    ::pthread_mutex_lock(&one.mutex);
    ++one.rung;
    ::pthread_mutex_unlock(&one.mutex);
    ::pthread_cond_signal(&one.condition);
  }
  void wait(End me) {
    One& one = wakeup_of(me);
    ::pthread_mutex_lock(&one.mutex);
    while (one.rung == 0) ::pthread_cond_wait(&one.condition, &one.mutex);
    --one.rung;
    ::pthread_mutex_unlock(&one.mutex);
  }

 private:
  struct alignas(kCacheLine) One {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    std::uint64_t rung = 0;
  };
  One& wakeup_of(End side) const { return (*wakeups_)[static_cast<std::size_t>(side)]; }
  Shared<std::array<One, kSides>> wakeups_;
};

class PosixWakeup {
 public:
  explicit PosixWakeup(Variant variant) : spins_{variant == Variant::spinning} {
    for (One& one : *wakeups_) check(::sem_init(&one.semaphore, 1, 0), "cannot make a semaphore");
  }
  static constexpr bool kSleeps = true;

  void ring(End to) { check(::sem_post(&semaphore_of(to)), "cannot post a semaphore"); }
  void wait(End me) {
    sem_t& semaphore = semaphore_of(me);
    while ((spins_ ? ::sem_trywait(&semaphore) : ::sem_wait(&semaphore)) < 0) {
      if (errno == EAGAIN) {
        spin_.once();
      } else if (errno != EINTR) {
        throw system_failure("cannot wait for a semaphore");
      }
    }
  }

 private:
  struct alignas(kCacheLine) One {
    sem_t semaphore;
  };
  sem_t& semaphore_of(End side) const {
    return (*wakeups_)[static_cast<std::size_t>(side)].semaphore;
  }
  bool spins_;
  Shared<std::array<One, kSides>> wakeups_;
  Spin spin_;
};

class SystemVWakeup {
 public:
  explicit SystemVWakeup(Variant variant)
      : flags_{static_cast<short>(variant == Variant::spinning ? IPC_NOWAIT : 0)},
        id_{::semget(IPC_PRIVATE, kSides, 0600)} {
    check(id_, "cannot make System V semaphores (ipcs -s lists those there are)");
  }
  ~SystemVWakeup() { ::semctl(id_, 0, IPC_RMID); }
  SystemVWakeup(const SystemVWakeup&) = delete;
  SystemVWakeup& operator=(const SystemVWakeup&) = delete;
  static constexpr bool kSleeps = true;

  void ring(End to) { change(to, 1, 0); }
  void wait(End me) { change(me, -1, flags_); }

 private:
  void change(End side, short by, short flags) {
    sembuf operation{static_cast<unsigned short>(side), by, flags};
    while (::semop(id_, &operation, 1) < 0) {
      if (errno == EAGAIN) {
        spin_.once();
      } else if (errno != EINTR) {
        throw system_failure("cannot use a System V semaphore");
      }
    }
  }
  short flags_;
  int id_;
  Spin spin_;
};

// ---- Where the slots are ------------------------------------------------------------------------

// A file mapped by both; its name is removed at once.
class MappedFile {
 public:
  MappedFile(Fd file, std::size_t size) : size_{size} {
    if (!file) throw system_failure("cannot make a file to map");
    // Allocated rather than only extended: touching a page for which there is no room would kill the
    // process. Not by detail::allocate_file: the file system of $TMPDIR may have no fallocate.
    errno = ::posix_fallocate(file.get(), 0, static_cast<off_t>(size));
    if (errno != 0) throw system_failure("cannot make room in a file");
    void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (address == MAP_FAILED) throw system_failure("cannot map a file");
    data_ = static_cast<std::byte*>(address);
  }
  ~MappedFile() { ::munmap(data_, size_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::byte* data() const noexcept { return data_; }
  // Writing a byte of each page back maps the page for writing, in this process.
  void prefault() const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    for (std::size_t at = 0; at < size_; at += page) {
      auto* const byte = reinterpret_cast<volatile unsigned char*>(data_ + at);
      *byte = *byte;
    }
  }

 private:
  std::byte* data_;
  std::size_t size_;
};

struct Anonymous : SharedMemory {
  using SharedMemory::SharedMemory;
};

struct PosixMemory : MappedFile {
  explicit PosixMemory(std::size_t size) : MappedFile{open(), size} {}
  static Fd open() {
    const std::string name = fmt::format("/leat-bench-{}", ::getpid());
    Fd file{::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)};
    if (file) ::shm_unlink(name.c_str());
    return file;
  }
};

struct OrdinaryFile : MappedFile {
  explicit OrdinaryFile(std::size_t size) : MappedFile{open(), size} {}
  static Fd open() {
    std::string path = (std::filesystem::temp_directory_path() / "leat-bench-XXXXXX").string();
    Fd file{::mkostemp(path.data(), O_CLOEXEC)};
    if (file) ::unlink(path.c_str());
    return file;
  }
};

// ---- The channel --------------------------------------------------------------------------------

template <class Memory, class Wakeup>
class SlotChannel {
 public:
  explicit SlotChannel(const Load& load)
      : there_{load.size},
        back_{load.size},
        wakeup_{load.variant},
        rings_back_{load.pattern != Pattern::pingpong} {}

  class Side {
   public:
    Side(SlotChannel& channel, End end)
        : in_{end == End::sender ? channel.back_ : channel.there_},
          out_{end == End::sender ? channel.there_ : channel.back_},
          wakeup_{channel.wakeup_},
          me_{end},
          peer_{end == End::sender ? End::receiver : End::sender},
          rings_back_{channel.rings_back_} {
      in_.memory().prefault();
      out_.memory().prefault();
      if constexpr (requires { wakeup_.be(end); }) wakeup_.be(end);
    }

    void send(std::span<const std::byte> message) {
      if (rings_back_ && sent_ != 0) wait_for(sent_);  // Only then is the slot free.
      out_.put(message, ++sent_);
      wakeup_.ring(peer_);
    }
    void flush() {}

    template <class Visit>
    std::size_t receive(std::size_t, const Visit& visit) {
      wait_for(++received_);
      visit(in_.payload());
      if (rings_back_) {
        out_.announce(received_);
        wakeup_.ring(peer_);
      }
      return 1;
    }

   private:
    void wait_for(std::uint64_t sequence) {
      if constexpr (Wakeup::kSleeps) {
        wakeup_.wait(me_);
      } else {
        in_.await(sequence, spin_);
      }
    }

    const Slot<Memory>& in_;
    const Slot<Memory>& out_;
    Wakeup& wakeup_;
    End me_;
    End peer_;
    bool rings_back_;
    std::uint64_t sent_ = 0;
    std::uint64_t received_ = 0;
    Spin spin_;
  };

 private:
  Slot<Memory> there_;
  Slot<Memory> back_;
  Wakeup wakeup_;
  bool rings_back_;
};

// ---- process_vm_readv(2) ------------------------------------------------------------------------

// The receiver copies the message out of the sender's memory; the slot only says where it is.
class ForeignMemoryChannel {
 public:
  explicit ForeignMemoryChannel(const Load& load)
      : load_{load}, wakeup_{load.variant}, rings_back_{load.pattern != Pattern::pingpong} {}

  class Side {
   public:
    Side(ForeignMemoryChannel& channel, End end)
        : me_{end},
          peer_{end == End::sender ? End::receiver : End::sender},
          out_{(*channel.places_)[static_cast<std::size_t>(me_)]},
          in_{(*channel.places_)[static_cast<std::size_t>(peer_)]},
          wakeup_{channel.wakeup_},
          rings_back_{channel.rings_back_},
          buffer_(channel.load_.size) {
      ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // Kernels with Yama require it.
      out_.pid = ::getpid();
    }

    // The message must stay unchanged until the answer, or the acknowledgement, has come.
    void send(std::span<const std::byte> message) {
      if (rings_back_ && sent_++ != 0) wakeup_.wait(me_);
      out_.address = message.data();
      wakeup_.ring(peer_);
    }
    void flush() {}

    template <class Visit>
    std::size_t receive(std::size_t, const Visit& visit) {
      wakeup_.wait(me_);
      const iovec here{buffer_.data(), buffer_.size()};
      const iovec there{const_cast<std::byte*>(in_.address), buffer_.size()};
      const ssize_t got = ::process_vm_readv(in_.pid, &here, 1, &there, 1, 0);
      if (got != static_cast<ssize_t>(buffer_.size())) {
        if (got < 0 && (errno == EPERM || errno == ENOSYS)) {
          throw NotSupported(
              "this machine does not permit process_vm_readv (kernel.yama.ptrace_scope, or a "
              "container's rules)");
        }
        throw system_failure("cannot read the other process's memory");
      }
      visit(std::span<const std::byte>(buffer_));
      if (rings_back_) wakeup_.ring(peer_);
      return 1;
    }

   private:
    friend class ForeignMemoryChannel;
    struct alignas(kCacheLine) Place {
      pid_t pid = 0;
      const std::byte* address = nullptr;
    };

    End me_;
    End peer_;
    Place& out_;
    const Place& in_;
    FutexWakeup& wakeup_;
    bool rings_back_;
    std::vector<std::byte> buffer_;
    std::uint64_t sent_ = 0;
  };

 private:
  const Load& load_;
  Shared<std::array<Side::Place, kSides>> places_;
  FutexWakeup wakeup_;
  bool rings_back_;
};

}  // namespace

std::vector<Method> slot_methods() {
  constexpr Facts kSlot{.queue = false};
  return {
      {.name = "shm",
       .measure = &measure_channel<SlotChannel<PosixMemory, NoWakeup>>,
       .blocking = false,
       .baseline = true,
       .facts = kSlot},
      {.name = "mmap",
       .measure = &measure_channel<SlotChannel<OrdinaryFile, NoWakeup>>,
       .blocking = false,
       .baseline = true,
       .facts = kSlot},
      {.name = "eventfd",
       .measure = &measure_channel<SlotChannel<Anonymous, EventWakeup>>,
       .facts = kSlot},
      {.name = "signal",
       .measure = &measure_channel<SlotChannel<Anonymous, SignalWakeup>>,
       .spinning = false,
       .facts = kSlot},
      {.name = "futex",
       .measure = &measure_channel<SlotChannel<Anonymous, FutexWakeup>>,
       .baseline = true,
       .facts = kSlot},
      {.name = "condvar",
       .measure = &measure_channel<SlotChannel<Anonymous, ConditionWakeup>>,
       .spinning = false,
       .facts = kSlot},
      {.name = "sem-posix",
       .measure = &measure_channel<SlotChannel<Anonymous, PosixWakeup>>,
       .baseline = true,
       .facts = kSlot},
      {.name = "sem-sysv",
       .measure = &measure_channel<SlotChannel<Anonymous, SystemVWakeup>>,
       .facts = kSlot},
      {.name = "vm-readv", .measure = &measure_channel<ForeignMemoryChannel>, .facts = kSlot},
  };
}

}  // namespace leat::bench::ipc
