#include "core/golden/fast_read.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/golden/fast_scan.h"
#include "core/golden/raw_json.h"
#include "core/golden/result_fields.h"

namespace assay::json {
namespace {

// Functions return false to give up. Lists are gathered in scratch and copied once, so that they take what they need.
class FastReader {
 public:
  explicit FastReader(std::string_view text) : scan_(text) {}

  bool read() {
    std::string key;
    return scan_.object(key, [this](std::string& name) { return top_member(name); }) && scan_.at_end();
  }

  ResultSet take() { return std::move(set_); }

 private:
  bool top_member(const std::string& name) {
    if (!names_.insert(name).second) return false;
    const char first = scan_.peek();
    if (first == '{' && name == "assay") {
      raw_.reset();
      if (!raw_value()) return false;
      set_.extra = raw_.take();
      return true;
    }
    if (first == '{') return request(name);
    return may_be_quantity(name) && quantity(name, first);
  }

  bool quantity(const std::string& name, char first) {
    Quantity quantity{name, {}, first != '['};
    if (first == '[') {
      if (!doubles(quantity.values)) return false;
    } else {
      double value = 0;
      if (!scan_.number(value)) return false;
      quantity.values.push_back(value);
    }
    set_.quantities.push_back(std::move(quantity));
    return true;
  }

  bool request(const std::string& id) {
    record_ = &set_.requests.emplace_back();
    record_->id = id;
    seen_ = 0;
    positions_.reset();
    margin_rows_.reset();
    if (!scan_.object(field_name_, [this](std::string& name) { return member(name); })) return false;
    return join_routing();
  }

  bool member(const std::string& name) {
    const Field field = field_of(name);
    if (field == Field::kExtra) return extra(name);
    const uint32_t bit = 1U << static_cast<uint32_t>(field);
    if ((seen_ & bit) != 0) return false;
    seen_ |= bit;
    if (scan_.peek() == 'n') return scan_.word("null");
    switch (type_of(field)) {
      case Type::kString:
        return scan_.string((field == Field::kPrompt ? record_->prompt : record_->text).emplace());
      case Type::kDouble:
        return scan_.number(record_->latency.emplace());
      case Type::kInts:
        return ints(ints_of(field).emplace());
      case Type::kDoubles:
        return doubles(doubles_of(field).emplace());
      case Type::kTopLists:
        return lists((field == Field::kTopN ? record_->top_n : record_->prompt_top_n).emplace());
      case Type::kRouting:
        return routing(record_->routing.emplace());
      case Type::kMargins:
        return margins();
    }
    return false;
  }

  std::optional<std::vector<int32_t>>& ints_of(Field field) {
    if (field == Field::kPositions) return positions_;
    return field == Field::kTokens ? record_->tokens : record_->prompt_ids;
  }

  std::optional<std::vector<double>>& doubles_of(Field field) {
    switch (field) {
      case Field::kLogprobs:
        return record_->logprobs;
      case Field::kPromptLogprobs:
        return record_->prompt_logprobs;
      case Field::kGeneratedLogprobs:
        return record_->generated_logprobs;
      default:
        return record_->tpot;
    }
  }

  bool ints(std::vector<int32_t>& values) {
    ids_.clear();
    const bool read = scan_.list([this] {
      int64_t value = 0;
      if (!scan_.integer(value) || value != static_cast<int32_t>(value)) return false;
      ids_.push_back(static_cast<int32_t>(value));
      return true;
    });
    values = ids_;
    return read;
  }

  bool doubles(std::vector<double>& values) {
    doubles_.clear();
    const bool read = scan_.list([this] { return scan_.number(doubles_.emplace_back()); });
    values = doubles_;
    return read;
  }

  bool lists(TopLists& lists) {
    return scan_.list([&] {
      const size_t first = lists.entries.size();
      if (scan_.peek() == 'n') {
        if (!scan_.word("null")) return false;
      } else if (!scan_.object(token_, [&](const std::string& token) { return entry(lists, first, token); })) {
        return false;
      }
      lists.counts.push_back(static_cast<uint32_t>(lists.entries.size() - first));
      return true;
    });
  }

  // One token of the position whose entries begin at `first`. Equal texts are left to the other reader.
  bool entry(TopLists& lists, size_t first, const std::string& token) {
    const auto same = [&](const TopEntry& other) { return other.text == token; };
    if (std::any_of(lists.entries.begin() + static_cast<ptrdiff_t>(first), lists.entries.end(), same)) return false;
    return scan_.number(lists.entries.emplace_back(TopEntry{token, 0}).logprob);
  }

