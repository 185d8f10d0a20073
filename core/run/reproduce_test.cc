#include "core/run/reproduce.h"

#include <gtest/gtest.h>

namespace assay::run {
namespace {

TEST(Reproduce, ShellWordsAreQuotedWhereNeeded) {
  EXPECT_EQ(shell_word("a/b_c-1.0=x"), "a/b_c-1.0=x");
  EXPECT_EQ(shell_word("two words"), "'two words'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$HOME"), "'$HOME'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("new\nline's\x1b"), "$'new\\012line\\'s\\033'") << "stays one line";
}

TEST(Reproduce, CommandHoldsWhatMattersForTheResult) {
  RunOptions options;
  options.variables = {{"CHECKPOINT_LOAD_PATH", "/data/a b"}};
  options.platform = "dgx_h200";
  options.backend = "reference";
  options.backend_options = R"({"isa":"avx2"})";
  options.engine_options = R"({"block_size":16})";
  options.strict = true;
  options.jobs = 8;
  EXPECT_EQ(reproduce_command(options, "cases/moe"),
            "assay run cases/moe --set 'CHECKPOINT_LOAD_PATH=/data/a b' --platform dgx_h200 --backend reference "
            "--backend-options '{\"isa\":\"avx2\"}' --engine-options '{\"block_size\":16}' --strict");
  EXPECT_EQ(reproduce_command(RunOptions(), "x"), "assay run x");
}

TEST(Reproduce, HasTheVariablesOfTheCaseAndLeaveToRunScripts) {
  RunOptions options;
  options.variables = {{"A", "1"}};
  options.environment = {{"C", "5"}};
  options.allow_scripts = true;
  CaseSettings own;
  own.variables = {{"A", "2"}, {"B", "3"}, {"C", "4"}};
  EXPECT_EQ(reproduce_command(options, "x", "", own), "assay run x --set A=1 --set B=3 --allow-scripts");
}

TEST(Reproduce, OfARelationRunsThatOneAlone) {
  RunOptions options;
  EXPECT_EQ(reproduce_command(options, "x", "save_load"), "assay run x --filter '*@save_load'");
  options.metamorphic = true;
  EXPECT_EQ(reproduce_command(options, "x", "save_load"), "assay run x --metamorphic --filter '*@save_load'");
  EXPECT_EQ(reproduce_command(options, "x"), "assay run x --metamorphic");
}

}  // namespace
}  // namespace assay::run
