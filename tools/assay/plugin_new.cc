#include "tools/assay/plugin_new.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "core/plugin/search_path.h"
#include "core/run/reproduce.h"

namespace assay::cli {

namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace {

constexpr const char* kPluginNewUsage = "assay plugin new NAME [--kind engine|comparator|launcher] [--output DIR]";
constexpr const char* kTemplateName = "example_minimal";  // what the templates call themselves
constexpr size_t kLongestName = 48;

Status check_name(const std::string& name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  const bool good = !name.empty() && name.size() <= kLongestName && name[0] >= 'a' && name[0] <= 'z' &&
                    std::all_of(name.begin(), name.end(), fits);
  if (good) return {};
  return invalid("plugin name '" + name + "': expected a-z, 0-9 and _, a letter first, at most " +
                 std::to_string(kLongestName) + ", for example my_server");
}

// A plugin of that kind and name that is there already would shadow the new one, or be shadowed.
Status check_free(const std::string& kind, const std::string& name, const plugin::SearchOptions& search) {
  for (const plugin::Candidate& candidate : plugin::list_files(plugin::search_dirs(search)).candidates) {
    if (candidate.claim.name != name || plugin::to_string(candidate.claim.kind) != kind) continue;
    return invalid("plugin name '" + name + "': there is " + candidate.file.string() + "; choose another name");
  }
  return {};
}

std::string renamed(std::string text, const std::string& name) {
  const std::string from = kTemplateName;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + name.size())) {
    text.replace(at, from.size(), name);
  }
  return text;
}

// The files of a template, written below `to` under the new name. A file that cannot be written ends it.
Result<Words> write_template(const fs::path& from, const fs::path& to, const std::string& name) {
  Words written;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(from, error)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const fs::path target = to / renamed(fs::relative(entry.path(), from).string(), name);
    fs::create_directories(target.parent_path(), error);
    std::ofstream out(target, std::ios::binary);
    out << renamed(text, name);
    out.close();
    if (!in || !out) return infra(target.string() + ": cannot be written: " + std::strerror(errno));
    written.push_back(target.string());
  }
  if (error) return infra(from.string() + ": cannot be read: " + error.message());
  std::sort(written.begin(), written.end());
  return written;
}

}  // namespace

int plugin_new_command(const Words& words) {
  po::options_description options("options");
  options.add_options()("name", po::value<Words>(), "name of the plugin: a-z, 0-9 and _")(
      "kind", po::value<std::string>()->default_value("engine"), "engine, comparator or launcher")(
      "output", po::value<std::string>()->default_value(""), "folder to write (default: <kind>_<name>)")(
      "plugin-path", po::value<Words>(), "folder whose plugins have names that are taken, too; repeatable");
  po::variables_map values;
  if (const auto code = parse(kPluginNewUsage, options, "name", words, &values)) return *code;
  const Words names = all(values, "name");
  if (names.size() != 1) {
    return refuse(kPluginNewUsage, "plugin new: " + std::to_string(names.size()) + " names given, expected one");
  }
  const std::string kind = values["kind"].as<std::string>();
  if (kind != "engine" && kind != "comparator" && kind != "launcher") {
    return fail(invalid("--kind '" + kind + "': expected engine, comparator or launcher"));
  }
  if (Status status = check_name(names[0]); !status.ok()) return fail(status);
  if (Status status = check_free(kind, names[0], search_options(values)); !status.ok()) return fail(status);
  fs::path output = values["output"].as<std::string>();
  if (output.empty()) output = kind + "_" + names[0];
  std::error_code error;
  if (fs::exists(fs::symlink_status(output, error))) {
    return fail(invalid(output.string() + ": exists already; name a folder that does not, with --output"));
  }
  const fs::path from = (fs::path(program_dir()) / ".." / "share/assay/plugin_templates" / kind).lexically_normal();
  if (!fs::is_directory(from, error)) {
    return fail(infra(from.string() + ": the templates are not there; install assay as a whole (cmake --install)"));
  }
  if (!fs::create_directories(output, error)) {
    return fail(infra(output.string() + ": cannot be made: " + error.message()));
  }
  const Result<Words> written = write_template(from, output, names[0]);
  if (!written) {
    fs::remove_all(output, error);
    return fail(written.status());
  }
  for (const std::string& file : *written) std::cout << file << "\n";
  const std::string prefix = fs::path(program_dir()).parent_path().string();
  const std::string build = run::shell_word((output / "build").string());
  std::cout << "next: cmake -S " << run::shell_word(output.string()) << " -B " << build << " "
            << run::shell_word("-DCMAKE_PREFIX_PATH=" + prefix) << " && cmake --build " << build
            << " && ctest --test-dir " << build << "\n";
  return kExitOk;
}

}  // namespace assay::cli
