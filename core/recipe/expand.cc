#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "core/discover/nearest.h"
#include "core/discover/yaml_text.h"
#include "core/golden/text.h"
#include "core/recipe/format.h"
#include "core/recipe/known_words.h"
#include "core/recipe/recipe.h"
#include "core/recipe/rows.h"

namespace assay::recipe {
namespace {

using discover::YamlEntry;
using discover::YamlNode;

constexpr int kDefaultRepeat = 1;
constexpr int kDefaultTimeLimit = 1800;  // seconds
constexpr std::array<std::string_view, 6> kTopKeys = {"type",    "format_version", "maintainers",
                                                      "loggers", "spec",           "products"};
constexpr std::array<std::string_view, 21> kSpecKeys = {
    "name",       "model",       "build",     "nodes",   "gpus",         "n_repeat",      "platforms",
    "time_limit", "segment",     "artifacts", "scope",   "script_setup", "script",        "test_case",
    "source",     "environment", "tag",       "cadence", "nemo_model",   "allow_failure", "outputs"};
constexpr std::array<std::string_view, 4> kTemplates = {"name", "build", "script", "script_setup"};

class Expander {
 public:
  Expander(const std::string& file, const Folders& folders)
      : file_(file), findings_(file), assets_(folders.assets), artifacts_(folders.artifacts) {}

  Recipe expand(std::string text) {
    const auto tree = discover::parse_yaml(std::move(text), file_);
    if (!tree) {
      recipe_.findings.push_back(of_status(tree.status()));
      return std::move(recipe_);
    }
    for (const discover::YamlDuplicate& twice : tree->duplicates) {
      findings_.warn(twice.line, 1,
                     fmt::format("key {} was given in line {} already: this later one counts",
                                 text::quoted(twice.key, 60), twice.first_line));
    }
    if (tree->root == nullptr) {
      findings_.error(0, 0, "the recipe is empty: a mapping with type, spec and products is expected");
    } else if (tree->root->kind != YamlNode::Kind::kMap) {
      findings_.error(*tree->root, "a recipe is a mapping with type, spec and products");
    } else {
      read(*tree->root);
    }
    recipe_.findings = std::move(findings_.list());
    return std::move(recipe_);
  }

 private:
  // The parser's message starts with "file:line:column: ", which to_line() would repeat.
  Finding of_status(const Status& status) const {
    Finding finding{Severity::kError, file_, 0, 0, status.message()};
    const std::string prefix = file_ + ":";
    int used = 0;
    if (finding.what.starts_with(prefix) &&
        std::sscanf(finding.what.c_str() + prefix.size(), "%d:%d: %n", &finding.line, &finding.column, &used) == 2 &&
        used > 0) {
      finding.what.erase(0, prefix.size() + static_cast<size_t>(used));
    }
    return finding;
  }

  void read(const YamlNode& root) {
    for (const YamlEntry& entry : root.entries) {
      if (std::find(kTopKeys.begin(), kTopKeys.end(), entry.key) != kTopKeys.end()) continue;
      findings_.warn(entry.line, entry.column,
                     fmt::format("key {} is unknown{}: nothing reads it", text::quoted(entry.key, 60),
                                 discover::did_you_mean(entry.key, kTopKeys)));
    }
    const bool build_file = std::filesystem::path(file_).stem().string().starts_with("_build");
    check_type(root, build_file);
    if (const YamlNode* version = root.find("format_version");
        version != nullptr && (!version->is_scalar() || version->text != "1")) {
      findings_.warn(*version, "format_version is not 1, the only one that is known");
    }
    spec_node_ = root.find("spec");
    if (spec_node_ == nullptr || spec_node_->kind != YamlNode::Kind::kMap) {
      return findings_.error(spec_node_ == nullptr ? root : *spec_node_,
                             spec_node_ == nullptr
                                 ? "spec is missing: a mapping with name, model, build and script is expected"
                                 : "spec is no mapping");
    }
    spec_ = to_value(*spec_node_);
    spec_bytes_ = python_repr(spec_).size();
    if (build_file) read_build();
    const YamlNode* products = root.find("products");
    if (products == nullptr || products->is_null() ||
        (products->kind == YamlNode::Kind::kSequence && products->items.empty())) {
      if (type_ != "build")
        findings_.warn(products == nullptr ? root : *products,
                       "products are missing: this recipe expands to no workload");
      return;
    }
    for (const std::string_view key : kTemplates) {
      if (!spec_.contains(key) || !spec_[std::string(key)].is_string()) continue;
      for (std::string& field : format_fields(spec_[std::string(key)].get_ref<const std::string&>()))
        fields_.insert(std::move(field));
    }
    check_keys(*spec_node_);
    if (const YamlNode* platforms = spec_node_->find("platforms"); platforms != nullptr && platforms->is_scalar()) {
      check_platform(*platforms, findings_);
    }
    each_row(*products, findings_, [this](Row row) { return take(std::move(row)); });
  }

