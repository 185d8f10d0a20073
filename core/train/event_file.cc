#include "core/train/event_file.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "core/discover/arguments.h"
#include "core/golden/file.h"
#include "core/train/records.h"
#include "core/train/tensor_scalar.h"
#include "core/train/wire.h"

namespace assay::train {
namespace {

constexpr uint64_t kSessionStart = 1;  // SessionLog.START
constexpr uint64_t kScalarClass = 1;   // DATA_CLASS_SCALAR

struct Value {
  std::string tag;
  std::optional<double> simple;
  std::optional<std::string_view> tensor;
  std::optional<std::string_view> metadata;
};

struct Event {
  int64_t step = 0;
  std::optional<std::string_view> version;
  bool has_summary = false;
  bool start = false;
  std::vector<Value> values;
};

bool read_value(std::string_view message, Value* value) {
  WireReader reader(message);
  WireField field;
  while (reader.next(&field)) {
    if (field.number == 1 && field.type == WireType::kBytes) value->tag = field.bytes;
    if (field.number == 2 && field.type == WireType::kFixed32) value->simple = field.as_float();
    if (field.number == 8 && field.type == WireType::kBytes) value->tensor = field.bytes;
    if (field.number == 9 && field.type == WireType::kBytes) value->metadata = field.bytes;
  }
  return !reader.broken();
}

bool read_summary(std::string_view message, Event* event) {
  WireReader reader(message);
  WireField field;
  while (reader.next(&field)) {
    if (field.number != 1 || field.type != WireType::kBytes) continue;
    if (!read_value(field.bytes, &event->values.emplace_back())) return false;
  }
  return !reader.broken();
}

bool is_session_start(std::string_view message) {
  WireReader reader(message);
  WireField field;
  bool start = false;
  while (reader.next(&field)) {
    if (field.number == 1 && field.type == WireType::kVarint) start = field.value == kSessionStart;
  }
  return start;
}

bool read_event(std::string_view message, Event* event) {
  WireReader reader(message);
  WireField field;
  while (reader.next(&field)) {
    if (field.number == 2 && field.type == WireType::kVarint) event->step = static_cast<int64_t>(field.value);
    if (field.number == 3 && field.type == WireType::kBytes) event->version = field.bytes;
    if (field.number == 5 && field.type == WireType::kBytes) {
      event->has_summary = true;
      if (!read_summary(field.bytes, event)) return false;
    }
    if (field.number == 7 && field.type == WireType::kBytes) event->start = is_session_start(field.bytes);
  }
  return !reader.broken();
}

// True where the metadata of a tag says that its tensors are scalars.
bool says_scalar(std::string_view metadata) {
  WireReader reader(metadata);
  WireField field;
  bool scalar = false;
  while (reader.next(&field)) {
    if (field.number == 4 && field.type == WireType::kVarint && field.value == kScalarClass) scalar = true;
    if (field.number != 1 || field.type != WireType::kBytes) continue;
    WireReader plugin(field.bytes);
    WireField member;
    while (plugin.next(&member)) {
      if (member.number == 1 && member.type == WireType::kBytes && member.bytes == "scalars") scalar = true;
    }
  }
  return scalar;
}

// As TensorBoard reads it: -1 where it is no number.
double version_number(std::string_view text) {
  constexpr std::string_view kPrefix = "brain.Event:";
  if (const size_t at = text.rfind(kPrefix); at != std::string_view::npos) text.remove_prefix(at + kPrefix.size());
  const Result<double> number = discover::parse_float(text);
  return number ? *number : -1;
}

class Accumulator {
 public:
  explicit Accumulator(EventFile* file) : file_(*file) {}

  void take(const Event& event) {
    if (event.version) version_ = version_number(*event.version);
    purge(event);
    for (const Value& value : event.values) {
      if (value.metadata && known_.insert(value.tag).second && says_scalar(*value.metadata)) scalars_.insert(value.tag);
      if (value.simple) {
        add(value.tag, {event.step, *value.simple, true});
      } else if (value.tensor && scalars_.contains(value.tag)) {
        if (const auto number = scalar_of_tensor(*value.tensor)) add(value.tag, {event.step, *number, false});
      }
    }
  }

 private:
  void add(const std::string& name, const ScalarPoint& point) {
    const auto [place, is_new] = index_.try_emplace(name, file_.tags.size());
    if (is_new) file_.tags.push_back({name, {}, false});
    ScalarTag& tag = file_.tags[place->second];
    tag.points.push_back(point);
    tag.simple = tag.simple || point.simple;
  }

  static void drop_from(int64_t step, ScalarTag* tag) {
    std::erase_if(tag->points, [step](const ScalarPoint& point) { return point.step >= step; });
  }

  void purge(const Event& event) {
    if (version_ >= 2) {
      if (!event.start) return;
      for (ScalarTag& tag : file_.tags) drop_from(event.step, &tag);
    } else if (event.step < latest_ && event.has_summary) {
      for (const Value& value : event.values) {
        if (const auto found = index_.find(value.tag); found != index_.end()) {
          drop_from(event.step, &file_.tags[found->second]);
        }
      }
    } else {
      latest_ = event.step;
    }
  }

  EventFile& file_;
  double version_ = 0;
  int64_t latest_ = -1;
  std::map<std::string, size_t> index_;
  std::set<std::string> known_;    // tags whose metadata was seen: the first one counts
  std::set<std::string> scalars_;  // those whose tensors are scalars
};

}  // namespace

EventFile read_events(std::string_view bytes, const std::string& path) {
  EventFile file;
  file.path = path;
  Accumulator accumulator(&file);
  RecordReader reader(bytes);
  while (true) {
    switch (reader.next()) {
      case RecordReader::State::kEnd:
        return file;
      case RecordReader::State::kTorn:
        file.torn = fmt::format("{}: {}; it is left out", path, reader.problem());
        return file;
      case RecordReader::State::kCorrupt:
        file.corrupt = invalid(fmt::format("{}: {}; the file is damaged, train again", path, reader.problem()));
        return file;
      case RecordReader::State::kRecord:
        break;
    }
    Event event;
    if (!read_event(reader.data(), &event)) {
      file.corrupt =
          invalid(fmt::format("{}: the record at byte {} is no TensorBoard event; the file is damaged, or "
                              "no event file",
                              path, reader.offset()));
      return file;
    }
    accumulator.take(event);
  }
}

Result<EventFile> read_event_file(const std::string& path) {
  const Result<std::string> bytes = read_file(path);
  if (!bytes) return bytes.status();
  return read_events(*bytes, path);
}

}  // namespace assay::train
