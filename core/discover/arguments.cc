#include "core/discover/arguments.h"

#include <algorithm>

#include "core/discover/harness_args.h"
#include "core/discover/yaml_text.h"

namespace assay::discover {
namespace {

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + text;
  return out;
}

Result<model::ArgValue> typed(const ArgumentInfo& info, const std::string& text) {
  if (!info.choices.empty() && info.kind == ArgumentKind::kText &&
      std::find(info.choices.begin(), info.choices.end(), text) == info.choices.end()) {
    return invalid("'" + text + "' is none of " + joined(info.choices));
  }
  switch (info.kind) {
    case ArgumentKind::kInt: {
      const Result<int64_t> value = parse_int(text);
      if (!value.ok()) return value.status();
      const std::string plain = std::to_string(*value);
      if (!info.choices.empty() && std::find(info.choices.begin(), info.choices.end(), plain) == info.choices.end()) {
        return invalid("'" + text + "' is none of " + joined(info.choices));
      }
      return model::ArgValue{*value};
    }
    case ArgumentKind::kFloat: {
      const Result<double> value = parse_float(text);
      if (!value.ok()) return value.status();
      return model::ArgValue{*value};
    }
    case ArgumentKind::kPattern:
      return parse_layer_pattern(text);
    case ArgumentKind::kInts: {
      model::ArgList list;
      std::string_view rest = text;
      while (rest.starts_with('(') || rest.starts_with(')')) rest.remove_prefix(1);
      while (rest.ends_with('(') || rest.ends_with(')')) rest.remove_suffix(1);
      for (bool more = true; more;) {
        const size_t comma = rest.find(',');
        more = comma != std::string_view::npos;
        const Result<int64_t> value = parse_int(rest.substr(0, comma));
        if (!value.ok()) return value.status();
        list.emplace_back().value = *value;
        if (more) rest.remove_prefix(comma + 1);
      }
      return model::ArgValue{std::move(list)};
    }
    default:
      return model::ArgValue{text};
  }
}

bool is_negative_number(std::string_view word) {  // -1, -.5, -1.5: Python's argparse takes these for values
  word.remove_prefix(1);
  const size_t point = word.find('.');
  const auto digits = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (point == std::string_view::npos) return !word.empty() && digits(word);
  return point + 1 < word.size() && digits(word.substr(0, point)) && digits(word.substr(point + 1));
}

class Parser {
 public:
  Parser(const std::vector<ArgumentWord>& words, const ModelArgs& args, const std::string& config)
      : words_(words), args_(args), config_(config) {}

  Result<ParsedArguments> parse() {
    for (size_t at = 0; at < words_.size();) {
      if (Status done = take(at); !done.ok()) {
        const ModelArg& entry = args_.entries[words_[std::min(at, words_.size() - 1)].entry];
        return done.with(at_place(config_, entry.place.line, entry.place.column) + args_.name + " " + entry.key);
      }
    }
    return std::move(parsed_);
  }

 private:
  // Option, or value in argparse's sense; an option may be unknown.
  static bool is_option(const std::string& word) {
    if (word.size() < 2 || word[0] != '-' || find_argument(word) != nullptr) return word.size() > 1 && word[0] == '-';
    const size_t equals = word.find('=');
    if (equals != std::string::npos && find_argument(word.substr(0, equals)) != nullptr) return true;
    return !is_negative_number(word) && word.find(' ') == std::string::npos;
  }

  // Reads the argument at `at`; on failure `at` stays at the word to blame.
  Status take(size_t& at) {
    const ArgumentWord& word = words_[at];
    if (!is_option(word.text)) return left_over(word);
    GivenArgument given;
    const size_t equals = word.text.find('=');
    const bool joined_value = find_argument(word.text) == nullptr && equals != std::string::npos;
    given.option = joined_value ? word.text.substr(0, equals) : word.text;
    given.info = find_argument(given.option);
    given.place = args_.entries[word.entry].place;
    if (given.info == nullptr) return invalid("unknown argument" + nearest_argument(given.option));
    size_t next = at + 1;
    if (joined_value) {
      given.values.push_back(word.text.substr(equals + 1));
    } else if (given.info->takes_value()) {
      const size_t most = given.info->several == 0 ? 1
                          : given.info->several == '+' || given.info->several == '*'
                              ? words_.size()
                              : static_cast<size_t>(given.info->several - '0');
      while (next < words_.size() && given.values.size() < most && !is_option(words_[next].text)) {
        given.values.push_back(words_[next++].text);
      }
    }
    if (Status done = store(std::move(given)); !done.ok()) return done;
    at = next;
    return {};
  }

  static Status left_over(const ArgumentWord& word) {
    if (word.key) return invalid("'" + word.text + "' is no argument: its key must begin with --");
    return invalid("'" + word.text + "' is one value too many; a flag is written with the value true, or left out");
  }

  Status store(GivenArgument given) {
    const ArgumentInfo& info = *given.info;
    if (!info.takes_value()) {
      if (!given.values.empty()) return invalid("a flag takes no value");
      const bool negative = info.kind == ArgumentKind::kNoFlag ||
                            (info.kind == ArgumentKind::kOptional && given.option != info.options[0]);
      given.value.value = !negative;
    } else if (Status counted = check_count(given); !counted.ok()) {
      return counted;
    } else {
      model::ArgList list;
      for (const std::string& text : given.values) {
        Result<model::ArgValue> value = typed(info, text);
        if (!value.ok()) return value.status();
        list.push_back(*std::move(value));
      }
      if (info.several == 0) {
        given.value = std::move(list[0]);
      } else {
        given.value.value = std::move(list);
      }
    }
    for (GivenArgument& earlier : parsed_.given) earlier.overridden |= earlier.info->dest == info.dest;
    parsed_.record[info.dest] = given.value;
    parsed_.given.push_back(std::move(given));
    return {};
  }

  static Status check_count(const GivenArgument& given) {
    const char several = given.info->several;
    const size_t count = given.values.size();
    const size_t least = several == '*' ? 0 : several >= '0' && several <= '9' ? static_cast<size_t>(several - '0') : 1;
    if (count >= least) return {};
    return invalid(least == 1 ? "a value is expected" : std::to_string(least) + " values are expected");
  }

  const std::vector<ArgumentWord>& words_;
  const ModelArgs& args_;
  const std::string& config_;
  ParsedArguments parsed_;
};

}  // namespace

const GivenArgument* ParsedArguments::find(std::string_view dest) const {
  for (const GivenArgument& argument : given) {
    if (!argument.overridden && argument.info->dest == dest) return &argument;
  }
  return nullptr;
}

Result<ParsedArguments> parse_arguments(const std::vector<ArgumentWord>& words, const ModelArgs& args,
                                        const std::string& config) {
  return Parser(words, args, config).parse();
}

Result<ParsedArguments> read_arguments(const TestCase& test_case, const Variables& variables) {
  const Result<ModelArgs> args = harness_args(test_case, variables);
  if (!args.ok()) return args.status();
  const auto words = expand_arguments(*args, test_case.config);
  if (!words.ok()) return words.status();
  return parse_arguments(*words, *args, test_case.config);
}

}  // namespace assay::discover