  void check_type(const YamlNode& root, bool build_file) {
    const YamlNode* type = root.find("type");
    type_ = type != nullptr && type->is_scalar() ? type->text : "";
    if (type_ != "basic" && type_ != "build") {
      findings_.warn(type == nullptr ? root : *type,
                     fmt::format("type is {}: basic or build is expected; read as basic",
                                 type == nullptr ? "missing" : text::quoted(type_, 60)));
      type_ = "basic";
    } else if (build_file != (type_ == "build")) {
      findings_.warn(*type,
                     build_file
                         ? "type is not build, but the file's name starts with _build: it is taken for a build"
                         : "type is build, but the file's name does not start with _build: no workload depends on it");
    }
  }

  void read_build() {
    Workload build;
    build.type = "build";
    build.file = file_;
    build.line = spec_node_->line;
    build.column = spec_node_->column;
    build.spec = spec_;
    build.name = build.text("name");
    const Value* source = spec_.contains("source") ? &spec_["source"] : nullptr;
    if (build.name.empty()) {
      findings_.error(*spec_node_, "spec.name of a build is missing: workloads name it as their build");
    } else if (source == nullptr || !source->is_object() || !source->contains("image") ||
               !(*source)["image"].is_string()) {
      findings_.error(*spec_node_, "spec.source.image of a build is missing");
    } else {
      recipe_.build = std::move(build);
    }
  }

  // A key that neither the schema nor a template knows is most likely a slip.
  void check_keys(const YamlNode& map) {
    for (const YamlEntry& entry : map.entries) {
      if (std::find(kSpecKeys.begin(), kSpecKeys.end(), entry.key) != kSpecKeys.end() || fields_.contains(entry.key))
        continue;
      findings_.warn(entry.line, entry.column,
                     fmt::format("key {} is unknown{} and no template names it", text::quoted(entry.key, 60),
                                 discover::did_you_mean(entry.key, kSpecKeys)));
    }
  }

  bool take(Row row) {
    if (row.at != last_product_) check_keys(*row.at);
    last_product_ = row.at;
    expanded_ += spec_bytes_ + python_repr(row.keys).size();
    if (recipe_.workloads.size() >= kMostWorkloads || expanded_ > kMostExpanded) return leave_out(row);
    Workload work;
    work.type = type_;
    work.file = file_;
    work.line = row.at->line;
    work.column = row.at->column;
    auto& merged = work.spec.get_ref<Value::object_t&>();
    for (const auto& [key, value] : spec_.items()) {
      if (!row.keys.contains(key)) merged.emplace_back(key, value);
    }
    for (auto& [key, value] : row.keys.items()) merged.emplace_back(key, std::move(value));
    finish(work);
    expanded_ += work.script.size() + work.name.size() + size_of(work, "build") + size_of(work, "artifacts");
    if (expanded_ > kMostExpanded) return leave_out(row);
    recipe_.workloads.push_back(std::move(work));
    return true;
  }

  bool leave_out(const Row& row) {
    findings_.error(*row.at,
                    fmt::format("the products expand to more than {} workloads or {} bytes: the rest is left out",
                                kMostWorkloads, kMostExpanded));
    return false;
  }

  static size_t size_of(const Workload& work, const char* key) {
    const auto found = work.spec.find(key);
    return found == work.spec.end() ? 0 : size_of(*found);
  }

  // Bytes of the texts in it.
  static size_t size_of(const Value& value) {
    if (value.is_string()) return value.get_ref<const std::string&>().size();
    size_t bytes = 0;
    if (value.is_structured()) {
      for (const auto& [key, item] : value.items()) bytes += key.size() + size_of(item);
    }
    return bytes;
  }

  void finish(Workload& work) {
    const Fields of_spec = [&work](std::string_view name) -> const Value* {
      const auto found = work.spec.find(std::string(name));
      return found == work.spec.end() ? nullptr : &*found;
    };
    if (auto build = filled(work, "build", of_spec)) work.spec["build"] = *std::move(build);
    work.own_repeat = default_number(work, "n_repeat", kDefaultRepeat);
    work.own_time_limit = default_number(work, "time_limit", kDefaultTimeLimit);
    for (const char* key : {"gpus", "nodes"}) check_number(work, key, 0);
    fill_artifacts(work);
    Value name;
    const Fields with_folders = [&](std::string_view field) -> const Value* {
      if (field == "assets_dir") return &assets_;
      if (field == "artifacts_dir") return &artifacts_;
      if (field == "name" && !name.is_null()) return &name;
      return of_spec(field);
    };
    work.name = work.text("test_case");
    if (auto text = filled(work, "name", with_folders)) work.name = *std::move(text);
    name = work.name;
    if (auto text = filled(work, "script", with_folders)) work.script = *std::move(text);
  }

