#include "backends/model/checkpoint/pickle_reader.h"

#include <gmock/gmock.h>

#include <string>

namespace assay::model {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// `data` must outlive the result, so it is no temporary.
Result<Pickle> read(const std::string&& data, const PickleLimits& limits = {}) = delete;
Result<Pickle> read(const std::string& data, const PickleLimits& limits = {}) {
  return Pickle::read(bytes_of(data), "file", 1000, limits);
}

std::string refusal(const std::string& data, const PickleLimits& limits = {}) {
  return read(data, limits).status().message();
}

TEST(Pickle, ReadsScalars) {
  const std::string data =
      "\x80\x02(K\x05M\x01\x01J\xff\xff\xff\xff\x8a\x01\x80G?\xf8\0\0\0\0\0\0\x88NX\x02\0\0\0abt."s;
  Result<Pickle> pickle = read(data);
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  const auto items = pickle->items(pickle->root());
  ASSERT_EQ(items.size(), 8U);
  EXPECT_EQ(pickle->integer(items[0]), 5);
  EXPECT_EQ(pickle->integer(items[1]), 257);
  EXPECT_EQ(pickle->integer(items[2]), -1);
  EXPECT_EQ(pickle->integer(items[3]), -128);
  EXPECT_EQ(pickle->real(items[4]), 1.5);
  EXPECT_EQ(pickle->kind(items[5]), PickleKind::kBool);
  EXPECT_EQ(pickle->kind(items[6]), PickleKind::kNone);
  EXPECT_EQ(pickle->text(items[7]), "ab");
}

TEST(Pickle, TheLastValueOfADictKeyWins) {
  const std::string data = "\x80\x04}(\x8c\x01\x61K\x01\x8c\x01\x61K\x02u."s;
  Result<Pickle> pickle = read(data);
  ASSERT_TRUE(pickle.ok());
  EXPECT_EQ(pickle->integer(pickle->find(pickle->root(), "a")), 2);
  EXPECT_EQ(pickle->find(pickle->root(), "b"), kNoPickle);
}

TEST(Pickle, RepresentsACallToTheSystemWithoutMakingIt) {
  const std::string data =
      "\x80\x02"
      "cos\nsystem\nX\x0a\0\0\0touch /tmp\x85R."s;
  Result<Pickle> pickle = read(data);
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  EXPECT_EQ(pickle->kind(pickle->root()), PickleKind::kObject);
  EXPECT_EQ(pickle->class_name(pickle->root()), "os.system");
  EXPECT_EQ(pickle->text(pickle->items(pickle->arguments(pickle->root()))[0]), "touch /tmp");
}

TEST(Pickle, InterpretsTorchSizeAndOrderedDict) {
  const std::string data =
      "\x80\x02"
      "ctorch\nSize\nK\x03K\x04\x86\x85Rccollections\nOrderedDict\n)R\x86."s;
  Result<Pickle> pickle = read(data);
  ASSERT_TRUE(pickle.ok()) << pickle.status().message();
  const auto items = pickle->items(pickle->root());
  EXPECT_EQ(pickle->kind(items[0]), PickleKind::kTuple);
  EXPECT_EQ(pickle->items(items[0]).size(), 2U);
  EXPECT_EQ(pickle->kind(items[1]), PickleKind::kDict);
}

TEST(Pickle, SurvivesAListThatHoldsItself) {
  const std::string data = "\x80\x02]q\0h\0a."s;
  Result<Pickle> pickle = read(data);
  ASSERT_TRUE(pickle.ok());
  EXPECT_EQ(pickle->items(pickle->root())[0], pickle->root());
}

TEST(Pickle, BoundsNesting) {
  EXPECT_THAT(refusal("\x80\x02N" + std::string(100000, '\x85') + "."), HasSubstr("nested more than 256 deep"));
  EXPECT_THAT(refusal("\x80\x02" + std::string(100000, ']') + std::string(99999, 'a') + "."),
              HasSubstr("nested more than 256 deep"));
  EXPECT_THAT(refusal("\x80\x02" + std::string(100000, '(') + "."), HasSubstr("open marks"));
}

TEST(Pickle, BoundsValuesMemoAndBytes) {
  EXPECT_THAT(refusal("\x80\x02" + std::string(1000, 'N') + ".", {.max_nodes = 100}),
              HasSubstr("more than 100 values"));
  EXPECT_THAT(refusal("\x80\x02Nr\xff\xff\xff\x7f."s), HasSubstr("memo slot 2147483647 is too high"));
  EXPECT_THAT(refusal("\x80\x02Nh\x07."s), HasSubstr("memo slot 7 is empty"));
  EXPECT_THAT(refusal("\x80\x02N.", {.max_bytes = 3}), HasSubstr("at most 3"));
}

TEST(Pickle, RefusesLengthsBeyondTheData) {
  EXPECT_THAT(refusal("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
                      "a."s),
              HasSubstr("byte 1002"));
  EXPECT_THAT(refusal("\x80\x04X\xff\xff\xff\xff"
                      "a."s),
              HasSubstr("needs 4294967295 bytes"));
  EXPECT_THAT(refusal("\x80\x04\x8b\xff\xff\xff\x7f"
                      "a."s),
              HasSubstr("needs 2147483647 bytes"));
  EXPECT_THAT(refusal("\x80\x04\x95\xff\xff\0\0\0\0\0\0N."s), HasSubstr("frame"));
}

TEST(Pickle, NamesFileAndByteOfMalformedInput) {
  EXPECT_THAT(refusal(""), HasSubstr("file: byte 1000: pickle: ends without STOP"));
  EXPECT_THAT(refusal("\x80\x02."s), HasSubstr("byte 1002: pickle: the stack is empty"));
  EXPECT_THAT(refusal("\x80\x09N."s), HasSubstr("protocol 9"));
  EXPECT_THAT(refusal("\x80\x02NNa."s), HasSubstr("wrong container"));
  EXPECT_THAT(refusal("\x80\x02t."s), HasSubstr("no mark"));
  EXPECT_THAT(refusal("\x80\x02}(Nu."s), HasSubstr("key without a value"));
  EXPECT_THAT(refusal("\x80\x02NNb."s), HasSubstr("no object"));
  EXPECT_THAT(refusal("\x80\x02NNR."s), HasSubstr("not a tuple"));
  EXPECT_THAT(refusal("\x80\x02N)R."s), HasSubstr("no class"));
  EXPECT_THAT(refusal("\x80\x04NN\x93."s), HasSubstr("name is no text"));
  EXPECT_THAT(refusal("\x80\x02"
                      "cos"s),
              HasSubstr("without an end"));
  EXPECT_THAT(refusal("\x80\x04\x8c\x02\xc3\x28."s), HasSubstr("not UTF-8"));
  EXPECT_THAT(refusal("\x80\x02\x82\x01."s), HasSubstr("opcode 0x82"));
  EXPECT_THAT(refusal("\x80\x02(N0000."s), HasSubstr("the stack is empty"));
}

}  // namespace
}  // namespace assay::model
