#include "backends/model/tokenizer/tik_vocab.h"

#include <fstream>
#include <sstream>

#include "backends/model/tokenizer/json_events.h"
#include "backends/model/tokenizer/utf8.h"

namespace assay::model {
namespace {

constexpr int64_t kSingleBytes = 256;

// Collects entries while the JSON parser reports its events. Depth 1 is the list, 2 an entry.
class VocabReader final : public JsonEvents {
 public:
  explicit VocabReader(int64_t count) : count_(count) {}

  std::vector<std::string> take() { return std::move(tokens_); }
  int64_t entries() const { return entry_; }

 private:
  bool wanted() const { return entry_ < count_; }
  std::string where() const { return "entry " + std::to_string(entry_); }

  bool on_scalar(const Scalar& value) override {
    if (depth() == 0) return fail("a single value, expected a list of {rank, token_bytes, token_str}");
    if (!wanted()) return next_if_entry();
    if (depth() == 1) return fail(where() + " is not an object, expected {rank, token_bytes, token_str}");
    if (depth() > 2 || field_ == kTokenStr) return true;
    if (field_ == kRank) {
      const auto* rank = std::get_if<int64_t>(&value);
      if (rank == nullptr) return fail(where() + ": rank is not an integer, expected " + std::to_string(entry_));
      rank_ = *rank;
      return true;
    }
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr) return fail(where() + ": token_bytes is not a string, expected base64");
    std::optional<std::string> bytes = decode_base64(*text);
    if (!bytes) {
      return fail("rank " + std::to_string(entry_) + ": token_bytes " + utf8::quote(*text) + " is not base64");
    }
    bytes_ = *std::move(bytes);
    return true;
  }

  bool on_begin(bool is_object) override {
    if (depth() == 0 && is_object) return fail("an object, expected a list of {rank, token_bytes, token_str}");
    if (!wanted() || depth() == 0) return true;
    if (depth() == 1 && !is_object) {
      return fail(where() + " is a list, expected an object {rank, token_bytes, token_str}");
    }
    if (depth() == 1) seen_ = 0;
    if (depth() == 2 && field_ != kTokenStr) return fail(where() + ": rank or token_bytes is not a plain value");
    return true;
  }

  bool on_key(const std::string& key) override {
    if (!wanted() || depth() != 2) return true;
    field_ = key == "rank" ? kRank : key == "token_bytes" ? kTokenBytes : key == "token_str" ? kTokenStr : kNoField;
    if (field_ == kNoField)
      return fail(where() + ": unknown key " + utf8::quote(key) + ", expected rank, token_bytes, token_str");
    if (seen_ & field_) return fail(where() + ": key " + utf8::quote(key) + " is there twice");
    seen_ |= field_;
    return true;
  }

  bool on_end() override {
    if (depth() != 1) return true;
    if (wanted() && !add_entry()) return false;
    ++entry_;
    return true;
  }

  bool next_if_entry() {
    if (depth() == 1) ++entry_;
    return true;
  }

  bool check_rank() {
    if (rank_ == entry_) return true;
    const std::string expected = ", expected rank " + std::to_string(entry_) + " there";
    if (rank_ >= 0 && rank_ < entry_) {
      return fail(where() + ": rank " + std::to_string(rank_) + " a second time" + expected);
    }
    return fail(where() + ": rank " + std::to_string(rank_) + expected + " (missing or out of order)");
  }

  bool add_entry() {
    if (seen_ != (kRank | kTokenBytes | kTokenStr)) {
      return fail(where() + ": a key is missing, expected rank, token_bytes and token_str");
    }
    if (!check_rank()) return false;
    const std::string rank = "rank " + std::to_string(entry_);
    if (entry_ < kSingleBytes && bytes_ != std::string(1, static_cast<char>(entry_))) {
      return fail(rank + ": expected the single byte " + std::to_string(entry_) +
                  "; the first 256 ranks are the bytes");
    }
    if (bytes_.empty()) return fail(rank + ": token_bytes is empty, expected at least one byte");
    tokens_.push_back(std::move(bytes_));
    return true;
  }

  enum Field : uint32_t { kNoField = 0, kRank = 1, kTokenBytes = 2, kTokenStr = 4 };

  int64_t count_;
  int64_t entry_ = 0;  // index of the entry that is read
  Field field_ = kNoField;
  uint32_t seen_ = 0;  // bits of Field
  int64_t rank_ = 0;
  std::string bytes_;
  std::vector<std::string> tokens_;
};

Result<std::string> read_file(const std::filesystem::path& file) {
  std::error_code error;
  if (file.empty()) return invalid("--tokenizer-model is not set, expected a vocabulary file");
  if (!std::filesystem::exists(file, error)) return not_found("file not found; check --tokenizer-model");
  if (std::filesystem::is_directory(file, error)) return invalid("is a directory, expected a vocabulary file");
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (in && in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  if (in.bad() || !text || !in.is_open()) return infra("cannot be read");
  return std::move(text).str();
}

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_padding = i >= text.size() - padding;
    const int value = is_padding ? 0 : base64_value(text[i]);
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if (i % 4 != 3) continue;
    for (int shift = 16; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(bits >> shift & 0xFF));
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

Result<BytePairTable> read_tik_vocab(const std::filesystem::path& file, int64_t count) {
  const std::string name = "vocabulary " + file.string();
  if (count < kSingleBytes) {
    return invalid(name + ": --vocab-size leaves " + std::to_string(count) +
                   " entries after the special tokens, expected at least the 256 single bytes");
  }
  const Result<std::string> text = read_file(file);
  if (!text) return text.status().with(name);
  VocabReader reader(count);
  if (const Status status = reader.parse(*text); !status.ok()) return status.with(name);
  if (reader.entries() < count) {
    return invalid(name + ": " + std::to_string(reader.entries()) + " entries, rank " +
                   std::to_string(reader.entries()) + " is missing, expected at least " + std::to_string(count) +
                   " (--vocab-size without the special tokens); lower --vocab-size or use the vocabulary made for it");
  }
  Result<BytePairTable> table = BytePairTable::make(reader.take());
  return table ? std::move(table) : table.status().with(name);
}

}  // namespace assay::model
