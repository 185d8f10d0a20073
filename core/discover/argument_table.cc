#include "core/discover/argument_table.h"

#include <algorithm>
#include <unordered_map>

#include "core/discover/nearest.h"

namespace assay::discover {
namespace {

struct Section {
  ArgumentClass cls;
  const char* reason;
  const char* rows;
};
constexpr Section kSections[] = {
#include "core/discover/arguments_table.inc"
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

ArgumentKind kind_of(char code) {
  switch (code) {
    case '!':
      return ArgumentKind::kFlag;
    case '~':
      return ArgumentKind::kNoFlag;
    case '?':
      return ArgumentKind::kOptional;
    case 'i':
      return ArgumentKind::kInt;
    case 'f':
      return ArgumentKind::kFloat;
    case 't':
      return ArgumentKind::kInts;
    case 'p':
      return ArgumentKind::kPattern;
    default:
      return ArgumentKind::kText;
  }
}

// num-layers -> num_layers; a flag that stores false loses its no- or disable-.
std::string destination_of(std::string name, ArgumentKind kind) {
  std::replace(name.begin(), name.end(), '-', '_');
  if (kind != ArgumentKind::kNoFlag) return name;
  for (const std::string_view prefix : {"no_", "disable_"}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

ArgumentInfo read_row(std::string_view row, const Section& section) {
  ArgumentInfo info;
  info.cls = section.cls;
  info.reason = section.reason;
  const size_t colon = row.find(':');
  std::string_view code = row.substr(colon + 1);
  if (const size_t equals = code.find('='); equals != std::string_view::npos) {
    info.dest = code.substr(equals + 1);
    code = code.substr(0, equals);
  }
  if (const size_t open = code.find('('); open != std::string_view::npos) {
    info.choices = split(code.substr(open + 1, code.size() - open - 2), ',');
    code = code.substr(0, open);
  }
  info.kind = kind_of(code[0]);
  info.several = code.size() > 1 ? code[1] : '\0';
  for (const std::string& name : split(row.substr(0, colon), '|')) {
    if (info.dest.empty()) info.dest = destination_of(name, info.kind);
    info.options.push_back("--" + name);
  }
  return info;
}

struct Table {
  std::vector<ArgumentInfo> rows;
  std::unordered_map<std::string_view, const ArgumentInfo*> by_option;
  std::unordered_map<std::string_view, const ArgumentInfo*> by_dest;

  Table() {
    for (const Section& section : kSections) {
      std::string text = section.rows;
      std::replace(text.begin(), text.end(), '\n', ' ');
      for (const std::string& row : split(text, ' ')) {
        if (!row.empty()) rows.push_back(read_row(row, section));
      }
    }
    for (const ArgumentInfo& info : rows) {
      for (const std::string& option : info.options) by_option.emplace(option, &info);
      by_dest.emplace(info.dest, &info);
    }
  }
};

const Table& table() {
  static const Table the_table;
  return the_table;
}

template <class Map>
const ArgumentInfo* lookup(const Map& map, std::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : found->second;
}

}  // namespace

std::string_view class_name(ArgumentClass c, std::string_view engine) {
  switch (c) {
    case ArgumentClass::kUsed:
      return "used";
    case ArgumentClass::kSubstituted:
      return "substituted";
    case ArgumentClass::kDynamic:
      return engine == "buffered" ? "used" : "irrelevant";
    case ArgumentClass::kIrrelevant:
      break;
  }
  return "irrelevant";
}

std::span<const ArgumentInfo> argument_table() { return table().rows; }

const ArgumentInfo* find_argument(std::string_view option) { return lookup(table().by_option, option); }

const ArgumentInfo* find_destination(std::string_view dest) { return lookup(table().by_dest, dest); }

std::string nearest_argument(std::string_view option) {
  std::vector<std::string_view> names;
  for (const ArgumentInfo& info : table().rows) names.insert(names.end(), info.options.begin(), info.options.end());
  return did_you_mean(option, names);
}

}  // namespace assay::discover
