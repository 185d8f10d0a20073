#include "core/golden/stable_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace assay {
namespace {

// All functions below take well-formed JSON of results_text: no check is repeated here.

size_t skip_blanks(std::string_view text, size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r')) ++at;
  return at;
}

size_t end_of_string(std::string_view text, size_t at) {
  for (++at; text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

// End of the value that begins at `at`.
size_t end_of_value(std::string_view text, size_t at) {
  if (text[at] == '"') return end_of_string(text, at);
  if (text[at] != '{' && text[at] != '[') return std::min(text.find_first_of(",]} \n\t\r", at), text.size());
  size_t depth = 0;
  do {
    const char c = text[at];
    if (c == '"') {
      at = end_of_string(text, at);
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++at;
  } while (depth > 0);
  return at;
}

struct Member {
  std::string_view name;  // with its quotes; empty in lists
  std::string_view value;

  std::string_view bare_name() const { return name.substr(1, name.size() - 2); }
};

void sort_by_name(std::vector<Member>::iterator begin, std::vector<Member>::iterator end) {
  std::stable_sort(begin, end, [](const Member& a, const Member& b) { return a.bare_name() < b.bare_name(); });
}

// What an object or a list holds, in its order.
std::vector<Member> members_of(std::string_view container) {
  std::vector<Member> members;
  const bool object = container[0] == '{';
  size_t at = skip_blanks(container, 1);
  while (at + 1 < container.size()) {
    Member member;
    if (object) {
      const size_t end = end_of_string(container, at);
      member.name = container.substr(at, end - at);
      at = skip_blanks(container, skip_blanks(container, end) + 1);  // past the colon
    }
    const size_t end = end_of_value(container, at);
    member.value = container.substr(at, end - at);
    members.push_back(member);
    at = skip_blanks(container, end);
    if (container[at] == ',') at = skip_blanks(container, at + 1);
  }
  return members;
}

bool is_container(std::string_view value) { return value[0] == '{' || value[0] == '['; }

bool all_plain(const std::vector<Member>& members) {
  return std::none_of(members.begin(), members.end(), [](const Member& member) { return is_container(member.value); });
}

class Layout {
 public:
  explicit Layout(std::string& out) : out_(out) {}

  void value(std::string_view value, size_t level, bool in_list) {
    if (!is_container(value)) {
      out_ += value;
      return;
    }
    std::vector<Member> members = members_of(value);
    const bool object = value[0] == '{';
    const bool plain = all_plain(members);
    const bool line = members.empty() || (plain && (in_list || (!object && members.size() <= kShortList)));
    if (object && !in_list) sort_by_name(members.begin(), members.end());
    if (line) {
      on_one_line(members, object);
    } else {
      on_lines(members, object, level);
    }
  }

  void on_lines(const std::vector<Member>& members, bool object, size_t level) {
    out_ += object ? "{\n" : "[\n";
    for (size_t i = 0; i < members.size(); ++i) {
      out_.append(2 * (level + 1), ' ');
      if (object) out_.append(members[i].name).append(": ");
      value(members[i].value, level + 1, !object);
      out_ += i + 1 < members.size() ? ",\n" : "\n";
    }
    out_.append(2 * level, ' ');
    out_ += object ? '}' : ']';
  }

 private:
  void on_one_line(const std::vector<Member>& members, bool object) {
    out_ += object ? '{' : '[';
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out_ += ", ";
      if (object) out_.append(members[i].name).append(": ");
      out_ += members[i].value;
    }
    out_ += object ? '}' : ']';
  }

  std::string& out_;
};

}  // namespace

std::string stable_text(const ResultSet& set) {
  const std::string text = results_text(set);
  std::vector<Member> members = members_of(text);
  const auto rest = members.begin() + static_cast<ptrdiff_t>(set.requests.size());  // as results_text orders them
  const auto last = set.extra.empty() ? members.end() : members.end() - 1;
  sort_by_name(rest, last);
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  Layout(out).on_lines(members, true, 0);
  out += '\n';
  return out;
}

}  // namespace assay
