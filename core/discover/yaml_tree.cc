#include "core/discover/yaml_tree.h"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <streambuf>
#include <unordered_map>

#include "core/discover/yaml_simple.h"
#include "core/discover/yaml_text.h"

namespace assay::discover {
namespace {

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

struct Refusal {
  YAML::Mark mark;
  std::string what;
};

bool is_null_word(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

// A node with what its aliases cost.
struct Built {
  YamlNode* node = nullptr;
  size_t size = 1;   // expanded nodes, itself included
  size_t depth = 1;  // levels below and including itself
  bool open = false;
  size_t bytes = 0;  // of its scalars, expanded
};

using RawEntry = YamlWritten;

struct Frame {
  Built built;
  YAML::anchor_t anchor = YAML::NullAnchor;
  bool flow = false;              // written with brackets
  std::vector<RawEntry> entries;  // of a map
  bool key_waits = false;         // a key has come, its value has not
  int key_at = -1;                // position of that key in the text
};

class Builder : public YAML::EventHandler {
 public:
  Builder(std::string_view text, const YamlLimits& limits, YamlTree& tree)
      : text_(text), limits_(limits), tree_(tree) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) throw Refusal{mark, "a second document begins here: one document a file"};
  }
  void OnDocumentEnd() override { settle_null(-1); }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // A value that is missing together with its colon carries the mark of its key: {a} may, at the end of a file, not.
    const bool keyless = !stack_.empty() && stack_.back().key_waits && mark.pos == stack_.back().key_at;
    const std::string word(keyless ? std::string_view() : null_word_at(mark));
    if (keyless && !stack_.back().flow) {
      throw Refusal{mark, "'" + stack_.back().entries.back().entry.key + "' has no colon behind it"};
    }
    if (word.empty() && entry_expected()) throw Refusal{mark, "a key or an entry is missing here"};
    waiting_null_ = scalar(mark, anchor, word, true);
    waiting_null_at_ = mark.pos;
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag, {"str", "int", "float", "bool", "null"});
    if (tag != "?") check_closed(mark);
    YamlNode* node = scalar(mark, anchor, value, tag != "!" && tag != std::string(kTagPrefix) + "str");
    if (const size_t at = behind_properties(mark); tag != "?" && quote_at(at)) node->quote = text_[at];
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    settle_null(mark.pos);
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refusal{mark, "alias of an unknown anchor"};
    if (found->second.open) throw Refusal{mark, "alias of a node that contains it: cycles are refused"};
    add(mark, found->second);
    if (!stack_.empty() && !stack_.back().entries.empty()) stack_.back().entries.back().alias = true;
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    check_tag(mark, tag, {"seq"});
    open(mark, anchor, YamlNode::Kind::kSequence, style);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    check_tag(mark, tag, {"map"});
    open(mark, anchor, YamlNode::Kind::kMap, style);
  }
  void OnMapEnd() override {
    resolve(stack_.back());
    close();
  }

 private:
  YamlNode* make(const YAML::Mark& mark, YamlNode::Kind kind) {
    YamlNode& node = tree_.nodes.emplace_back();
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return &node;
  }

  YamlNode* scalar(const YAML::Mark& mark, YAML::anchor_t anchor, std::string value, bool plain) {
    settle_null(mark.pos);
    YamlNode* node = make(mark, YamlNode::Kind::kScalar);
    node->text = std::move(value);
    node->plain = plain;
    const Built built{.node = node, .bytes = node->text.size()};
    if (anchor != YAML::NullAnchor) anchors_[anchor] = built;
    add(mark, built);
    return node;
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode::Kind kind, YAML::EmitterStyle::value style) {
    settle_null(mark.pos);
    if (stack_.size() >= limits_.depth) throw Refusal{mark, "nested deeper than " + std::to_string(limits_.depth)};
    if (!stack_.empty() && stack_.back().built.node->kind == YamlNode::Kind::kMap && !stack_.back().key_waits) {
      throw Refusal{mark, "a mapping key must be a scalar (or a bracket before this is never closed)"};
    }
    Frame frame{
        .built = {make(mark, kind)}, .anchor = anchor, .flow = style == YAML::EmitterStyle::Flow, .entries = {}};
    frame.built.open = true;
    frame.built.node->flow = frame.flow;
    if (anchor != YAML::NullAnchor) anchors_[anchor] = frame.built;
    stack_.push_back(std::move(frame));
  }

  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    frame.built.open = false;
    if (frame.anchor != YAML::NullAnchor) anchors_[frame.anchor] = frame.built;
    open_bytes_ -= frame.built.bytes;
    const YamlNode& node = *frame.built.node;
    add(YAML::Mark{}, frame.built, &node);
  }

  // Hands a finished node to its parent.
  void add(const YAML::Mark& mark, const Built& built, const YamlNode* at = nullptr) {
    YAML::Mark where = mark;
    if (at != nullptr) {
      where.line = at->line - 1;
      where.column = at->column - 1;
    }
    if (stack_.empty()) {
      tree_.root = built.node;
      return;
    }
    Built& parent = stack_.back().built;
    parent.size += built.size;
    parent.depth = std::max(parent.depth, built.depth + 1);
    parent.bytes += built.bytes;
    open_bytes_ += built.bytes;
    if (open_bytes_ > limits_.expanded_bytes) {
      throw Refusal{where, "more than " + std::to_string(limits_.expanded_bytes) +
                               " bytes of text once aliases are expanded: write long values once"};
    }
    if (parent.size > limits_.expanded_nodes) {
      throw Refusal{where, "more than " + std::to_string(limits_.expanded_nodes) + " nodes once aliases are expanded"};
    }
    if (stack_.size() + built.depth > limits_.depth) {
      throw Refusal{where, "nested deeper than " + std::to_string(limits_.depth)};
    }
    if (parent.node->kind == YamlNode::Kind::kSequence) {
      parent.node->items.push_back(built.node);
    } else {
      add_to_map(where, stack_.back(), built);
    }
  }

  static void add_to_map(const YAML::Mark& where, Frame& frame, const Built& built) {
    if (frame.key_waits) {
      frame.entries.back().entry.value = built.node;
    } else {
      if (!built.node->is_scalar())
        throw Refusal{where, "a mapping key must be a scalar (or a bracket before this is never closed)"};
      const YamlEntry entry{built.node->text, nullptr, where.line + 1, where.column + 1};
      frame.entries.push_back({entry, built.node->plain && entry.key == "<<"});
      frame.key_at = where.pos;
    }
    frame.key_waits = !frame.key_waits;
  }

  // Pairs of `<<` come before own pairs; of equal keys the first gives the position and the last the value.
  void resolve(Frame& frame) {
    YamlNode& map = *frame.built.node;
    std::unordered_map<std::string_view, size_t> seen;
    seen.reserve(frame.entries.size());
    std::vector<bool> own_keys;
    const auto put = [&](const YamlEntry& entry, bool own) {
      const auto [at, fresh] = seen.try_emplace(entry.key, map.entries.size());
      if (fresh) {
        map.entries.push_back(entry);
        own_keys.push_back(own);
        return;
      }
      YamlEntry& known = map.entries[at->second];
      if (own && own_keys[at->second]) tree_.duplicates.push_back({entry.key, entry.line, known.line});
      if (own) own_keys[at->second] = true;
      known.value = entry.value;
      known.line = entry.line;
      known.column = entry.column;
    };
    map.entries.reserve(frame.entries.size() + merged_count(frame));
    for (const RawEntry& raw : frame.entries) {
      if (raw.merge) merge(raw.entry, put);
    }
    for (const RawEntry& raw : frame.entries) {
      if (!raw.merge) put(raw.entry, true);
    }
    const bool plain =
        map.entries.size() == frame.entries.size() &&
        std::none_of(frame.entries.begin(), frame.entries.end(), [](const RawEntry& raw) { return raw.merge; });
    if (!plain) map.written = std::move(frame.entries);
  }

  static size_t merged_count(const Frame& frame) {
    size_t count = 0;
    for (const RawEntry& raw : frame.entries) {
      if (!raw.merge) continue;
      count += raw.entry.value->entries.size();
      for (const YamlNode* item : raw.entry.value->items) count += item->entries.size();
    }
    return count;
  }

  template <class Put>
  static void merge(const YamlEntry& entry, const Put& put) {
    const YamlNode& value = *entry.value;
    const auto refuse = [&](const YamlNode& node) {
      YAML::Mark mark;
      mark.line = node.line - 1;
      mark.column = node.column - 1;
      return Refusal{mark, "`<<` needs a mapping or a list of mappings"};
    };
    if (value.is_scalar()) throw refuse(value);
    for (auto item = value.items.rbegin(); item != value.items.rend(); ++item) {
      if ((*item)->kind != YamlNode::Kind::kMap) throw refuse(**item);
      for (const YamlEntry& merged : (*item)->entries) put(merged, false);
    }
    for (const YamlEntry& merged : value.entries) put(merged, false);
  }

  static void check_tag(const YAML::Mark& mark, const std::string& tag, std::initializer_list<const char*> known) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    for (const char* name : known) {
      if (tag.starts_with(kTagPrefix) && tag.substr(kTagPrefix.size()) == name) return;
    }
    throw Refusal{mark, "tag '" + tag + "' is not supported"};
  }

  // Position behind the quoted scalar that opens at `at`; npos when nothing closes it.
  size_t behind_quote(size_t at) const {
    const char quote = text_[at++];
    for (; at < text_.size(); ++at) {
      if (quote == '"' && text_[at] == '\\') {
        ++at;
      } else if (text_[at] == quote) {
        if (quote == '"' || at + 1 >= text_.size() || text_[at + 1] != quote) return at + 1;
        ++at;
      }
    }
    return std::string_view::npos;
  }
  bool quote_at(size_t at) const { return at < text_.size() && (text_[at] == '"' || text_[at] == '\''); }

  // Where the node at `mark` begins, behind its anchor and its tag.
  size_t behind_properties(const YAML::Mark& mark) const {
    size_t at = static_cast<size_t>(std::max(mark.pos, 0));
    while (at < text_.size() && (text_[at] == '&' || text_[at] == '!')) {
      at = text_.find_first_of(" \t\n", at);
      if (at != std::string_view::npos) at = text_.find_first_not_of(" \t\n", at);
    }
    return at;
  }

  // The scanner takes the end of the file for the end of a quoted scalar.
  void check_closed(const YAML::Mark& mark) const {
    const size_t at = behind_properties(mark);
    if (!quote_at(at) || behind_quote(at) != std::string_view::npos) return;
    throw Refusal{mark, std::string("the quote ") + text_[at] + " opened here is never closed"};
  }

  // Empty entries of flow lists and empty keys: the scanner lets them pass.
  bool entry_expected() const {
    if (stack_.empty() || stack_.back().key_waits) return false;
    return stack_.back().flow || stack_.back().built.node->kind == YamlNode::Kind::kMap;
  }

  // The parser reports `null` and an empty value alike; the text at the mark tells them apart, unless the mark is that
  // of the node which follows an empty value.
  std::string_view null_word_at(const YAML::Mark& mark) const {
    if (mark.pos < 0 || static_cast<size_t>(mark.pos) >= text_.size()) return {};
    const std::string_view rest = text_.substr(static_cast<size_t>(mark.pos), 5);
    for (const std::string_view word : {"null", "Null", "NULL", "~"}) {
      if (!rest.starts_with(word)) continue;
      if (rest.size() == word.size() ||
          std::string_view(" \t\n,]}:").find(rest[word.size()]) != std::string_view::npos) {
        return word;
      }
    }
    return {};
  }
  void settle_null(int next_pos) {
    if (waiting_null_ != nullptr && waiting_null_at_ == next_pos) waiting_null_->text.clear();
    waiting_null_ = nullptr;
  }

  std::string_view text_;
  const YamlLimits& limits_;
  YamlTree& tree_;
  std::vector<Frame> stack_;
  size_t open_bytes_ = 0;  // of all frames of the stack
  std::unordered_map<YAML::anchor_t, Built> anchors_;
  YamlNode* waiting_null_ = nullptr;
  int waiting_null_at_ = -1;
  int documents_ = 0;
};

