#include "core/run/filter.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace assay::run {

struct Filter::Node {
  enum class Kind { kAnd, kOr, kNot, kMatch } kind = Kind::kMatch;
  std::shared_ptr<const Node> left;
  std::shared_ptr<const Node> right;
  std::string key;
  std::string glob;
};

namespace {

using NodePtr = std::shared_ptr<const Filter::Node>;
using Kind = Filter::Node::Kind;

constexpr std::array<std::string_view, 6> kKeys = {"name", "metric", "engine", "tag", "model", "mode"};
constexpr int kMaxDepth = 200;

struct Token {
  enum class Kind { kEnd, kOpen, kClose, kWord } kind = Kind::kEnd;
  std::string text;
  size_t column = 1;    // 1-based
  bool quoted = false;  // holds a quoted part: never a keyword
};

Status error(size_t column, const std::string& text) {
  return invalid(fmt::format("--filter, column {}: {}", column, text));
}

bool blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

Result<std::vector<Token>> tokenize(std::string_view text) {
  std::vector<Token> tokens;
  size_t i = 0;
  while (i < text.size()) {
    if (blank(text[i])) {
      ++i;
    } else if (text[i] == '(' || text[i] == ')') {
      tokens.push_back({text[i] == '(' ? Token::Kind::kOpen : Token::Kind::kClose, std::string(1, text[i]), i + 1});
      ++i;
    } else {
      Token word{Token::Kind::kWord, "", i + 1};
      while (i < text.size() && !blank(text[i]) && text[i] != '(' && text[i] != ')') {
        if (text[i] != '"') {
          word.text += text[i++];
          continue;
        }
        const size_t end = text.find('"', i + 1);
        if (end == std::string_view::npos) return error(i + 1, "this quote is never closed; add a '\"'");
        word.text += text.substr(i + 1, end - i - 1);
        word.quoted = true;
        i = end + 1;
      }
      tokens.push_back(std::move(word));
    }
  }
  tokens.push_back({Token::Kind::kEnd, "the end", text.size() + 1});
  return tokens;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<NodePtr> whole() {
    Result<NodePtr> node = expression(0);
    if (node.ok() && token().kind != Token::Kind::kEnd) {
      return error(token().column, fmt::format("'{}' closes nothing; remove it", token().text));
    }
    return node;
  }

 private:
  const Token& token() const { return tokens_[next_]; }
  bool keyword(std::string_view word) const {
    return token().kind == Token::Kind::kWord && !token().quoted && token().text == word;
  }

  static NodePtr join(Kind kind, NodePtr left, NodePtr right) {
    auto node = std::make_shared<Filter::Node>();
    node->kind = kind;
    node->left = std::move(left);
    node->right = std::move(right);
    return node;
  }

  Result<NodePtr> expression(int depth) {
    Result<NodePtr> left = term(depth);
    while (left.ok() && keyword("or")) {
      ++next_;
      Result<NodePtr> right = term(depth);
      if (!right) return right;
      left = join(Kind::kOr, *left, *right);
    }
    return left;
  }

  Result<NodePtr> term(int depth) {
    Result<NodePtr> left = factor(depth);
    while (left.ok()) {
      if (keyword("and")) {
        ++next_;
      } else if (keyword("or") || token().kind == Token::Kind::kEnd || token().kind == Token::Kind::kClose) {
        break;
      }
      Result<NodePtr> right = factor(depth);
      if (!right) return right;
      left = join(Kind::kAnd, *left, *right);
    }
    return left;
  }

  Result<NodePtr> factor(int depth) {
    if (depth > kMaxDepth) return error(token().column, fmt::format("nested deeper than {}", kMaxDepth));
    if (keyword("not")) {
      ++next_;
      Result<NodePtr> inner = factor(depth + 1);
      if (!inner) return inner;
      return join(Kind::kNot, *inner, nullptr);
    }
    if (token().kind == Token::Kind::kOpen) {
      const size_t column = token().column;
      ++next_;
      Result<NodePtr> inner = expression(depth + 1);
      if (!inner) return inner;
      if (token().kind != Token::Kind::kClose) return error(column, "this parenthesis is never closed; add a ')'");
      ++next_;
      return inner;
    }
    if (token().kind != Token::Kind::kWord || keyword("and") || keyword("or")) {
      return error(token().column, fmt::format("'{}', expected a name glob, key:glob, 'not' or '('", token().text));
    }
    return match();
  }

  Result<NodePtr> match() {
    auto node = std::make_shared<Filter::Node>();
    const size_t colon = token().text.find(':');
    node->key = colon == std::string::npos ? "name" : token().text.substr(0, colon);
    node->glob = colon == std::string::npos ? token().text : token().text.substr(colon + 1);
    if (std::find(kKeys.begin(), kKeys.end(), node->key) == kKeys.end()) {
      return error(token().column,
                   fmt::format("unknown key '{}', expected name, metric, engine, tag, model or mode", node->key));
    }
    if (node->glob.empty()) {
      return error(token().column + colon + 1, fmt::format("'{}:' without a glob; add one", node->key));
    }
    ++next_;
    return NodePtr(std::move(node));
  }

  std::vector<Token> tokens_;
  size_t next_ = 0;
};

bool glob_matches(const std::string& glob, const std::string& value) {
  return ::fnmatch(glob.c_str(), value.c_str(), 0) == 0;
}

bool any_matches(const std::string& glob, const std::vector<std::string>& values) {
  return std::any_of(values.begin(), values.end(), [&](const std::string& value) { return glob_matches(glob, value); });
}

bool name_matches(const std::string& glob, const std::string& name) {
  const size_t slash = name.rfind('/');
  return glob_matches(glob, name) || (slash != std::string::npos && glob_matches(glob, name.substr(slash + 1)));
}

bool holds(const Filter::Node& node, const FilterSubject& subject) {
  switch (node.kind) {
    case Kind::kAnd:
      return holds(*node.left, subject) && holds(*node.right, subject);
    case Kind::kOr:
      return holds(*node.left, subject) || holds(*node.right, subject);
    case Kind::kNot:
      return !holds(*node.left, subject);
    case Kind::kMatch:
      break;
  }
  if (node.key == "metric") return any_matches(node.glob, subject.metrics);
  if (node.key == "tag") return any_matches(node.glob, subject.tags);
  if (node.key == "engine") return glob_matches(node.glob, subject.engine);
  if (node.key == "model") return glob_matches(node.glob, subject.model);
  if (node.key == "mode") return glob_matches(node.glob, subject.mode);
  if (name_matches(node.glob, subject.name)) return true;
  return !subject.relation.empty() &&
         name_matches(node.glob, subject.name.substr(0, subject.name.size() - subject.relation.size() - 1));
}

}  // namespace

Result<Filter> Filter::parse(std::string_view text) {
  Result<std::vector<Token>> tokens = tokenize(text);
  if (!tokens) return tokens.status();
  Filter filter;
  if (tokens->size() == 1) return filter;
  Result<NodePtr> root = Parser(*std::move(tokens)).whole();
  if (!root) return root.status();
  filter.root_ = *std::move(root);
  return filter;
}

bool Filter::matches(const FilterSubject& subject) const { return root_ == nullptr || holds(*root_, subject); }

}  // namespace assay::run
