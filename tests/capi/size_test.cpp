// If this test failed, a program in C that passes more than 4 GiB would publish something else, or crash.
#include <sys/mman.h>

#include "capi.hpp"

using namespace leat_capi_test;

namespace {

constexpr std::uint64_t kFourGib = std::uint64_t{1} << 32;

// Address space with zeros, which costs no memory as long as nobody reads it.
class Zeros {
 public:
  explicit Zeros(std::uint64_t size)
      : size_{size},
        data_{
            ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)} {
    if (data_ == MAP_FAILED) throw std::runtime_error{"mmap failed"};
  }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  ~Zeros() { ::munmap(data_, size_); }
  template <class Type>
  const Type* of() const {
    return static_cast<const Type*>(data_);
  }

 private:
  std::uint64_t size_;
  void* data_;
};

}  // namespace

// Of one thing, and of many together. Their lowest 32 bits alone would be few enough.
TEST_F(CapiTest, MoreThanFourGibibytesAreTooLarge) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  auto subscriber = open_subscriber(topic);
  const Zeros zeros{kFourGib + 4096};
  const leat_bytes large{zeros.of<char>(), kFourGib + 5};
  const leat_bytes sixteenth{zeros.of<char>(), kFourGib / 16};
  const auto publish_record = [&](const leat_new_record& record) {
    EXPECT_EQ(leat_publisher_publish_record(publisher.get(), &record, 0, nullptr, nullptr),
              LEAT_ERR_TOO_LARGE);
    const leat_new_record both[] = {LEAT_NEW_RECORD_INIT, record};
    EXPECT_EQ(leat_publisher_publish_record_batch(publisher.get(), both, 2, LEAT_ANY_PARTITION, 0,
                                                  nullptr, nullptr),
              LEAT_ERR_TOO_LARGE);
  };
  EXPECT_EQ(leat_publisher_publish(publisher.get(), large.data, large.size, 0, nullptr, nullptr),
            LEAT_ERR_TOO_LARGE);
  leat_claim claim;
  EXPECT_EQ(leat_publisher_claim(publisher.get(), large.size, 0, &claim, nullptr),
            LEAT_ERR_TOO_LARGE);
  leat_new_record record = LEAT_NEW_RECORD_INIT;
  record.value = large;
  publish_record(record);
  record = LEAT_NEW_RECORD_INIT;
  record.key = large;
  publish_record(record);
  for (const leat_new_header& header :
       {leat_new_header{large, {nullptr, 0}}, leat_new_header{{nullptr, 0}, large}}) {
    record = LEAT_NEW_RECORD_INIT;
    record.headers = &header;
    record.header_count = 1;
    publish_record(record);
  }
  const std::vector<leat_new_header> headers(16, {sixteenth, {nullptr, 0}});
  record = LEAT_NEW_RECORD_INIT;
  record.headers = headers.data();
  record.header_count = 16;
  publish_record(record);
  const std::vector<leat_bytes> values(16, sixteenth);
  const auto publish_batch = [&](const leat_bytes* batch, std::uint64_t count) {
    return leat_publisher_publish_batch(publisher.get(), batch, count, LEAT_ANY_PARTITION, 0,
                                        nullptr, nullptr);
  };
  EXPECT_EQ(publish_batch(values.data(), 16), LEAT_ERR_TOO_LARGE);
  std::vector<leat_new_record> records(16, LEAT_NEW_RECORD_INIT);
  for (leat_new_record& one : records) one.key = sixteenth;
  EXPECT_EQ(leat_publisher_publish_record_batch(publisher.get(), records.data(), 16,
                                                LEAT_ANY_PARTITION, 0, nullptr, nullptr),
            LEAT_ERR_TOO_LARGE);
  EXPECT_EQ(drain(subscriber), std::vector<std::string>{});
  EXPECT_EQ(publish(publisher, "still works"), 0U);
}

TEST_F(CapiTest, MoreThanFourThousandMillionRecordsAreTooLarge) {
  auto topic = create();
  auto publisher = open_publisher(topic);
  const Zeros empty{(kFourGib + 5) * sizeof(leat_new_record)};
  EXPECT_EQ(leat_publisher_publish_batch(publisher.get(), empty.of<leat_bytes>(), kFourGib + 5,
                                         LEAT_ANY_PARTITION, 0, nullptr, nullptr),
            LEAT_ERR_TOO_LARGE);
  EXPECT_EQ(leat_publisher_publish_record_batch(publisher.get(), empty.of<leat_new_record>(),
                                                kFourGib + 5, 0, 0, nullptr, nullptr),
            LEAT_ERR_TOO_LARGE);
  EXPECT_EQ(publish(publisher, "still works"), 0U);
}
