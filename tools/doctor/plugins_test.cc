// What doctor says of folders and files of plugins, whatever they are called and whoever may read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/temporary_folder.h"
#include "tools/doctor/doctor.h"

namespace assay::doctor {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class DoctorPlugins : public ::testing::Test {
 protected:
  std::vector<Finding> found() const {
    DoctorInput input;
    input.plugins = plugins_;
    std::vector<Finding> findings;
    examine_plugins(input, &findings);
    return findings;
  }

  const tests::TemporaryFolder folder_;
  plugin::SearchOptions plugins_;
};

TEST_F(DoctorPlugins, AFolderThatCannotBeLookedAtIsALineAndTheReportGoesOn) {
  fs::create_symlink("itself", folder_ / "itself");
  fs::create_symlink(std::string(300, 'x'), folder_ / "long");
  plugins_.plugin_path = {folder_ / "itself", folder_ / "long"};
  plugins_.environment = folder_ / "absent";
  plugins_.install_dir = folder_.path();
  const std::vector<Finding> findings = found();
  const std::string text = to_text(findings, "0");
  EXPECT_THAT(text, HasSubstr("problem  folder: " + (folder_ / "itself") + " cannot be read: Too many levels"));
  EXPECT_THAT(text, HasSubstr("problem  folder: " + (folder_ / "long") + " cannot be read: File name too long"));
  EXPECT_THAT(text, HasSubstr("warning  folder: " + (folder_ / "absent") + " cannot be read: No such file"));
  EXPECT_THAT(text, HasSubstr("ok       folder: " + folder_.path().string()));
  EXPECT_THAT(text, HasSubstr("no backend can be used")) << "the end of the report";
}

TEST_F(DoctorPlugins, NoNameOfAFileMakesALineOfItsOwn) {
  std::ofstream(folder_ / "engine_a\n  ok       assay-worker: fine\x1b[2K.so") << "x";
  plugins_.plugin_path = {folder_.path()};
  const std::string text = to_text(found(), "0");
  EXPECT_THAT(text, HasSubstr("engine_a\\n  ok       assay-worker: fine\\x1b[2K.so"));
  EXPECT_THAT(text, Not(HasSubstr("\n  ok       assay-worker: fine")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  const Finding forged{"cpu\n", "name\nok", State::kOk, "text\nok", "remedy\nok"};
  EXPECT_EQ(to_text({forged}, "0").find("\nok"), std::string::npos) << "whoever made it";
}

}  // namespace
}  // namespace assay::doctor
