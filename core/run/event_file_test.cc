#include "core/run/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "core/command/log_tail.h"
#include "core/run/journal.h"
#include "tests/temporary_folder.h"

namespace assay::run {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class EventFile : public ::testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(dir_ / "e", std::ios::app | std::ios::binary) << text; }

  const tests::TemporaryFolder own_folder_;
  const fs::path dir_ = own_folder_.path();
};

TEST_F(EventFile, ReaderKeepsATornLineBackUntilItIsWhole) {
  EventReader reader(dir_ / "e");
  EXPECT_THAT(reader.poll(), IsEmpty());
  append("one\ntw");
  EXPECT_THAT(reader.poll(), ElementsAre("one"));
  EXPECT_EQ(reader.torn_bytes(), 2u);
  append("o\n\nthree\n");
  EXPECT_THAT(reader.poll(), ElementsAre("two", "three"));
  EXPECT_EQ(reader.torn_bytes(), 0u);
}

TEST_F(EventFile, TornLastLineOfAFinishedFileIsIgnored) {
  append("one\ntwo\n{\"event\": \"case_fin");
  EXPECT_THAT(*read_event_lines(dir_ / "e"), ElementsAre("one", "two"));
}

TEST_F(EventFile, LinesLongerThanTheBufferArriveWhole) {
  const std::string line(300000, 'x');
  append(line + "\n" + line + "\n");
  EXPECT_THAT(EventReader(dir_ / "e").poll(), ElementsAre(line, line));
}

TEST_F(EventFile, WriterAppendsAndReaderFollows) {
  Result<EventWriter> writer = EventWriter::create(dir_ / "e");
  ASSERT_TRUE(writer.ok());
  EventReader reader(dir_ / "e");
  ASSERT_TRUE(writer->append("a\n").ok());
  EXPECT_THAT(reader.poll(), ElementsAre("a"));
  ASSERT_TRUE(writer->append("b\n").ok());
  ASSERT_TRUE(writer->sync_soon().ok());
  ASSERT_TRUE(writer->sync().ok());
  EXPECT_THAT(reader.poll(), ElementsAre("b"));
}

TEST_F(EventFile, FullDiskIsAnErrorAndNotACrash) {
  Result<EventWriter> writer = EventWriter::create("/dev/full");
  ASSERT_TRUE(writer.ok());
  const Status written = writer->append("a\n");
  EXPECT_EQ(written.code(), StatusCode::kInfra);
  EXPECT_THAT(written.message(), AllOf(HasSubstr("/dev/full"), HasSubstr("No space left")));
}

TEST_F(EventFile, ALineThatDidNotFitLeavesNothingForTheNextOneToFollow) {
  Result<EventWriter> writer = EventWriter::create(dir_ / "e");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->append("one\n").ok());
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{10, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &full);
  const Status written = writer->append("two, which is too long\n");
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(written.code(), StatusCode::kInfra);
  ASSERT_TRUE(writer->append("three\n").ok());
  EXPECT_THAT(*read_event_lines(dir_ / "e"), ElementsAre("one", "three"));
}

TEST_F(EventFile, WriteFileReplacesTheWholeFile) {
  ASSERT_TRUE(write_file(dir_ / "f", "first and long").ok());
  ASSERT_TRUE(write_file(dir_ / "f", "second").ok());
  EXPECT_EQ(*read_file(dir_ / "f"), "second");
  EXPECT_FALSE(fs::exists(dir_ / "f.part"));
  EXPECT_EQ(read_file(dir_ / "absent").status().code(), StatusCode::kNotFound);
}

TEST_F(EventFile, LastLinesAreShortAndPrintable) {
  append("first\nsecond\n\nthird \x01 end\nfourth\n");
  EXPECT_EQ(command::last_lines(dir_ / "e", command::Redactor()), "second | third ? end | fourth");
  EXPECT_EQ(command::last_lines(dir_ / "e", command::Redactor(), 1), "fourth");
  EXPECT_EQ(command::last_lines(dir_ / "e", command::Redactor(), 3, 5), "urth");
  EXPECT_EQ(command::last_lines(dir_ / "absent", command::Redactor()), "");
}

TEST_F(EventFile, SecondJournalOfOneFolderIsRefusedWithTheHolder) {
  Result<Journal> first = Journal::open(dir_ / "out");
  ASSERT_TRUE(first.ok()) << first.status().message();
  const Result<Journal> second = Journal::open(dir_ / "out");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kInvalid);
  EXPECT_THAT(second.status().message(), HasSubstr("in use by process " + std::to_string(::getpid())));
}

TEST_F(EventFile, LockOfADeadProcessIsTakenOver) {
  const pid_t holder = ::fork();
  if (holder == 0) {
    const Result<Journal> journal = Journal::open(dir_ / "out");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(holder, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_THAT(*read_file(dir_ / "out/.lock"), StartsWith(std::to_string(holder) + " "));
  const Result<Journal> journal = Journal::open(dir_ / "out");
  EXPECT_TRUE(journal.ok()) << journal.status().message();
  EXPECT_THAT(*read_file(dir_ / "out/.lock"), StartsWith(std::to_string(::getpid()) + " "));
}

TEST_F(EventFile, OutputThatIsAFileIsRefused) {
  append("x");
  const Result<Journal> journal = Journal::open(dir_ / "e");
  ASSERT_FALSE(journal.ok());
  EXPECT_THAT(journal.status().message(), HasSubstr("choose another --output"));
}

}  // namespace
}  // namespace assay::run
