#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/plugin/host.h"
#include "core/plugin/plugin.h"
#include "core/plugin/probe.h"
#include "tests/temporary_folder.h"

namespace assay::plugin {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

const fs::path kBroken = fs::path(ASSAY_BINARY_DIR) / "tests/broken_plugins";

fs::path broken(const std::string& name) { return kBroken / ("comparator_" + name + ".so"); }

void expect_failure(const fs::path& file, LoadFailure failure, const std::string& part) {
  const std::optional<LoadError> error = probe(file, std::chrono::milliseconds(5000));
  ASSERT_TRUE(error.has_value()) << file;
  EXPECT_EQ(to_string(error->failure), to_string(failure)) << error->message;
  EXPECT_THAT(error->message, AllOf(HasSubstr(file.string()), HasSubstr(part)));
  EXPECT_EQ(error->message.find('\n'), std::string::npos);
}

TEST(PluginLoad, PluginInOrderGivesItsDescriptor) {
  Plugin plugin;
  const std::optional<LoadError> error = load(broken("in_order"), silent_host(), &plugin);
  ASSERT_FALSE(error.has_value()) << error->message;
  EXPECT_EQ(plugin.name, "in_order");
  EXPECT_EQ(plugin.version, "3.2.1");
  EXPECT_EQ(plugin.kind, Kind::kComparator);
  EXPECT_TRUE(plugin.can(ASSAY_CAP_TEXT));
  EXPECT_FALSE(plugin.can(ASSAY_CAP_LOGPROBS));
  ASSERT_NE(plugin.comparator(), nullptr);
  EXPECT_EQ(plugin.comparator()->size, sizeof(assay_comparator_table));
}

TEST(PluginLoad, NewerMinorVersionIsAccepted) {
  Plugin plugin;
  EXPECT_FALSE(load(broken("newer_minor"), silent_host(), &plugin).has_value());
  EXPECT_EQ(plugin.abi_minor, 7u);
}

TEST(PluginLoad, MissingFileIsNotFound) { expect_failure(broken("absent"), LoadFailure::kNotFound, "no such file"); }

TEST(PluginLoad, DanglingLinkNamesItsTarget) {
  const tests::TemporaryFolder folder;
  const fs::path link = folder.path() / "comparator_link.so";
  fs::create_symlink("gone.so", link);
  expect_failure(link, LoadFailure::kNotFound, "gone.so");
}

TEST(PluginLoad, DirectoryIsNotAFile) {
  const tests::TemporaryFolder folder;
  const fs::path dir = folder.path() / "comparator_dir.so";
  fs::create_directory(dir);
  expect_failure(dir, LoadFailure::kNotAFile, "a directory");
}

TEST(PluginLoad, TextFileIsNotASharedObject) {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.path() / "comparator_text.so";
  std::ofstream(file) << "int main() {}\n";
  expect_failure(file, LoadFailure::kNotElf, "no ELF header");
}

TEST(PluginLoad, EmptyFileIsNotASharedObject) {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.path() / "comparator_empty.so";
  std::ofstream(file).flush();
  expect_failure(file, LoadFailure::kNotElf, "no ELF header");
}

TEST(PluginLoad, TruncatedFileTellsBothSizes) {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.path() / "comparator_cut.so";
  fs::copy_file(broken("in_order"), file);
  fs::resize_file(file, 3000);
  expect_failure(file, LoadFailure::kTruncated, "3000 bytes, its header promises");
}

TEST(PluginLoad, HeaderAloneIsTruncated) {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.path() / "comparator_cut.so";
  fs::copy_file(broken("in_order"), file);
  fs::resize_file(file, 20);
  expect_failure(file, LoadFailure::kTruncated, "20 bytes");
}

TEST(PluginLoad, OtherMachineIsNamed) {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.path() / "comparator_other.so";
  fs::copy_file(broken("in_order"), file);
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(18);  // e_machine
  stream.write("\x16\x00", 2);
  stream.close();
  expect_failure(file, LoadFailure::kWrongMachine, "machine 22");
}

TEST(PluginLoad, MissingSymbolIsNamedByTheLoader) {
  expect_failure(broken("missing_symbol"), LoadFailure::kMissingSymbol, "a_symbol_that_nobody_defines");
}

TEST(PluginLoad, LibraryWithoutQueryIsNotAPlugin) {
  expect_failure(broken("no_query"), LoadFailure::kNoQuery, "does not export assay_plugin_query");
}

TEST(PluginLoad, NullDescriptorIsARefusal) {
  expect_failure(broken("refuses"), LoadFailure::kRefused, "refuses ABI 1.4");
}

TEST(PluginLoad, WrongMagicShowsBothValues) {
  expect_failure(broken("bad_magic"), LoadFailure::kBadMagic, "0x12345678, expected 0x59415341");
}

TEST(PluginLoad, SmallDescriptorIsRefused) {
  expect_failure(broken("small_descriptor"), LoadFailure::kBadDescriptor, "16 bytes");
}

TEST(PluginLoad, NewerMajorShowsBothVersions) {
  expect_failure(broken("too_new"), LoadFailure::kAbiTooNew, "made for ABI 2.0, this program has 1.4; update assay");
}

TEST(PluginLoad, OlderMajorShowsBothVersions) {
  expect_failure(broken("too_old"), LoadFailure::kAbiTooOld, "made for ABI 0.0, this program has 1.4; rebuild");
}

TEST(PluginLoad, KindMustAgreeWithTheFileName) {
  expect_failure(broken("wrong_kind"), LoadFailure::kWrongKind, "rename the file to engine_wrong_kind.so");
}

TEST(PluginLoad, AnUnknownKindIsToldWhichThereAre) {
  expect_failure(broken("unknown_kind"), LoadFailure::kWrongKind,
                 "kind 9, expected 1 (engine), 2 (backend), 3 (comparator) or 4 (launcher)");
}

TEST(PluginLoad, NameMustAgreeWithTheFileName) {
  expect_failure(broken("other_name"), LoadFailure::kWrongName, "rename the file to comparator_another.so");
}

TEST(PluginLoad, FileNameWithoutKindIsRefused) {
  const tests::TemporaryFolder folder;
  const fs::path file = folder.path() / "libsomething.so";
  fs::copy_file(broken("in_order"), file);
  expect_failure(file, LoadFailure::kWrongName, "<kind>_<name>.so");
}

TEST(PluginLoad, NullTableIsRefused) { expect_failure(broken("null_table"), LoadFailure::kNullTable, "is null"); }

TEST(PluginLoad, NullEntryOfATableIsRefused) {
  expect_failure(broken("null_entry"), LoadFailure::kNullTable, "function 0 of its table is null");
}

TEST(PluginLoad, AnEngineThatClaimsTrainingHasAFunctionForIt) {
  expect_failure(kBroken / "engine_trains_null.so", LoadFailure::kNullTable, "train, and its table has null for it");
  expect_failure(kBroken / "engine_trains_short.so", LoadFailure::kNullTable, "train, and its table of 64 bytes ends");
  Plugin plugin;
  EXPECT_FALSE(load(kBroken / "engine_trains.so", silent_host(), &plugin).has_value());
}

TEST(PluginProbe, SegfaultInAConstructorIsSurvived) {
  expect_failure(broken("segfaults"), LoadFailure::kCrashed, "died with");
}

TEST(PluginProbe, AbortInAConstructorNamesTheSignal) {
  expect_failure(broken("aborts"), LoadFailure::kCrashed, "SIGABRT");
}

TEST(PluginProbe, ExitInAConstructorNamesTheCode) {
  expect_failure(broken("exits"), LoadFailure::kCrashed, "exit code 3");
}

TEST(PluginProbe, HangInAConstructorEndsAtTheLimit) {
  const std::optional<LoadError> error = probe(broken("hangs"), std::chrono::milliseconds(200));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->failure, LoadFailure::kHung);
  EXPECT_THAT(error->message, HasSubstr("200 ms"));
}

TEST(PluginProbe, ChildThatThrowsReportsTheException) {
  const Result<ChildReport> report =
      run_in_child([]() -> std::string { throw std::runtime_error("no luck"); }, std::chrono::seconds(5));
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->finished);
  EXPECT_THAT(report->death, HasSubstr("no luck"));
}

TEST(PluginHost, LogAndCancelReachTheServices) {
  std::string seen;
  const assay_host* host = make_host(
      {.log = [&](assay_log_level level, std::string_view line) { seen = std::to_string(level) + std::string(line); },
       .cancelled = [] { return true; }});
  host->log(host->context, ASSAY_LOG_WARN, {"hot", 3});
  EXPECT_EQ(seen, "2hot");
  EXPECT_EQ(host->cancelled(host->context), 1);
  const uint64_t before = host->now_ns(host->context);
  EXPECT_GE(host->now_ns(host->context), before);
  EXPECT_EQ(silent_host()->cancelled(silent_host()->context), 0);
}

}  // namespace
}  // namespace assay::plugin
