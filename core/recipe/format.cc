#include "core/recipe/format.h"

#include <fmt/format.h>

#include <charconv>

#include "core/golden/text.h"
#include "core/recipe/format_spec.h"

namespace assay::recipe {
namespace {

// One replacement field: {name!conversion:spec}.
struct Field {
  std::string_view name;
  char conversion = '\0';
  std::string_view spec;
};

class Formatter {
 public:
  Formatter(const Fields& fields, std::vector<std::string>* names) : fields_(fields), names_(names) {}

  Status format(std::string_view text, int depth, std::string& out) {
    if (depth < 0) return invalid("fields are nested too deeply");
    for (size_t at = 0; at < text.size();) {
      const size_t brace = std::min(text.find_first_of("{}", at), text.size());
      out.append(text, at, brace - at);
      if (brace == text.size()) break;
      if (out.size() > kMostFormatted) return too_long();
      if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {
        out += text[brace];
        at = brace + 2;
        continue;
      }
      if (text[brace] == '}') return invalid(place("single '}'", text, brace) + "; write }} for a brace");
      if (brace + 1 == text.size()) return invalid("single '{' at the end; write {{ for a brace");
      const size_t end = end_of_field(text, brace + 1);
      if (end == std::string_view::npos) {
        return invalid(place("'{' without its '}'", text, brace) + "; write {{ for a brace");
      }
      if (Status done = replace(text.substr(brace + 1, end - brace - 1), depth, out); !done.ok()) return done;
      if (out.size() > kMostFormatted) return too_long();
      at = end + 1;
    }
    return {};
  }

 private:
  static Status too_long() {
    return unsupported(fmt::format("the formatted text is longer than {} bytes", kMostFormatted));
  }

  static std::string place(const char* what, std::string_view text, size_t at) {
    return fmt::format("{} at {}", what, text::around(text, at, 20, 20));
  }

  // Byte of the '}' that closes the field begun at `at`; braces between [ and ] do not count.
  static size_t end_of_field(std::string_view text, size_t at) {
    int open = 1;
    bool bracket = false;
    bool in_name = true;
    for (; at < text.size(); ++at) {
      const char c = text[at];
      if (in_name && c == '[') bracket = true;
      if (c == ']') bracket = false;
      if (bracket) continue;
      if (c == ':' || c == '!') in_name = false;
      if (c == '{') {
        ++open;
        in_name = false;
      }
      if (c == '}' && --open == 0) return at;
    }
    return std::string_view::npos;
  }

  static Result<Field> split(std::string_view text) {
    Field field;
    bool bracket = false;
    size_t at = 0;
    for (; at < text.size(); ++at) {
      const char c = text[at];
      if (c == '{') return invalid(fmt::format("field {}: unexpected '{{' in its name", shown(text)));
      if (c == '[') bracket = true;
      if (c == ']') bracket = false;
      if (!bracket && (c == ':' || c == '!')) break;
    }
    field.name = text.substr(0, at);
    if (at == text.size()) return field;
    if (text[at] == '!') {
      if (at + 1 == text.size())
        return invalid(fmt::format("field {}: a conversion is expected after '!'", shown(text)));
      field.conversion = text[at + 1];
      at += 2;
      if (at == text.size()) return field;
      if (text[at] != ':') return invalid(fmt::format("field {}: ':' is expected after the conversion", shown(text)));
    }
    field.spec = text.substr(at + 1);
    return field;
  }

  static std::string shown(std::string_view field) { return text::quoted(std::string("{").append(field) + "}", 60); }

  Status replace(std::string_view text, int depth, std::string& out) {
    const Result<Field> field = split(text);
    if (!field) return field.status();
    if (names_ != nullptr) {
      names_->emplace_back(field->name.substr(0, field->name.find_first_of(".[")));
      std::string ignored;
      return field->spec.find('{') == std::string_view::npos ? Status() : format(field->spec, depth - 1, ignored);
    }
    const Result<Value> value = find(field->name, text);
    if (!value) return value.status();
    std::string spec(field->spec);
    if (spec.find_first_of("{}") != std::string::npos) {
      spec.clear();
      if (Status nested = format(field->spec, depth - 1, spec); !nested.ok()) return nested;
    }
    Value converted;
    switch (field->conversion) {
      case '\0':
        converted = *value;
        break;
      case 's':
        converted = python_str(*value);
        break;
      case 'r':
        converted = python_repr(*value);
        break;
      case 'a':
        converted = python_repr(*value, true);
        break;
      default:
        return invalid(fmt::format("field {}: conversion '{}' is not one of s, r, a", shown(text), field->conversion));
    }
    Result<std::string> formatted = apply_format_spec(converted, spec);
    if (!formatted) return formatted.status().with("field " + shown(text));
    out += *formatted;
    return {};
  }

  Result<Value> find(std::string_view name, std::string_view text) const {
    const std::string_view first = name.substr(0, name.find_first_of(".["));
    if (first.empty() || first.find_first_not_of("0123456789") == std::string_view::npos) {
      return invalid(fmt::format(
          "field {}: fields have names here, there is no numbered one; write {{{{ and }}}} for braces", shown(text)));
    }
    const Value* value = fields_(first);
    if (value == nullptr) {
      return invalid(fmt::format("field {}: there is no '{}'; write {{{{ and }}}} for braces that are none of a field",
                                 shown(text), text::printable(first)));
    }
    std::string_view rest = name.substr(first.size());
    while (!rest.empty()) {
      if (rest[0] == '.') return unsupported(fmt::format("field {}: attributes are not supported", shown(text)));
      const size_t end = rest.find(']');
      if (end == std::string_view::npos) return invalid(fmt::format("field {}: missing ']'", shown(text)));
      const std::string_view index = rest.substr(1, end - 1);
      rest.remove_prefix(end + 1);
      if (!rest.empty() && rest[0] != '.' && rest[0] != '[') {
        return invalid(fmt::format("field {}: only '.' or '[' may follow ']'", shown(text)));
      }
      value = item(*value, index);
      if (value == nullptr) {
        return invalid(fmt::format("field {}: there is no item [{}]", shown(text), text::printable(index)));
      }
    }
    return *value;
  }

  static const Value* item(const Value& value, std::string_view index) {
    if (value.is_object()) {
      const auto found = value.find(std::string(index));
      return found == value.end() ? nullptr : &*found;
    }
    size_t number = 0;
    const auto [end, error] = std::from_chars(index.data(), index.data() + index.size(), number);
    const bool whole = error == std::errc() && end == index.data() + index.size();
    return whole && value.is_array() && number < value.size() ? &value[number] : nullptr;
  }

  const Fields& fields_;
  std::vector<std::string>* names_;
};

}  // namespace

Result<std::string> python_format(std::string_view text, const Fields& fields) {
  std::string out;
  if (Status done = Formatter(fields, nullptr).format(text, 1, out); !done.ok()) return done;
  return out;
}

std::vector<std::string> format_fields(std::string_view text) {
  std::vector<std::string> names;
  std::string ignored;
  const Status as_far = Formatter({}, &names).format(text, 1, ignored);
  (void)as_far;
  return names;
}

}  // namespace assay::recipe