  // The template of `key` with its fields in it; nullopt where there is none or it cannot be filled in, which is noted.
  std::optional<std::string> filled(Workload& work, const char* key, const Fields& fields) {
    const auto found = work.spec.find(key);
    if (found == work.spec.end()) {
      const YamlNode& at = *spec_node_;
      if (std::string_view(key) == "name") {
        refuse(work, at, "spec.name is missing: '{test_case}_{environment}_{platforms}' is usual");
      } else {
        findings_.warn(at, fmt::format("spec.{} is missing{}", key,
                                       std::string_view(key) == "build" ? ": Megatron-LM's parser refuses the recipe"
                                                                        : ": there is nothing to run"));
      }
      return std::nullopt;
    }
    const YamlNode& at = node_of(key);
    if (!found->is_string()) {
      refuse(work, at, fmt::format("{} is {}: a string is expected", key, python_type(*found)));
      return std::nullopt;
    }
    Result<std::string> text = python_format(found->get_ref<const std::string&>(), fields);
    if (text) return *std::move(text);
    refuse(work, at, fmt::format("{} of {}: {}", key, work.text("test_case"), text.status().message()));
    return std::nullopt;
  }

  void refuse(Workload& work, const YamlNode& at, const std::string& what) {
    findings_.error(at, what);
    if (work.error.ok()) work.error = invalid(discover::at_place(file_, at.line, at.column) + what);
  }

  // Where the value stands: in the product, or in the spec.
  const YamlNode& node_of(const char* key) const {
    if (const YamlNode* own = last_product_->find(key); own != nullptr) return *own;
    const YamlNode* given = spec_node_->find(key);
    return given == nullptr ? *spec_node_ : *given;
  }

  // True when the recipe gives a number itself.
  bool default_number(Workload& work, const char* key, int number) {
    if (work.spec.contains(key) && !work.spec[key].is_null()) {
      check_number(work, key, 1);
      return true;
    }
    work.spec[key] = number;
    return false;
  }

  void check_number(const Workload& work, const char* key, int64_t least) {
    const auto found = work.spec.find(key);
    if (found == work.spec.end() || found->is_null()) return;
    if (found->is_number_integer() && found->get<int64_t>() >= least) return;
    findings_.warn(node_of(key), fmt::format("{} is {}: a whole number from {} is expected", key,
                                             text::printable(python_repr(*found)), least));
  }

  void fill_artifacts(Workload& work) {
    const auto found = work.spec.find("artifacts");
    if (found == work.spec.end() || found->is_null()) {
      work.spec["artifacts"] = Value::object();
      return;
    }
    if (!found->is_object())
      return refuse(work, node_of("artifacts"), "artifacts is no mapping: path: key is expected");
    const auto platforms = work.spec.find("platforms");
    for (auto& [path, key] : found->items()) {
      if (!key.is_string() || platforms == work.spec.end() || !platforms->is_string()) {
        return refuse(work, node_of("artifacts"),
                      fmt::format("artifacts: {} needs a string, and platforms one to stand for {{platforms}}",
                                  text::quoted(path, 60)));
      }
      std::string& text = key.get_ref<std::string&>();
      constexpr std::string_view kField = "{platforms}";
      const std::string& platform = platforms->get_ref<const std::string&>();
      std::string filled_in;
      size_t at = 0;
      for (size_t field = text.find(kField); field != std::string::npos; field = text.find(kField, at)) {
        filled_in.append(text, at, field - at).append(platform);
        at = field + kField.size();
        if (filled_in.size() <= kMostFormatted) continue;
        return refuse(
            work, node_of("artifacts"),
            fmt::format("artifacts: {} becomes longer than {} bytes", text::quoted(path, 60), kMostFormatted));
      }
      text = filled_in.append(text, at);
    }
  }

  const std::string& file_;
  Findings findings_;
  Value assets_;
  Value artifacts_;
  Recipe recipe_;
  std::string type_;
  const YamlNode* spec_node_ = nullptr;
  const YamlNode* last_product_ = nullptr;
  Value spec_;
  std::set<std::string, std::less<>> fields_;  // that templates name
  size_t spec_bytes_ = 0;
  size_t expanded_ = 0;  // bytes
};

}  // namespace

std::string Workload::text(std::string_view key) const {
  const auto found = spec.find(std::string(key));
  return found == spec.end() || found->is_null() ? std::string() : python_str(*found);
}

Recipe expand(std::string text, const std::string& file, const Folders& folders) {
  return Expander(file, folders).expand(std::move(text));
}

}  // namespace assay::recipe
