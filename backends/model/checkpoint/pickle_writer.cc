#include "backends/model/checkpoint/pickle_writer.h"

#include <bit>

namespace assay::model {

void PickleWriter::number(uint64_t value, size_t size) {
  for (size_t i = 0; i < size; ++i) out_ += static_cast<char>(value >> (8 * i));
}

void PickleWriter::integer(int64_t value) {
  if (value >= 0 && value < 0x100) {
    out_ += 'K';
    number(static_cast<uint64_t>(value), 1);
  } else if (value >= 0 && value < 0x10000) {
    out_ += 'M';
    number(static_cast<uint64_t>(value), 2);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    out_ += 'J';
    number(static_cast<uint64_t>(value), 4);
  } else {
    out_ += "\x8a\x08";
    number(static_cast<uint64_t>(value), 8);
  }
}

void PickleWriter::real(double value) {
  out_ += 'G';
  number(__builtin_bswap64(std::bit_cast<uint64_t>(value)), 8);
}

// Writes a reference to what was memoised as `key`, or false after reserving the next slot for it.
bool PickleWriter::recall(const std::string& key) {
  const auto [entry, added] = memo_.try_emplace(key, static_cast<uint32_t>(memo_.size()));
  if (!added) {
    out_ += 'j';
    number(entry->second, 4);
  }
  return !added;
}

void PickleWriter::text(std::string_view value) {
  std::string key("t");
  if (recall(key.append(value))) return;
  out_ += 'X';
  number(value.size(), 4);
  out_ += value;
  out_ += 'r';
  number(memo_.size() - 1, 4);
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  std::string symbol("c");  // the opcode, which keeps it apart from texts in the memo
  symbol.append(module).append("\n").append(name).append("\n");
  if (recall(symbol)) return;
  out_ += symbol;
  out_ += 'r';
  number(memo_.size() - 1, 4);
}

void PickleWriter::ints(const std::vector<int64_t>& values) {
  if (values.empty()) return empty_tuple();
  mark();
  for (int64_t value : values) integer(value);
  tuple();
}

void PickleWriter::value(const ArgValue& value) {
  struct Visitor {
    PickleWriter& out;
    void operator()(std::monostate) const { out.none(); }
    void operator()(bool v) const { out.boolean(v); }
    void operator()(int64_t v) const { out.integer(v); }
    void operator()(double v) const { out.real(v); }
    void operator()(const std::string& v) const { out.text(v); }
    void operator()(const Opaque& v) const {
      const size_t dot = v.text.rfind('.');
      if (dot == std::string::npos) return out.none();
      out.global(std::string_view(v.text).substr(0, dot), std::string_view(v.text).substr(dot + 1));
    }
    void operator()(const ArgList& v) const {
      out.empty_list();
      out.mark();
      for (const ArgValue& item : v) out.value(item);
      out.appends();
    }
  };
  std::visit(Visitor{*this}, value.value);
}

std::string PickleWriter::finish() {
  out_ += '.';
  return std::move(out_);
}

}  // namespace assay::model
