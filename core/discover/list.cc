#include "core/discover/list.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "core/discover/json_text.h"
#include "core/discover/metamorphic_block.h"
#include "core/golden/text.h"

namespace assay::discover {
namespace {

void append_field(std::string& out, std::string_view name) {
  if (!out.ends_with('{')) out += ',';
  append_json_string(out, name);
  out += ':';
}

void append_text_or_null(std::string& out, std::string_view name, const std::string& value) {
  append_field(out, name);
  if (value.empty()) {
    out += "null";
  } else {
    append_json_string(out, value);
  }
}

template <class List, class Text>
void append_list(std::string& out, const List& list, const Text& text) {
  out += '[';
  for (const auto& item : list) {
    if (&item != &list.front()) out += ',';
    append_json_string(out, text(item));
  }
  out += ']';
}

void append_case(std::string& out, const TestCase& test_case) {
  const auto same = [](const std::string& text) { return std::string_view(text); };
  out += '{';
  append_text_or_null(out, "name", test_case.name);
  append_text_or_null(out, "path", test_case.dir);
  append_text_or_null(out, "model", test_case.model);
  append_text_or_null(out, "mode", test_case.mode);
  append_text_or_null(out, "test_type", test_case.test_type);
  append_field(out, "metrics");
  if (test_case.metrics && !test_case.metrics_is_null) {
    append_list(out, *test_case.metrics, same);
  } else {
    out += "null";
  }
  append_text_or_null(out, "engine", engine_of(test_case));
  append_field(out, "goldens");
  append_list(out, test_case.goldens, [](const GoldenFile& golden) { return std::string_view(golden.file); });
  append_text_or_null(out, "error", test_case.error.message());
  append_field(out, "metamorphic");
  if (test_case.assay.metamorphic) {
    append_list(out, relations_of(*test_case.assay.metamorphic), same);
  } else {
    out += "null";
  }
  append_field(out, "workers_per_device");
  out += std::to_string(test_case.assay.workers_per_device.value_or(1));
  append_text_or_null(out, "model_args_sha256", model_args_digest(test_case.model_args));
  append_field(out, "notes");
  append_list(out, test_case.notes, same);
  out += '}';
}

std::string joined(const std::vector<std::string>& texts, std::string_view none) {
  std::string line;
  for (const std::string& text : texts) line += (line.empty() ? "" : ",") + text;
  return line.empty() ? std::string(none) : line;
}

// What judges the case.
std::string judges(const TestCase& test_case) {
  const auto& block = test_case.assay.metamorphic;
  if (!block) return joined(test_case.metrics.value_or(std::vector<std::string>()), "no metrics");
  return "relations: " + (block->relations.empty() ? "all" : joined(block->relations, ""));
}

void append_padded(std::string& out, std::string_view text, size_t width) {
  out += text;
  out.append(text.size() < width ? width - text.size() : 0, ' ');
  out += "  ";
}

}  // namespace

std::string engine_of(const TestCase& test_case) {
  if (test_case.mode != "inference") return {};
  if (test_case.assay.engine) return *test_case.assay.engine;
  const auto& entries = test_case.model_args.entries;
  const auto flag = std::find_if(entries.begin(), entries.end(),
                                 [](const ModelArg& arg) { return arg.key == "--use-legacy-static-engine"; });
  return flag != entries.end() && (flag->text == "true" || flag->text == "True" || flag->text == "TRUE")
             ? "static_legacy"
             : "buffered";
}

std::string canonical_model_args(const ModelArgs& args) {
  std::string text = "[";
  for (const ModelArg& arg : args.entries) {
    if (text.size() > 1) text += ',';
    text += '[';
    append_json_string(text, arg.key);
    text += ',';
    if (arg.is_list) {
      append_list(text, arg.items, [](const std::string& item) { return std::string_view(item); });
    } else {
      append_json_string(text, arg.text);
    }
    text += ']';
  }
  return text + "]";
}

std::string model_args_digest(const ModelArgs& args) {
  const std::string text = canonical_model_args(args);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

std::string list_json(const std::vector<TestCase>& cases) {
  std::string out = "[";
  for (const TestCase& test_case : cases) {
    out += &test_case == &cases.front() ? "\n" : ",\n";
    append_case(out, test_case);
  }
  return out + "\n]\n";
}

std::string list_text(const std::vector<TestCase>& cases) {
  size_t width = 0, bad = 0;
  for (const TestCase& test_case : cases) width = std::max(width, std::min<size_t>(test_case.name.size(), 80));
  std::string out;
  for (const TestCase& test_case : cases) {
    append_padded(out, text::printable(test_case.name), width);
    append_padded(out, text::printable(test_case.mode), 11);
    append_padded(out, test_case.test_type.empty() ? "-" : text::printable(test_case.test_type), 22);
    const std::string engine = engine_of(test_case);
    append_padded(out, engine.empty() ? "-" : text::printable(engine), 13);
    append_padded(out, text::printable(judges(test_case)), 26);
    out += std::to_string(test_case.goldens.size()) + (test_case.goldens.size() == 1 ? " golden" : " goldens");
    if (test_case.assay.workers_per_device) {
      out += ", workers per device: " + std::to_string(*test_case.assay.workers_per_device);
    }
    out += "\n";
    if (test_case.error.ok()) continue;
    ++bad;
    out += "    error: " + text::printable(test_case.error.message()) + "\n";
  }
  out += std::to_string(cases.size()) + (cases.size() == 1 ? " case" : " cases");
  return out + (bad == 0 ? "\n" : ", " + std::to_string(bad) + " with errors\n");
}

}  // namespace assay::discover