  // (tokens, layers, topk), every token and layer of one shape that is not empty.
  bool routing(Routing& routing) {
    experts_.clear();
    const bool read = scan_.list([&] {
      size_t layers = 0;
      const bool row = scan_.list([&] {
        const size_t before = experts_.size();
        if (!scan_.list([this] { return expert(); })) return false;
        const size_t topk = experts_.size() - before;
        if (before == 0) routing.topk = topk;
        ++layers;
        return topk == routing.topk && topk > 0;
      });
      if (routing.tokens++ == 0) routing.layers = layers;
      return row && layers == routing.layers && layers > 0;
    });
    routing.experts = experts_;
    return read;
  }

  bool expert() {
    int64_t value = 0;
    if (!scan_.integer(value) || value < 0 || value > std::numeric_limits<uint16_t>::max()) return false;
    experts_.push_back(static_cast<uint16_t>(value));
    return true;
  }

  bool margins() {
    margins_.clear();
    margin_rows_ = 0;
    return scan_.list([this] {
      const size_t before = margins_.size();
      const bool row = scan_.list([this] {
        double value = 0;
        if (!scan_.number(value)) return false;
        margins_.push_back(static_cast<float>(value));
        return true;
      });
      if ((*margin_rows_)++ == 0) margin_row_size_ = margins_.size();
      return row && margins_.size() - before == margin_row_size_;
    });
  }

  // Positions and margins belong to the routing, wherever the three stand in the request.
  bool join_routing() {
    if (margin_rows_ && !record_->routing) return false;
    if (!record_->routing) return true;
    Routing& routing = *record_->routing;
    if (positions_ && positions_->size() != routing.tokens) return false;
    if (positions_) routing.positions = *std::move(positions_);
    if (!margin_rows_) return true;
    if (*margin_rows_ != routing.tokens || (routing.tokens > 0 && margin_row_size_ != routing.layers)) return false;
    routing.margins = margins_;
    return true;
  }

  bool extra(const std::string& name) {
    const auto same = [&](const auto& entry) { return entry.first == name; };
    if (std::any_of(record_->extra.begin(), record_->extra.end(), same)) return false;
    raw_.reset();
    if (!raw_value()) return false;
    record_->extra.emplace_back(name, raw_.take());
    return true;
  }

  // Any value but NaN and infinities, fed to raw_.
  bool raw_value() {
    switch (scan_.peek()) {
      case '{': {
        std::string key;
        if (!raw_.start('{')) return false;
        const bool read = scan_.object(key, [this](const std::string& name) {
          raw_.key(name);
          return raw_value();
        });
        raw_.end();
        return read;
      }
      case '[': {
        if (!raw_.start('[')) return false;
        const bool read = scan_.list([this] { return raw_value(); });
        raw_.end();
        return read;
      }
      case '"':
        if (!scan_.string(text_)) return false;
        raw_.string(text_);
        return true;
      case 'n':
        return raw_word("null");
      case 't':
        return raw_word("true");
      case 'f':
        return raw_word("false");
      default:
        if (!scan_.number_text(text_)) return false;
        raw_.scalar(text_);
        return true;
    }
  }

  bool raw_word(std::string_view word) {
    raw_.scalar(word);
    return scan_.word(word);
  }

  Scanner scan_;
  ResultSet set_;
  std::unordered_set<std::string> names_;  // of the top level
  RequestRecord* record_ = nullptr;        // the request being read
  uint32_t seen_ = 0;                      // bit per Field met in it
  std::optional<std::vector<int32_t>> positions_;
  std::optional<size_t> margin_rows_;
  size_t margin_row_size_ = 0;
  RawJson raw_;

  // Scratch.
  std::string field_name_;
  std::string token_;
  std::string text_;
  std::vector<int32_t> ids_;
  std::vector<double> doubles_;
  std::vector<uint16_t> experts_;
  std::vector<float> margins_;
};

}  // namespace

std::optional<ResultSet> read_fast(std::string_view document) {
  const size_t last = document.find_last_not_of(" \t\r\n");
  if (last == std::string_view::npos || document[last] != '}') return std::nullopt;
  FastReader reader(document.substr(0, last + 1));
  if (!reader.read()) return std::nullopt;
  return reader.take();
}

}  // namespace assay::json
