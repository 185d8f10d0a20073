#include "core/train/event_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/golden/text.h"
#include "core/train/crc32c.h"
#include "core/train/metric_file.h"

namespace assay::train {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kData = std::string(ASSAY_SOURCE_DIR) + "/core/train/testdata/";

std::string bytes_of(const std::string& name) {
  std::ifstream stream(kData + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

const ScalarTag* tag_of(const EventFile& file, const std::string& name) {
  for (const ScalarTag& tag : file.tags) {
    if (tag.name == name) return &tag;
  }
  return nullptr;
}

TEST(Crc32c, IsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(EventFile, ReadsWhatTensorboardReads) {
  const json expected = json::parse(bytes_of("expected.json"));
  ASSERT_EQ(expected.size(), 5u);
  size_t points = 0;
  for (const auto& [name, tags] : expected.items()) {
    const Result<EventFile> file = read_event_file(kData + name);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_TRUE(file->corrupt.ok());
    EXPECT_EQ(file->torn, "");
    const auto simple =
        std::count_if(file->tags.begin(), file->tags.end(), [](const ScalarTag& t) { return t.simple; });
    ASSERT_EQ(static_cast<size_t>(simple), tags.size()) << name;
    for (const auto& [tag, values] : tags.items()) {
      const ScalarTag* read = tag_of(*file, tag);
      ASSERT_NE(read, nullptr) << tag;
      EXPECT_TRUE(read->simple);
      ASSERT_EQ(read->points.size(), values.size()) << name << " " << tag;
      for (size_t i = 0; i < values.size(); ++i, ++points) {
        EXPECT_EQ(read->points[i].step, values[i][0].get<int64_t>());
        EXPECT_EQ(text::python_repr(read->points[i].value), values[i][1].get<std::string>());
        EXPECT_EQ(text::python_repr(round5(read->points[i].value)), values[i][2].get<std::string>());
      }
    }
  }
  EXPECT_EQ(points, 52u);
}

TEST(EventFile, ReadsScalarsInTheFormOfTensors) {
  const Result<EventFile> file = read_event_file(kData + "tensors.tfevents");
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->tags.size(), 1u) << "text is no scalar";
  EXPECT_FALSE(file->tags[0].simple);
  std::vector<double> values;
  for (const ScalarPoint& point : file->tags[0].points) values.push_back(point.value);
  EXPECT_THAT(values, testing::ElementsAre(1.5, 0.1, -7, 1099511627776.0, 1, 1.5, 1.5, 2.25, -0.5, 0, 5));
}

TEST(EventFile, ATornLastRecordIsLeftOutWithANote) {
  const std::string whole = bytes_of("tensorboardx.tfevents");
  const size_t all = read_events(whole, "f").tags.front().points.size();
  for (size_t cut = 1; cut < 40; ++cut) {
    const EventFile file = read_events(std::string_view(whole).substr(0, whole.size() - cut), "folder/f");
    EXPECT_TRUE(file.corrupt.ok()) << cut;
    EXPECT_THAT(file.torn, HasSubstr("folder/f: the record at byte")) << cut;
    EXPECT_EQ(file.tags.front().points.size(), all);
  }
  const EventFile header = read_events(std::string_view(whole).substr(0, 5), "f");
  EXPECT_THAT(header.torn, HasSubstr("byte 0 ends inside its header"));
}

TEST(EventFile, EveryChangedByteIsNoticed) {
  const std::string whole = bytes_of("restarted.tfevents");
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string broken = whole;
    broken[i] = static_cast<char>(broken[i] ^ 0x10);
    const EventFile file = read_events(broken, "folder/f");
    ASSERT_FALSE(file.corrupt.ok()) << i;
    EXPECT_THAT(file.corrupt.message(), HasSubstr("folder/f: the record at byte"));
  }
}

// A record of these bytes, with right checksums.
std::string record(const std::string& data) {
  const auto little = [](uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
    return out;
  };
  const std::string length = little(data.size(), 8);
  return length + little(masked_crc32c(length), 4) + data + little(masked_crc32c(data), 4);
}

TEST(EventFile, RecordsThatAreNoEventsAreAnError) {
  for (const std::string& data : {std::string("\xff\xff"), std::string("\x2a\x7f"), std::string("\x08")}) {
    const EventFile file = read_events(record(data), "f");
    EXPECT_THAT(file.corrupt.message(), HasSubstr("byte 0 is no TensorBoard event"));
  }
  EXPECT_TRUE(read_events(record(""), "f").corrupt.ok());
}

TEST(EventFile, WithoutAVersionAStepThatGoesBackTakesWhatFollowedItAway) {
  const auto event = [](char step, const std::string& tag) {
    const std::string value =
        std::string("\x0a") + static_cast<char>(tag.size()) + tag + std::string("\x15\0\0\x80\x3f", 5);
    const std::string summary = std::string("\x0a") + static_cast<char>(value.size()) + value;
    return record(std::string("\x10") + step + "\x2a" + static_cast<char>(summary.size()) + summary);
  };
  const EventFile file =
      read_events(event(1, "a") + event(2, "a") + event(3, "a") + event(3, "b") + event(2, "a"), "f");
  ASSERT_EQ(file.tags.size(), 2u);
  EXPECT_EQ(file.tags[0].points.size(), 2u);
  EXPECT_EQ(file.tags[1].points.size(), 1u);
}

TEST(EventFile, AVersionCountsWholeOrNotAtAll) {
  const auto points_after_a_step_back = [](const std::string& version) {
    const auto event = [](char step) {
      return record(std::string("\x10") + step + std::string("\x2a\x0a\x0a\x08\x0a\x01\x61\x15\0\0\x80\x3f", 12));
    };
    const std::string head = record("\x1a" + std::string(1, static_cast<char>(version.size())) + version);
    const EventFile file = read_events(head + event(1) + event(3) + event(2), "f");
    EXPECT_TRUE(file.corrupt.ok()) << file.corrupt.message();
    return file.tags.at(0).points.size();
  };
  EXPECT_EQ(points_after_a_step_back("brain.Event:2"), 3u) << "restarts are told by events of their own";
  EXPECT_EQ(points_after_a_step_back("brain.Event:1"), 2u);
  EXPECT_EQ(points_after_a_step_back("brain.Event:2x"), 2u);
  EXPECT_EQ(points_after_a_step_back("brain.Event:"), 2u);
}

TEST(EventFile, WhatIsNoFileIsOneLine) {
  EXPECT_EQ(read_event_file("/no/such/file").status().code(), StatusCode::kNotFound);
  const Status folder = read_event_file(testing::TempDir()).status();
  EXPECT_EQ(folder.code(), StatusCode::kInvalid);
  EXPECT_THAT(folder.message(), HasSubstr("is a folder; expected a file"));
  const std::string pipe = testing::TempDir() + "event_pipe_" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(read_event_file(pipe).status().message(), HasSubstr("is a named pipe; expected a file"));
  ::unlink(pipe.c_str());
  EXPECT_EQ(read_event_file("/proc/self/mem").status().code(), StatusCode::kInfra);
}

}  // namespace
}  // namespace assay::train
