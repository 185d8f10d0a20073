#include "core/discover/yaml_simple.h"

#include <algorithm>
#include <array>

namespace assay::discover {
namespace {

constexpr size_t kMostBytes = 64 << 10;
constexpr size_t kDeepest = 8;
constexpr size_t kLongestKey = 500;

constexpr auto char_set(std::string_view chars) {
  std::array<bool, 256> set{};
  for (const char c : chars) set[static_cast<unsigned char>(c)] = true;
  for (size_t c = '0'; c <= '9'; ++c) set[c] = true;
  for (size_t c = 'A'; c <= 'Z'; ++c) set[c] = set[c + ('a' - 'A')] = true;
  return set;
}
constexpr auto kKeyChars = char_set("_-./");
constexpr auto kPlainStart = char_set("_/.$(~+");  // and - or : before a character that is no blank
bool in(const std::array<bool, 256>& set, char c) { return set[static_cast<unsigned char>(c)]; }

// A line that is neither blank nor a comment.
struct Line {
  std::string_view text;  // without indentation
  int number = 0;
  int indent = 0;
};

class SimpleReader {
 public:
  SimpleReader(std::string_view text, YamlTree& tree) : rest_(text), tree_(tree) { advance(); }

  bool read() {
    if (done_ || line_.indent != 0) return false;
    const YamlNode* root = nullptr;
    if (!read_map(0, root) || !done_) return false;
    tree_.root = root;
    return true;
  }

 private:
  void advance() {
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      std::string_view text = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      const size_t indent = std::min(text.find_first_not_of(' '), text.size());
      if (indent == text.size() || text[indent] == '#') continue;
      line_ = {text.substr(indent), number_, static_cast<int>(indent)};
      return;
    }
    done_ = true;
  }

  YamlNode& make(YamlNode::Kind kind, int line, int column) {
    YamlNode& node = tree_.nodes.emplace_back();
    node.kind = kind;
    node.line = line;
    node.column = column;
    return node;
  }

  bool read_map(size_t depth, const YamlNode*& out) {
    if (depth > kDeepest) return false;
    const int indent = line_.indent;
    YamlNode& map = make(YamlNode::Kind::kMap, line_.number, indent + 1);
    std::vector<std::string_view> keys;
    while (!done_ && line_.indent == indent) {
      const std::string_view text = line_.text;
      size_t colon = 0;
      while (colon < text.size() && in(kKeyChars, text[colon])) ++colon;
      const bool dash = text.starts_with("- ") || text == "-" || text.starts_with("---");
      if (colon == 0 || colon > kLongestKey || dash || text[0] == '.' || colon >= text.size() || text[colon] != ':')
        return false;
      keys.push_back(text.substr(0, colon));
      map.entries.push_back({std::string(keys.back()), nullptr, line_.number, indent + 1});
      const size_t at = text.find_first_not_of(' ', colon + 1);
      const YamlNode* value = nullptr;
      if (at == std::string_view::npos || (text[at] == '#' && at > colon + 1)) {
        advance();
        if (done_ || !read_block(depth, indent, value)) return false;
      } else {
        if (at == colon + 1 || !read_scalar(at, value)) return false;
        advance();
        if (!done_ && line_.indent > indent) return false;
      }
      map.entries.back().value = value;
    }
    std::sort(keys.begin(), keys.end());
    out = &map;
    return std::adjacent_find(keys.begin(), keys.end()) == keys.end() && (done_ || line_.indent < indent);
  }

  // What stands below a key at `indent` without a value of its own: a deeper mapping or a list.
  bool read_block(size_t depth, int indent, const YamlNode*& out) {
    if (line_.text.starts_with("- ")) return line_.indent >= indent && read_list(indent, out);
    return line_.indent > indent && read_map(depth + 1, out);
  }

  bool read_list(int parent_indent, const YamlNode*& out) {
    const int indent = line_.indent;
    YamlNode& list = make(YamlNode::Kind::kSequence, line_.number, indent + 1);
    while (!done_ && line_.indent == indent && line_.text.starts_with("- ")) {
      const size_t at = line_.text.find_first_not_of(' ', 1);
      const YamlNode* item = nullptr;
      if (at == std::string_view::npos || !read_scalar(at, item)) return false;
      list.items.push_back(item);
      advance();
    }
    out = &list;
    return done_ || line_.indent < indent || (line_.indent == indent && indent == parent_indent);
  }

  // The scalar at `at` of the line, which must fill its rest, a comment aside.
  bool read_scalar(size_t at, const YamlNode*& out) {
    const std::string_view text = line_.text;
    const char first = text[at];
    std::string_view value;
    if (first == '"' || first == '\'') {
      const size_t end = text.find(first, at + 1);
      if (end == std::string_view::npos || !is_rest_empty(end + 1)) return false;
      value = text.substr(at + 1, end - at - 1);
      if (first == '"' && value.find('\\') != std::string_view::npos) return false;
    } else {
      const char next = at + 1 < text.size() ? text[at + 1] : ' ';
      if (!in(kPlainStart, first) && !((first == '-' || first == ':') && next != ' ')) return false;
      value = text.substr(at);
      if (const size_t comment = value.find(" #"); comment != std::string_view::npos) value = value.substr(0, comment);
      value = value.substr(0, value.find_last_not_of(' ') + 1);
      if (value.find(": ") != std::string_view::npos || value.ends_with(':')) return false;
    }
    YamlNode& node = make(YamlNode::Kind::kScalar, line_.number, line_.indent + static_cast<int>(at) + 1);
    node.plain = first != '"' && first != '\'';
    if (!node.plain) node.quote = first;
    node.text = value;
    out = &node;
    return true;
  }

  bool is_rest_empty(size_t at) const {
    const size_t next = line_.text.find_first_not_of(' ', at);
    return next == std::string_view::npos || (line_.text[next] == '#' && next > at);
  }

  std::string_view rest_;
  YamlTree& tree_;
  Line line_;
  int number_ = 0;
  bool done_ = false;
};

}  // namespace

bool read_simple_yaml(std::string_view text, YamlTree& tree) {
  if (text.size() > kMostBytes || text.find('\t') != std::string_view::npos) return false;
  return SimpleReader(text, tree).read();
}

}  // namespace assay::discover