// An istream over memory that is not copied.
class MemoryBuffer : public std::streambuf {
 public:
  explicit MemoryBuffer(std::string& text) { setg(text.data(), text.data(), text.data() + text.size()); }
};

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

bool YamlNode::is_null() const { return is_scalar() && plain && is_null_word(text); }

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return entry.value;
  }
  return nullptr;
}

Result<YamlTree> parse_yaml(std::string text, const std::string& file, const YamlLimits& limits) {
  if (text.size() > limits.bytes) {
    return invalid(file + ": " + std::to_string(text.size()) + " bytes; a config has at most " +
                   std::to_string(limits.bytes));
  }
  if (Status prepared = prepare_yaml_text(text, file); !prepared.ok()) return prepared;
  YamlTree tree;
  if (limits.simple_first && read_simple_yaml(text, tree)) return tree;
  tree = {};
  const auto fail = [&](const YAML::Mark& mark, const std::string& what) {
    return invalid(at_place(file, mark.line + 1, mark.column + 1) + one_line(what));
  };
  try {
    MemoryBuffer buffer(text);
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    Builder builder(text, limits, tree);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refusal& refusal) {
    return fail(refusal.mark, refusal.what);
  } catch (const YAML::Exception& error) {
    return fail(error.mark, error.msg);
  } catch (const std::exception& error) {
    return invalid(file + ": " + one_line(error.what()));
  }
  return tree;
}

}  // namespace assay::discover
