#include "core/train/extract.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "core/train/metric_file.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

EventFile file_of(const std::string& tag, std::vector<ScalarPoint> points) {
  EventFile file;
  file.tags.push_back({tag, std::move(points)});
  return file;
}

std::vector<double> values_of(const Metric& metric) {
  std::vector<double> values;
  for (const StepValue& value : metric.values) values.push_back(value.value);
  return values;
}

TEST(Extract, TakesTheFirstStepAndTheMultiplesUpToTheLastStep) {
  std::vector<ScalarPoint> points;
  for (int step = 0; step <= 30; ++step) points.push_back({step, 1.0 * step});
  const MetricSet set = *extract({file_of("lm loss", points)}, {.train_iters = 23, .step_size = 5});
  ASSERT_EQ(set.metrics.size(), 1u);
  EXPECT_THAT(values_of(set.metrics[0]), ElementsAre(1, 5, 10, 15, 20));
  EXPECT_EQ(set.metrics[0].start_step, 1);
  EXPECT_EQ(set.metrics[0].end_step, 20);
  EXPECT_EQ(set.metrics[0].step_interval, 5);
}

TEST(Extract, TellsTheIntervalOfWhatWasLogged) {
  const MetricSet set = *extract({file_of("num-zeros", {{1, 0}, {4, 0}, {8, 0}, {16, 0}})}, {.train_iters = 20});
  EXPECT_EQ(set.metrics[0].step_interval, 4);
  EXPECT_EQ(extract({file_of("num-zeros", {{1, 0}, {4, 0}})}, {.train_iters = 20})->metrics[0].step_interval, 1);
}

TEST(Extract, OfOneFileTheLastValueOfAStepCountsOfSeveralTheFirst) {
  const std::vector<EventFile> files = {file_of("lm loss", {{1, 1}, {1, 2}, {2, 2}}),
                                        file_of("lm loss", {{2, 9}, {3, 3}, {3, 4}})};
  EXPECT_THAT(values_of(extract(files, {.train_iters = 9})->metrics[0]), ElementsAre(2, 2));
  EXPECT_THAT(values_of(extract(files, {.train_iters = 9, .merge = true})->metrics[0]), ElementsAre(2, 2, 3));
}

TEST(Extract, LeavesOutWhatNoGoldenHas) {
  EXPECT_TRUE(extract({file_of("learning-rate", {{1, 1}})}, {})->metrics.empty());
  EXPECT_TRUE(extract({file_of("lm loss", {{0, 1}, {101, 1}})}, {})->metrics.empty());
}

TEST(ExtractAsMegatron, SeesSimpleValuesUnderTheNamesOfItsGoldensUpToTheDamage) {
  EventFile file = file_of("lm loss", {{1, 1, true}, {2, 2, false}, {3, 3, true}});
  file.tags[0].simple = true;
  file.tags.push_back({"lm_loss", {{1, 7, true}}, true});
  file.tags.push_back({"num-zeros", {{1, 7, false}}, false});
  file.corrupt = invalid("damaged");
  const std::optional<MetricSet> set = extract_as_megatron({file}, {});
  ASSERT_TRUE(set);
  ASSERT_EQ(set->metrics.size(), 1u);
  EXPECT_THAT(values_of(set->metrics[0]), ElementsAre(1, 3));
  EXPECT_THAT(extract({file}, {}).status().message(), HasSubstr("damaged"));
  file.corrupt = {};
  EXPECT_EQ(extract({file}, {})->metrics.size(), 3u) << "all of them are ours";
  EXPECT_THAT(values_of(extract({file}, {})->metrics[0]), ElementsAre(1, 2, 3));
}

TEST(ExtractAsMegatron, FailsWhereItsScriptDoes) {
  EventFile tensors = file_of("lm loss", {{1, 1, false}});
  EventFile good = file_of("lm loss", {{1, 2, true}});
  good.tags[0].simple = true;
  EXPECT_FALSE(extract_as_megatron({tensors}, {})) << "no scalar";
  const std::optional<MetricSet> second = extract_as_megatron({tensors, good}, {});
  ASSERT_TRUE(second) << "the first file that has one counts";
  EXPECT_THAT(values_of(second->metrics[0]), ElementsAre(2));
  good.tags[0].points[0].value = NAN;
  EXPECT_FALSE(extract_as_megatron({good}, {})) << "JSON has no NaN";
}

class Folder : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(path_); }
  void TearDown() override { fs::remove_all(path_); }
  void put(const std::string& fixture, const std::string& name, int seconds_ago) {
    const fs::path target = path_ / name;
    fs::create_directories(target.parent_path());
    fs::copy_file(fs::path(ASSAY_SOURCE_DIR) / "core/train/testdata" / fixture, target);
    fs::last_write_time(target, fs::file_time_type::clock::now() - std::chrono::seconds(seconds_ago));
  }
  fs::path path_ = fs::path(testing::TempDir()) / ("extract_" + std::to_string(::getpid()));
};

TEST_F(Folder, TheOldestFileWithScalarsCounts) {
  put("empty.tfevents", "events.out.tfevents.0", 100);
  put("tensorboardx.tfevents", "events.out.tfevents.9", 50);
  put("restarted.tfevents", "events.out.tfevents.1", 10);
  put("simple.tfevents", "other.tfevents.2", 90);
  const Result<MetricSet> set = extract_folder(path_.string(), {});
  ASSERT_TRUE(set.ok()) << set.status().message();
  ASSERT_NE(set->find("iteration-time"), nullptr);
  EXPECT_EQ(set->find("iteration-time")->values.size(), 12u);
  EXPECT_EQ(set->find("lm loss"), nullptr);
  EXPECT_NE(set->find_alike("lm loss"), nullptr) << "tensorboardX writes lm_loss";
  ASSERT_EQ(set->notes.size(), 1u);
  EXPECT_THAT(set->notes[0], HasSubstr("2 event files hold scalars, the first one counts: " +
                                       (path_ / "events.out.tfevents.9").string()));
}

TEST_F(Folder, LooksIntoResultsToo) {
  put("tensorboardx.tfevents", "results/events.out.tfevents.9", 50);
  EXPECT_TRUE(extract_folder(path_.string(), {}).ok());
}

TEST_F(Folder, SaysWhatIsMissingOrDamaged) {
  EXPECT_THAT(extract_folder(path_.string(), {}).status().message(), HasSubstr("no TensorBoard event file"));
  put("empty.tfevents", "events.out.tfevents.0", 100);
  EXPECT_THAT(extract_folder(path_.string(), {}).status().message(), HasSubstr("none of its 1 event files"));
  put("tensorboardx.tfevents", "events.out.tfevents.9", 50);
  std::fstream file(path_ / "events.out.tfevents.9", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(300);
  file.put('\x55');
  file.close();
  const Status corrupt = extract_folder(path_.string(), {}).status();
  EXPECT_EQ(corrupt.code(), StatusCode::kInvalid);
  EXPECT_THAT(corrupt.message(), HasSubstr("events.out.tfevents.9: the record at byte"));
}

}  // namespace
}  // namespace assay::train
