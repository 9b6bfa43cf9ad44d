// If these failed, what one client sends as a unit would be cut up, mixed with what others send, or told the wrong offsets.
#include "broker/publish/publish_buffer.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <string>
#include <vector>

#include "leat/deadline.hpp"
#include "support/process.hpp"

namespace leat::broker {
namespace {

using namespace std::chrono_literals;

class PublishBufferTest : public ::testing::Test {
 protected:
  PublishBufferTest() {
    auto topic = Topic::create(
        "work", {.capacity_bytes = 32 << 10, .segment_bytes = 8 << 10, .directory = temp_.path()});
    EXPECT_TRUE(topic) << describe(topic.error());
    topic_ = std::move(*topic);
    auto reader = topic_->subscriber({.from = From::beginning});
    EXPECT_TRUE(reader);
    reader_.emplace(std::move(*reader));
    auto publisher = PublishBuffer::open_publisher(*topic_, {});
    EXPECT_TRUE(publisher) << publisher.problem().sentence;
    buffer_ = std::make_unique<PublishBuffer>(
        loop_, "work", std::move(*publisher),
        [this](Error error) { failures_.push_back(error.code); },
        [this](std::uint64_t begin, std::uint64_t end, std::size_t bytes) {
          published_ +=
              std::to_string(begin) + '-' + std::to_string(end) + ':' + std::to_string(bytes) + ' ';
          if (on_published_) on_published_();
        });
  }
  // What is there to do now.
  void turn() {
    loop_.restart();
    loop_.run_for(5ms);
  }
  PublishBuffer::OnUnit note() {
    return [this](const Outcome<std::uint64_t>& offset) {
      answers_.push_back(offset ? std::to_string(*offset) : offset.problem().sentence);
    };
  }
  void add_unit(const std::vector<std::string>& texts) {
    std::vector<NewRecord> records;
    for (const std::string& text : texts) records.push_back({.value = Bytes{text}});
    buffer_->add_unit(records, note());
  }
  // The first letters of what is there.
  std::string read() {
    std::string letters;
    while (*reader_->poll(100, [&](const Record& record) { letters += record.text().front(); })) {
    }
    return letters;
  }
  std::string read_until(std::size_t answers) {
    std::string letters;
    for (const Deadline deadline{20s}; answers_.size() < answers || !buffer_is_level();) {
      EXPECT_FALSE(deadline.passed());
      if (deadline.passed()) break;
      letters += read();
      loop_.restart();
      loop_.run_for(1ms);
    }
    return letters + read();
  }
  bool buffer_is_level() const { return buffer_->waiting() == 0; }

  testing::TemporaryDirectory temp_;
  boost::asio::io_context loop_;
  std::optional<Topic> topic_;
  std::optional<Subscriber> reader_;
  std::unique_ptr<PublishBuffer> buffer_;
  std::string published_;
  std::function<void()> on_published_;
  std::vector<std::string> answers_;
  std::vector<Errc> failures_;
};

TEST_F(PublishBufferTest, AUnitKeepsKeysHeadersAndOrder) {
  const Header headers[] = {{"colour", Bytes{"red"}}, {"colour", Bytes{"green"}}};
  const NewRecord records[] = {{.key = Bytes{"k"}, .headers = headers, .value = Bytes{"one"}},
                               {.key = Bytes{""}, .value = Bytes{""}},
                               {.value = Bytes{"three"}}};
  EXPECT_EQ(buffer_->add(Bytes{"before"}), PublishBuffer::Added::yes);
  buffer_->add_unit(records, note());
  EXPECT_TRUE(answers_.empty()) << "never before the call has returned";
  turn();
  EXPECT_EQ(answers_, std::vector<std::string>{"1"}) << "behind what was added before";
  EXPECT_EQ(published_, "0-1:6 1-4:8 ");
  std::string found;
  ASSERT_TRUE(reader_->poll(10, [&](const Record& record) {
    found += record.text();
    if (record.has_key) found += '[' + std::string{record.key.text()} + ']';
    for (const Header header : record.headers)
      found += '(' + std::string{header.name} + ' ' + std::string{header.value.text()} + ')';
    found += ' ';
  }));
  EXPECT_EQ(found, "before one[k](colour red)(colour green) [] three ");
}

TEST_F(PublishBufferTest, WhileTheTopicIsFullUnitsWaitWhole) {
  const std::string large(900, 'x');
  std::size_t messages = 0;
  while (buffer_->add(Bytes{large}) == PublishBuffer::Added::yes &&
         buffer_->publish() == PublishBuffer::Added::yes)
    ++messages;
  ++messages;  // The last one waits, too.
  add_unit({'a' + large, 'b' + large});
  EXPECT_EQ(buffer_->add(Bytes{'m' + large}), PublishBuffer::Added::full);
  add_unit({'c' + large, 'd' + large, 'e' + large});
  turn();
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(buffer_->waiting(), 7u);
  const std::string letters = read_until(2);
  EXPECT_EQ(letters.substr(0, messages), std::string(messages, 'x'));
  const std::string rest = letters.substr(messages);
  EXPECT_NE(rest.find("ab"), std::string::npos) << rest;
  EXPECT_NE(rest.find("cde"), std::string::npos) << rest;
  EXPECT_NE(rest.find('m'), std::string::npos) << rest;
  EXPECT_EQ(answers_, (std::vector<std::string>{std::to_string(letters.find("ab")),
                                                std::to_string(letters.find("cde"))}));
}

TEST_F(PublishBufferTest, RefusesAUnitWholeAndGoesOn) {
  add_unit({});
  add_unit({"a", std::string(5000, 'b')});
  const NewRecord elsewhere{.value = Bytes{"c"}, .partition = 7};
  buffer_->add_unit({&elsewhere, 1}, note());
  turn();
  ASSERT_EQ(answers_.size(), 3u);
  EXPECT_EQ(answers_[0], "a unit has no records");
  EXPECT_NE(answers_[1].find("the records are larger than "), std::string::npos) << answers_[1];
  EXPECT_FALSE(std::isdigit(answers_[2].front())) << answers_[2];
  EXPECT_EQ(topic_->end_offset(0), 0u);
  add_unit({"d"});
  turn();
  EXPECT_EQ(answers_.back(), "0");
}

// As when a consumer that gets the records makes room for what another client has sent.
TEST_F(PublishBufferTest, AUnitMayBeAddedWhileAnotherOneIsPublished) {
  on_published_ = [this] {
    on_published_ = nullptr;
    add_unit({"second", "third"});
  };
  add_unit({"first"});
  add_unit({"fourth"});
  turn();
  EXPECT_EQ(answers_, (std::vector<std::string>{"0", "1", "3"}));
  EXPECT_EQ(read(), "fstf");
  EXPECT_TRUE(failures_.empty());
}

TEST_F(PublishBufferTest, OfADeletedTopicUsersAreToldAndNewUnitsRefused) {
  ASSERT_TRUE(Topic::delete_topic("work", {.force = true, .directory = temp_.path()}));
  add_unit({"a"});
  turn();
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(failures_, std::vector<Errc>{Errc::deleted});
  add_unit({"b"});
  turn();
  EXPECT_EQ(answers_, std::vector<std::string>{"the topic has failed"});
}

}  // namespace
}  // namespace leat::broker
